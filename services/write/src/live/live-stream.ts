// One stream of counts. Each event has all of them, so that nothing is missed by missing one: a reader that has not taken
// the last event is not sent another one, and nothing waits for it in memory but that.
import type { Writable } from "node:stream";
import { awaitDrain, END_MS, type StreamEnd } from "../changes/stream.ts";
import type { Counts } from "../counts.ts";
import type { Author } from "../store/link-rows.ts";

export type LiveStreamOptions = {
  author: Author;
  /** The counts with which it begins, as one line. */
  first: string;
  /** Reads them anew. */
  read: () => Promise<string>;
  /** Pause between two heartbeats in ms: below the time after which a silent connection is cut off. */
  heartbeatMs: number;
  /** A reader that does not take an event within so many ms is cut off. */
  drainMs: number;
  /** ms after which the reader should come back when the stream breaks. */
  retryMs: number;
  counts: Counts["live"];
  onEnd: () => void;
};

/** Opens a stream on a response whose header fields are set and whose reader is there. */
export function openLiveStream(response: Writable, options: LiveStreamOptions) {
  const { author, first, read, heartbeatMs, drainMs, retryMs, counts, onEnd } = options;
  let told = "";
  let reading = true;
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

  async function tell(line: string): Promise<void> {
    if (line === told || ended) return;
    told = line;
    counts.events += 1;
    if (response.write(`event: counts\ndata: ${line}\n\n`) || (await awaitDrain(response, drainMs))) return;
    end("slow");
  }

  const heartbeat = setInterval(() => response.writableNeedDrain || response.write(":\n\n"), heartbeatMs);
  response.once("close", () => end("client"));
  response.on("error", () => end("client"));
  response.write(`retry: ${retryMs}\n\n`);
  void tell(first).finally(() => {
    reading = false;
  });

  return {
    author,
    end,
    /** Told that the key is good: time to look again. What cannot be read now is read the next time. */
    advance(): void {
      if (reading || ended) return;
      reading = true;
      read()
        .then(tell)
        .catch(() => {
          counts.failures.page += 1;
        })
        .finally(() => {
          reading = false;
        });
    },
  };
}
