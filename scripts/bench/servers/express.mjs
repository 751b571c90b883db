import express from "express";
import { follow, readLinks, tell } from "./links.mjs";

const links = readLinks();
const app = express();
app.get("/:code", (request, response) => {
  const link = follow(links, request.params.code, request.headers);
  if (!link) return response.status(404).json({ message: "no such link" });
  return response.set("Cache-Control", "no-store").redirect(302, link.target);
});
const server = app.listen(0, "127.0.0.1", () => tell(server.address().port));
