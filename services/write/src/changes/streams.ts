import type { ServerResponse } from "node:http";
import { Problem, type Scope } from "@linkfence/contracts";
import type { Counts } from "../counts.ts";
import type { ChangeRange, ChangeStore } from "../store/changes.ts";
import type { Author } from "../store/link-rows.ts";
import { createWaitingRoom } from "../store/waiting-room.ts";
import { createPlaces } from "./places.ts";
import { openChangeStream, type StreamOptions } from "./stream.ts";
import { createWatcher } from "./watcher.ts";

export type ChangeStreamsOptions = {
  changes: ChangeStore;
  counts: Counts["changes"];
  /** Streams at the most: of the process, and of one owner. */
  maxStreams: number;
  maxPerOwner: number;
  /** Pages that all streams together read at a time, and how long one may take in ms. */
  maxReads: number;
  readTimeoutMs: number;
  /** Pause between two looks at the log in ms. */
  watchMs: number;
  /** Readers come back after so many ms at least, and twice as many at most: not all of them in the same instant. */
  retryMs: number;
  onTrouble: (cause: unknown) => void;
} & Pick<StreamOptions, "heartbeatMs" | "drainMs">;

export type ChangeStreams = ReturnType<typeof createChangeStreams>;

/** What a key must allow for as long as a stream is open. */
export const STREAM_SCOPE: Scope = "links:read";

/** Creates the streams of changes of one process. */
export function createChangeStreams(options: ChangeStreamsOptions) {
  const { changes, counts, watchMs, readTimeoutMs, retryMs, heartbeatMs, drainMs, onTrouble } = options;
  const places = createPlaces({
    what: "streams of changes",
    total: options.maxStreams,
    perOwner: options.maxPerOwner,
    refused: counts.refused,
  });
  const { glance } = changes;
  const watcher = createWatcher({ glance, everyMs: watchMs, scope: STREAM_SCOPE, counts, onTrouble });
  const room = createWaitingRoom(options.maxReads);
  let stopping = false;

  async function readRange(range: ChangeRange) {
    const page = await room.run(readTimeoutMs, (leftMs) => changes.readRange(range, leftMs));
    if (!page) throw new Error("other streams are reading");
    return page;
  }

  /**
   * Lets a reader in, before anything is answered.
   * @param position seq of the last change that it knows; null: it wants to know of new ones only
   * @returns opens the stream; to be called once, at once
   * @throws Problem `overloaded` where there is no place, `unavailable` while the process stops; or the database's error
   */
  async function admit(author: Author, position: number | null): Promise<(response: ServerResponse) => void> {
    const leave = places.take(author.owner);
    try {
      const start = position ?? (await glance([])).head;
      if (stopping) throw new Problem("unavailable", "this process is stopping: try again");
      return (response) => open(response, { author, position: start, leave });
    } catch (error) {
      leave();
      throw error;
    }
  }

  type Admitted = Pick<StreamOptions, "author" | "position"> & { leave: () => void };

  function open(response: ServerResponse, { author, position, leave }: Admitted): void {
    if (response.destroyed) {
      leave();
      return;
    }
    const stream = openChangeStream(response, {
      author,
      position,
      readRange,
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
