import fastify from "fastify";
import { follow, readLinks, tell } from "./links.mjs";

const links = readLinks();
const app = fastify();
app.get("/:code", (request, reply) => {
  const link = follow(links, request.params.code, request.headers);
  if (!link) return reply.code(404).send({ message: "no such link" });
  return reply.header("Cache-Control", "no-store").redirect(link.target, 302);
});
await app.listen({ port: 0, host: "127.0.0.1" });
tell(app.server.address().port);
