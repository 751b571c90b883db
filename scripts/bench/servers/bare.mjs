// The yardstick: what Node's own HTTP server answers when there is nothing to find out.
import { createServer } from "node:http";
import { tell } from "./links.mjs";

const Location = "https://www.example.com/articles/42?utm_source=newsletter&utm_medium=email";
const server = createServer((_request, response) => {
  response.writeHead(302, { Location, "Cache-Control": "no-store", "Content-Length": 0 });
  response.end();
});
server.listen(0, "127.0.0.1", () => tell(server.address().port));
