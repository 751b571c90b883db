// One request to another service, bounded in time and size.
//
// By `request`, not by `fetch`: in Node 20 a garbage collection between the head and the end of an answer makes `fetch`
// deaf to its signal, and an answer that never ends then holds its caller for five minutes.
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

export type ExchangeOptions = {
  method?: "GET" | "POST" | "DELETE";
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Ends the exchange at any point, between the head and the end of the answer too. */
  signal: AbortSignal;
  /** Bytes of the answer at the most. */
  maxBytes: number;
};

/**
 * Sends one request and reads its whole answer. Follows no redirect.
 * @throws the network's error, the signal's, or an error that says that the answer is too long
 */
export function exchange(url: URL, options: ExchangeOptions): Promise<{ status: number; text: string }> {
  const { method = "GET", headers = {}, body, signal, maxBytes } = options;
  const request = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    let answered = false;
    const outgoing = request(url, { method, headers, signal }, (response) => {
      answered = true;
      readText(response, maxBytes).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    outgoing.on("error", reject);
    // Who answers 101 to a request that asked for no upgrade is cut off by Node without an error.
    outgoing.once("close", () => {
      if (!answered) reject(new Error("the connection ended without an answer"));
    });
    outgoing.end(body);
  });
}

/** Leaving the loop early, by an error, also ends the connection. */
async function readText(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new Error(`the answer has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
