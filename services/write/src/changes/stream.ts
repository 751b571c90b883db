// One stream of changes. It reads pages from its own position when it is told that the log has moved on, and writes a page
// before it reads the next: what waits in memory for a slow reader is one page. It only ever goes as far as its key was
// seen to be good for, and is never at a position whose changes it has not written.
import type { Writable } from "node:stream";
import type { LinkChange } from "@linkfence/contracts";
import type { Counts } from "../counts.ts";
import { formatEvent, formatHeartbeat, formatOpening } from "../domain/change-feed.ts";
import type { ChangeRange } from "../store/changes.ts";
import type { Author } from "../store/link-rows.ts";

/** Events written at a time: below 64 KiB, as the greatest has some 240 bytes. */
export const EVENTS_AT_ONCE = 200;
/** What is left to send when a stream is ended gets so long: a reader that reads at all needs less. */
export const END_MS = 1000;

/** Why streams end: the reader left, did not read, lost its key; or the process stops. */
export type StreamEnd = keyof Counts["changes"]["ended"];

export type StreamOptions = {
  author: Author;
  /** Seq of the last change that the reader knows. */
  position: number;
  readRange: (range: ChangeRange) => Promise<LinkChange[]>;
  /** Pause between two heartbeats in ms: below the time after which a silent connection is cut off. */
  heartbeatMs: number;
  /** A reader that does not take a page within so many ms is cut off. */
  drainMs: number;
  /** ms after which the reader should come back when the stream breaks. */
  retryMs: number;
  counts: Counts["changes"];
  onEnd: () => void;
};

export type ChangeStream = ReturnType<typeof openChangeStream>;

/** Opens a stream on a response whose header fields are set and whose reader is there. */
export function openChangeStream(response: Writable, options: StreamOptions) {
  const { author, readRange, heartbeatMs, drainMs, retryMs, counts, onEnd } = options;
  let { position } = options;
  let target = position;
  let reading = false;
  let ended = false;

  function end(why: StreamEnd): void {
    if (ended) return;
    ended = true;
    clearInterval(heartbeat);
    counts.ended[why] += 1;
    onEnd();
    if (why === "slow") response.destroy();
    if (response.destroyed) return;
    response.end();
    setTimeout(() => response.writableFinished || response.destroy(), END_MS).unref();
  }

  /** A page that cannot be read now is read when the log is looked at again. */
  async function read(): Promise<void> {
    while (position < target && !ended) {
      const until = target;
      const page = await readRange({ owner: author.owner, after: position, until, limit: EVENTS_AT_ONCE });
      if (ended) return;
      const last = page.length < EVENTS_AT_ONCE ? undefined : page.at(-1);
      position = last?.seq ?? until;
      if (!(await write(page))) end("slow");
    }
  }

  /** Resolves with whether the reader took it in time. */
  function write(page: readonly LinkChange[]): boolean | Promise<boolean> {
    if (page.length === 0) return true;
    counts.events += page.length;
    return response.write(page.map(formatEvent).join("")) || awaitDrain(response, drainMs);
  }

  /** A reader that has not taken all so far needs no sign of life. */
  function beat(): void {
    if (!response.writableNeedDrain) response.write(formatHeartbeat(position));
  }

  const heartbeat = setInterval(beat, heartbeatMs);
  response.once("close", () => end("client"));
  response.on("error", () => end("client"));
  response.write(formatOpening(position, retryMs));

  return {
    author,
    end,
    /** Told that the key is good and that the log reaches to `head`, both seen at one instant. */
    advance(head: number): void {
      target = Math.max(target, head);
      if (reading || ended) return;
      reading = true;
      read()
        .catch(() => {
          counts.failures.page += 1;
        })
        .finally(() => {
          reading = false;
        });
    },
  };
}

/** Resolves with whether everything written is out of this process within `timeoutMs`. */
export function awaitDrain(response: Writable, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (drained: boolean) => {
      clearTimeout(timer);
      response.off("drain", onDrain).off("close", onClose);
      resolve(drained);
    };
    const onDrain = () => settle(true);
    const onClose = () => settle(false);
    const timer = setTimeout(onClose, timeoutMs);
    response.once("drain", onDrain).once("close", onClose);
  });
}
