// Looks whether the log has moved on, for all streams of a kind together: one statement each time, however many
// streams there are, and none while there is none. Delivery does not depend on any notification, which may be lost.
// The same statement looks at the keys of the streams, so that a stream is never told of a change that was made after
// its key had ended.
import { setTimeout as pause } from "node:timers/promises";
import type { Scope } from "@linkfence/contracts";
import type { Counts } from "../counts.ts";
import { allows } from "../domain/api-key.ts";
import type { Glance } from "../store/changes.ts";
import type { Author } from "../store/link-rows.ts";
import type { StreamEnd } from "./stream.ts";

/** A stream as the watch knows it: told where the log's head is while its key is good, and ended when it is not. */
export type WatchedStream = { author: Author; advance(head: number): void; end(why: StreamEnd): void };

export type WatcherOptions = {
  glance: (keyIds: readonly string[]) => Promise<Glance>;
  /** Pause between two looks in ms. */
  everyMs: number;
  /** What a stream's key must allow. */
  scope: Scope;
  counts: Pick<Counts["changes"], "failures">;
  /** Told the cause when looking begins to fail, and undefined when it works again. */
  onTrouble: (cause: unknown) => void;
};

/** Creates the watch over the log. It begins with the first stream and ends with the last. */
export function createWatcher({ glance, everyMs, scope, counts, onTrouble }: WatcherOptions) {
  const streams = new Set<WatchedStream>();
  let running = false;
  let failing = false;

  /** Streams that come while it looks are looked after the next time: nothing is known of their keys. */
  async function look(): Promise<void> {
    const watched = [...streams];
    const { head, keys } = await glance([...new Set(watched.map(({ author }) => author.keyId))]);
    const good = new Map(keys.filter(({ scopes }) => allows(scopes, scope)).map(({ id, owner }) => [id, owner]));
    for (const stream of watched) {
      if (good.get(stream.author.keyId) === stream.author.owner) stream.advance(head);
      else stream.end("key");
    }
  }

  /** A failure is told once, however long it lasts. */
  function note(cause: unknown): void {
    if (failing !== (cause !== undefined)) onTrouble(cause);
    failing = cause !== undefined;
  }

  async function run(): Promise<void> {
    while (streams.size > 0) {
      try {
        await look();
        note(undefined);
      } catch (error) {
        counts.failures.head += 1;
        note(error ?? "unknown");
      }
      await pause(everyMs);
    }
    running = false;
  }

  return {
    add(stream: WatchedStream): void {
      streams.add(stream);
      if (running) return;
      running = true;
      void run();
    },
    remove: (stream: WatchedStream) => void streams.delete(stream),
    endAll(): void {
      for (const stream of streams) stream.end("stopped");
    },
  };
}
