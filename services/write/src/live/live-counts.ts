// Counts of links as they change: a stream for each reader, and one look for all of them together.
import type { ServerResponse } from "node:http";
import { type LinkSums, Problem, type Scope } from "@linkfence/contracts";
import { createPlaces } from "../changes/places.ts";
import { createWatcher, type WatcherOptions } from "../changes/watcher.ts";
import type { Counts } from "../counts.ts";
import type { Author } from "../store/link-rows.ts";
import { createWaitingRoom } from "../store/waiting-room.ts";
import { type LiveStreamOptions, openLiveStream } from "./live-stream.ts";

export type LiveCountsOptions = {
  /** Looks which keys are good. */
  glance: WatcherOptions["glance"];
  /** Adds up what has happened to a code since a time in ms. */
  read: (code: string, since: number) => Promise<LinkSums>;
  counts: Counts["live"];
  /** Streams at the most: of the process, and of one owner. */
  maxStreams: number;
  maxPerOwner: number;
  /** Reads under way at a time; the others wait, for `readTimeoutMs` at the most. */
  maxReads: number;
  readTimeoutMs: number;
  /** Pause between two looks in ms. */
  watchMs: number;
  /** Readers come back after so many ms at least, and twice as many at most: not all of them in the same instant. */
  retryMs: number;
  onTrouble: (cause: unknown) => void;
} & Pick<LiveStreamOptions, "heartbeatMs" | "drainMs">;

export type LiveCountsStreams = ReturnType<typeof createLiveCounts>;
/** What a reader wants to know of: a code from a time in ms on, and how its counts are told. */
export type LiveWish = { code: string; since: number; describe: (sums: LinkSums) => string };

/** What a key must allow for as long as a stream is open. */
export const LIVE_SCOPE: Scope = "stats:read";

/** Creates the streams of counts of one process. */
export function createLiveCounts(options: LiveCountsOptions) {
  const { glance, read, counts, watchMs, readTimeoutMs, retryMs, heartbeatMs, drainMs, onTrouble } = options;
  const places = createPlaces({
    what: "streams of counts",
    total: options.maxStreams,
    perOwner: options.maxPerOwner,
    refused: counts.refused,
  });
  const watcher = createWatcher({ glance, everyMs: watchMs, scope: LIVE_SCOPE, counts, onTrouble });
  const room = createWaitingRoom(options.maxReads);
  const underWay = new Map<string, Promise<LinkSums>>();
  let stopping = false;

  /** Readers of the same counts share one read. */
  function readShared({ code, since }: LiveWish): Promise<LinkSums> {
    const name = `${code} ${since}`;
    const shared = underWay.get(name);
    if (shared) return shared;
    const reading = readInTurn(code, since).finally(() => underWay.delete(name));
    underWay.set(name, reading);
    return reading;
  }

  async function readInTurn(code: string, since: number): Promise<LinkSums> {
    const sums = await room.run(readTimeoutMs, () => read(code, since));
    if (!sums) throw new Problem("statistics-unavailable", "too many counts are being read already: try again");
    return sums;
  }

  /**
   * Lets a reader in, before anything is answered.
   * @returns opens the stream; to be called once, at once
   * @throws Problem `overloaded` where there is no place, `statistics-unavailable`, or `unavailable` while the process stops
   */
  async function admit(author: Author, wish: LiveWish): Promise<(response: ServerResponse) => void> {
    const leave = places.take(author.owner);
    try {
      const first = wish.describe(await readShared(wish));
      if (stopping) throw new Problem("unavailable", "this process is stopping: try again");
      return (response) => open(response, { author, wish, first, leave });
    } catch (error) {
      leave();
      throw error;
    }
  }

  type Admitted = { author: Author; wish: LiveWish; first: string; leave: () => void };

  function open(response: ServerResponse, { author, wish, first, leave }: Admitted): void {
    if (response.destroyed) {
      leave();
      return;
    }
    const stream = openLiveStream(response, {
      author,
      first,
      read: async () => wish.describe(await readShared(wish)),
      heartbeatMs,
      drainMs,
      retryMs: Math.round(retryMs * (1 + Math.random())),
      counts,
      onEnd() {
        leave();
        watcher.remove(stream);
      },
    });
    watcher.add(stream);
  }

  return {
    admit,
    /** Ends every stream, so that what is left of a stop does not wait for them, and lets no more in. */
    stop(): void {
      stopping = true;
      watcher.endAll();
    },
    stats: () => ({ open: places.count(), reads: room.stats() }),
  };
}
