// Hands a file through, byte by byte, from the service that keeps it. Nobody waits for a side that stands still, and what
// breaks on the way breaks for the client too: an answer that ends early must not look whole.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { pipeline } from "node:stream/promises";
import { Problem } from "@linkfence/contracts";
import type { Request, Response } from "express";

export type DownloadsOptions = {
  /** At a time; each holds two sockets and some buffers. */
  max: number;
  /** Of these, of one owner. */
  maxPerOwner: number;
  /** ms for which nothing may pass. */
  stallMs: number;
};
export type Downloads = ReturnType<typeof createDownloads>;
/** What went out: bytes of content, and what it broke off for, if it did. */
export type Sent = { status: number; bytes: number; error: unknown };
/** Where a file is, and what its answer says beside what the keeper of the file does. */
export type Source = { url: URL; headers: Record<string, string>; fields: Record<string, string> };

/** What a client may say about which bytes it wants, and of which file (RFC 9110 sections 13.1 and 14.2). */
const CONDITIONS = [
  "range",
  "if-range",
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
] as const;
/** What the keeper says about the bytes. */
const ABOUT = ["accept-ranges", "content-length", "content-range", "content-type", "etag", "last-modified"] as const;
const PASSED_ON = new Set([200, 206, 304]);

/** Creates the bound on downloads, and what sends them. */
export function createDownloads({ max, maxPerOwner, stallMs }: DownloadsOptions) {
  const byOwner = new Map<string, number>();
  const counts = { sent: 0, broken: 0, refused: 0, bytes: 0 };
  let open = 0;

  function enter(owner: string): void {
    const own = byOwner.get(owner) ?? 0;
    if (open >= max || own >= maxPerOwner) {
      counts.refused += 1;
      throw new Problem("overloaded", "as many downloads are under way as may be; try again when one has ended");
    }
    open += 1;
    byOwner.set(owner, own + 1);
  }

  function leave(owner: string): void {
    open -= 1;
    const own = (byOwner.get(owner) ?? 1) - 1;
    if (own === 0) byOwner.delete(owner);
    else byOwner.set(owner, own);
  }

  /**
   * Sends a file, or what the request asks of it. Resolves with what went out, also where it broke off on the way.
   * Rejects with a Problem while there is still time to answer one.
   */
  async function send(
    owner: string,
    source: Source,
    { request, response }: { request: Request; response: Response },
  ): Promise<Sent> {
    enter(owner);
    try {
      const answer = await ask(source, request);
      const { statusCode: status = 0 } = answer;
      if (!PASSED_ON.has(status)) {
        answer.destroy();
        throw refusalOf(status, answer, response);
      }
      response.status(status);
      for (const name of ABOUT) {
        const value = answer.headers[name];
        if (value !== undefined) response.setHeader(name, value);
      }
      for (const [name, value] of Object.entries(source.fields)) response.setHeader(name, value);
      return await pass(answer, response, status);
    } finally {
      leave(owner);
    }
  }

  async function pass(answer: IncomingMessage, response: Response, status: number): Promise<Sent> {
    let bytes = 0;
    answer.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    // A client that takes nothing stops the keeper's side, too: one look at both.
    answer.setTimeout(stallMs, () => answer.destroy(new Error(`nothing passed for ${stallMs} ms`)));
    let error: unknown;
    try {
      await pipeline(answer, response);
      counts.sent += 1;
    } catch (caught) {
      error = caught;
      counts.broken += 1;
      response.destroy();
    }
    counts.bytes += bytes;
    return { status, bytes, error };
  }

  function ask({ url, headers }: Source, request: Request): Promise<IncomingMessage> {
    const conditions = Object.fromEntries(
      CONDITIONS.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, request.headers[name]]])),
    ) as IncomingHttpHeaders;
    const call = url.protocol === "https:" ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      const method = request.method === "HEAD" ? "HEAD" : "GET";
      const outgoing = call(url, { method, headers: { ...conditions, ...headers }, agent: false }, resolve);
      outgoing.setTimeout(stallMs, () => outgoing.destroy(new Error(`no answer for ${stallMs} ms`)));
      outgoing.on("error", () => reject(unavailable()));
      outgoing.end();
    });
  }

  return {
    send,
    stats: () => {
      const { bytes, ...ended } = counts;
      return { ended, bytes, open, max };
    },
  };
}

function refusalOf(status: number, { headers }: IncomingMessage, response: Response): Problem {
  if (status === 412) return new Problem("precondition-failed", "the file is another one than the request names");
  if (status === 404) return new Problem("not-found", "you have no such export");
  if (status === 409) return new Problem("not-ready", "the export has no file any more");
  if (status !== 416) return unavailable();
  // RFC 9110 section 15.5.17: how much there is.
  if (headers["content-range"] !== undefined) response.setHeader("Content-Range", headers["content-range"]);
  return new Problem("range-not-satisfiable", "the file has none of the bytes that Range asks for");
}

function unavailable(): Problem {
  return new Problem("exports-unavailable", "the file cannot be read now; try again later");
}
