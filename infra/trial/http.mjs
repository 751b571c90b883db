// Requests on a connection of their own each: while a command of the engine runs, this process does not notice that a
// kept connection was closed, and the next request would fail for no reason of the deployment's.
import { request } from "node:http";

const DEADLINE_MS = 10_000;

/** Sends one request and resolves with its whole answer; never follows a redirect. */
export function send(url, { method = "GET", headers = {}, body = "" } = {}) {
  return new Promise((resolve, reject) => {
    const options = { method, headers, agent: false, signal: AbortSignal.timeout(DEADLINE_MS) };
    const sent = request(url, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
