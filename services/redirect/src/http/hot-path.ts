// The handler in front of everything. A hit is answered in the turn in which it arrives: no await, no timer, and no
// clock but the two that the freshness rule reads. What is not plainly a link goes to the Express app.
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { findRequestFault } from "@linkfence/service-shell";
import type { LinkLookup } from "../cache/link-lookup.ts";
import type { ClickRing } from "../clicks/click-ring.ts";
import { type Entry, type Moment, type Outcome, resolve } from "../domain/entry.ts";
import { codeInUrl } from "../domain/path.ts";
import { readVisitor } from "../domain/visitor.ts";
import { type LinkPage, sendBadRequest, sendMethodNotAllowed } from "./answers.ts";
import { askerOf } from "./node-asker.ts";
import type { FromSomewhere } from "./origin.ts";

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
  originOf?: ((request: FromSomewhere) => string | undefined) | null;
};

/** Who asks for a link, and what is done with the answer. It is given one, or none where it is over. */
export type Asker = FromSomewhere & {
  /** A redirect of it is a click. */
  readonly clicks: boolean;
  /** There is nobody any more to give an answer to. Asked only of who had to wait for the database. */
  isOver(): boolean;
  /** @param ageMs age of the entry, where it is to be told */
  redirect(target: string, ageMs: number | null, wall: number): void;
  show(page: LinkPage, wall: number): void;
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

  function answer(asker: Asker, entry: Entry, { mono, wall }: Moment): void {
    const outcome = resolve(entry, mono);
    counts[outcome] += 1;
    if (outcome !== "redirect") {
      asker.show(outcome, wall);
      return;
    }
    asker.redirect(entry.target, debugEntryAge ? mono - entry.loadedAt.mono : null, wall);
    if (asker.clicks) ring.push(entry, wall, readVisitor(asker.rawHeaders), originOf?.(asker));
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

  function answerFromDatabase(asker: Asker, code: string): void {
    readAndTell(code, (entry, at, error) => {
      if (error !== null) onLoadError(error);
      // Who left followed nothing, and is no click.
      if (asker.isOver()) return;
      if (entry) answer(asker, entry, at);
      else {
        counts.unavailable += 1;
        asker.show("unavailable", at.wall);
      }
    });
  }

  /** Answers who asks for a link. */
  function follow(asker: Asker, code: string): void {
    const at = now();
    const entry = lookup.find(code, at.mono, at.wall);
    if (entry) answer(asker, entry, at);
    else answerFromDatabase(asker, code);
  }

  /** Answers a request of Node's for a link. */
  const serve = (request: IncomingMessage, response: ServerResponse, code: string) =>
    follow(askerOf(request, response), code);

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

  return { handle, serve, follow, readThrough, counts: () => ({ ...counts }) };
}
