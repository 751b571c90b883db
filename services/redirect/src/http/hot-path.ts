// The handler in front of everything. A hit is answered in the turn in which it arrives: no await, no timer, and no
// clock but the two that the freshness rule reads. What is not plainly a link goes to the Express app.
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { findRequestFault } from "@linkfence/service-shell";
import type { LinkLookup } from "../cache/link-lookup.ts";
import type { ClickRing } from "../clicks/click-ring.ts";
import { type Entry, type Moment, type Outcome, redirectHeaders, resolve } from "../domain/entry.ts";
import { codeInUrl } from "../domain/path.ts";
import { readVisitor } from "../domain/visitor.ts";
import { sendBadRequest, sendGone, sendMethodNotAllowed, sendNotFound, sendUnavailable } from "./answers.ts";

/** A read that was answered too late to be used is repeated once; after that the visitor is told to try again. */
const READS = 2;

export type HotPathDeps = {
  lookup: LinkLookup;
  ring: ClickRing;
  now: () => Moment;
  /** Tell the age of the entry that a redirect rests on. */
  debugEntryAge: boolean;
  /** Told about a load that failed. */
  onLoadError: (error: unknown) => void;
  /** Takes from a request what tells of its country; missing where nobody wants to know. */
  originOf?: ((request: IncomingMessage) => string | undefined) | null;
};

export type Answered = Outcome | "unavailable" | "method-not-allowed" | "bad-request";
export type HotPath = ReturnType<typeof createHotPath>;

/** Creates the handler of links. `handle` is the server's listener in front of `app`. */
export function createHotPath(deps: HotPathDeps) {
  const { lookup, ring, now, debugEntryAge, onLoadError, originOf } = deps;
  const counts: Record<Answered, number> = {
    redirect: 0,
    gone: 0,
    "not-found": 0,
    unavailable: 0,
    "method-not-allowed": 0,
    "bad-request": 0,
  };

  function answer(request: IncomingMessage, response: ServerResponse, entry: Entry, { mono, wall }: Moment): void {
    const outcome = resolve(entry, mono);
    counts[outcome] += 1;
    if (outcome === "gone") sendGone(request, response);
    else if (outcome === "not-found") sendNotFound(request, response);
    else {
      response.writeHead(302, debugEntryAge ? withAge(entry, mono) : redirectHeaders(entry));
      response.end();
      if (request.method === "GET") ring.push(entry, wall, readVisitor(request.rawHeaders), originOf?.(request));
    }
  }

  /** Reads a link from the database. Tells of an entry that is young enough to be used at that instant, or of none. */
  function readAndTell(code: string, told: (entry: Entry | null, at: Moment, error: unknown) => void, reads = READS) {
    lookup.ask(code, (entry, error) => {
      const at = now();
      if (entry !== null && !lookup.isYoung(entry, at.mono, at.wall)) {
        if (reads > 1) readAndTell(code, told, reads - 1);
        else told(null, at, null);
      } else told(entry, at, error);
    });
  }

  /** The same, for whoever can wait for it. Rejects with what a failed read says. */
  function readThrough(code: string): Promise<{ entry: Entry; at: Moment } | null> {
    return new Promise((resolve, reject) =>
      readAndTell(code, (entry, at, error) => {
        if (error !== null) reject(error);
        else resolve(entry && { entry, at });
      }),
    );
  }

  function answerFromDatabase(request: IncomingMessage, response: ServerResponse, code: string): void {
    readAndTell(code, (entry, at, error) => {
      if (error !== null) onLoadError(error);
      // Its client is gone, or was answered by the server for what came behind the head of the request.
      if (response.destroyed || response.headersSent) return;
      if (entry) answer(request, response, entry, at);
      else {
        counts.unavailable += 1;
        sendUnavailable(request, response);
      }
    });
  }

  /** Answers a request for a link. */
  function serve(request: IncomingMessage, response: ServerResponse, code: string): void {
    const at = now();
    const entry = lookup.find(code, at.mono, at.wall);
    if (entry) answer(request, response, entry, at);
    else answerFromDatabase(request, response, code);
  }

  /** The method is judged before anything is looked up, so that it tells nothing about which links exist. */
  function handle(app: RequestListener): RequestListener {
    return (request, response) => {
      const { method, url = "" } = request;
      if (method !== "GET" && method !== "HEAD") {
        counts["method-not-allowed"] += 1;
        sendMethodNotAllowed(request, response);
        return;
      }
      if (findRequestFault(request) !== null) {
        counts["bad-request"] += 1;
        sendBadRequest(request, response);
        return;
      }
      const code = codeInUrl(url);
      if (code === null) app(request, response);
      else serve(request, response, code);
    };
  }

  return { handle, serve, readThrough, counts: () => ({ ...counts }) };
}

function withAge(entry: Entry, mono: number): Record<string, string> {
  return { ...redirectHeaders(entry), "X-Entry-Age-Ms": (mono - entry.loadedAt.mono).toFixed(3) };
}
