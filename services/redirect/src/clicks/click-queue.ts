// Clicks that wait to be sent, oldest first, in stretches: a group that is in memory, in a segment, or in both; or a part
// of a segment, of any length. Memory is bounded; what goes beyond stays in its segment alone, and what is in none either
// has no place. Nothing here waits, and nothing touches a file.
import type { Left } from "../spool/open-spool.ts";
import type { Place, Segment, Stored } from "../spool/segment.ts";

/** What a stretch takes up beside its frames: the objects, and the buffer's own. */
const STRETCH_BYTES = 256;

export type Stretch = {
  /** How many are in it, as far as is known: a segment of an earlier process may turn out to hold others. */
  clicks: number;
  /** Where they are in memory. */
  frames: Buffer | null;
  place: Place | null;
  /** A write failed half way: a part of it may be found in a segment after a crash. */
  uncertain: boolean;
  /** Of an earlier process. */
  isLeft: boolean;
};

/** Whether another process would find it. */
export const isPlaced = ({ place }: Stretch): boolean => place !== null && !place.segment.nameless;

export type ClickQueue = ReturnType<typeof createClickQueue>;

/**
 * What is in a segment, too, is kept in memory only where it is soon sent: as much as some batches have, and nothing once
 * clicks before it have to be read back. More would be a copy that nobody needs, and that the collector has to carry along.
 */
const COPY_BYTES = 1024 ** 2;

/** Creates a queue that keeps up to `memoryBytes` of frames in memory; of those that are in a segment, too, 1 MiB at the most. */
export function createClickQueue(memoryBytes: number) {
  const copyBytes = Math.min(memoryBytes, COPY_BYTES);
  // A list whose front is cut off now and then: shift() of a long array moves all of it.
  let stretches: Stretch[] = [];
  let first = 0;
  let clicks = 0;
  let unplaced = 0;
  let bytes = 0;
  /** Stretches that are in no memory. */
  let unread = 0;

  /** In memory alone since their segment lost its name: to be written to another one. */
  let homeless: Stretch[] = [];

  const weigh = ({ frames }: Stretch) => (frames === null ? 0 : frames.length + STRETCH_BYTES);

  function push(stretch: Stretch): void {
    stretches.push(stretch);
    clicks += stretch.clicks;
    if (!isPlaced(stretch)) unplaced += stretch.clicks;
    bytes += weigh(stretch);
    if (stretch.frames === null) unread += 1;
  }

  /** Lengthens the last stretch where it ends at that place, and is in no memory. */
  function extend({ segment, from, to }: Place, count: number): boolean {
    const last = stretches.length > first ? stretches.at(-1) : undefined;
    if (last?.place == null || last.frames !== null) return false;
    if (last.place.segment !== segment || last.place.to !== from) return false;
    last.place.to = to;
    last.clicks += count;
    clicks += count;
    return true;
  }

  return {
    /** A segment that an earlier process left, without its header. */
    addLeft({ segment, clicks: count, from }: Left): void {
      push({ clicks: count, frames: null, place: { segment, from, to: segment.size }, uncertain: false, isLeft: true });
    },
    /** A new group. Returns false where it has no place, neither in a segment nor in memory. */
    add(frames: Buffer, count: number, stored: Stored): boolean {
      const place = typeof stored === "string" ? null : stored;
      const room = place === null ? memoryBytes : unread > 0 ? 0 : copyBytes;
      const fits = bytes + frames.length + STRETCH_BYTES <= room;
      if (!fits && place === null) return false;
      if (!fits && place !== null && extend(place, count)) return true;
      push({ clicks: count, frames: fits ? frames : null, place, uncertain: stored === "uncertain", isLeft: false });
      return true;
    },
    /** The stretches at the front, oldest first. */
    *[Symbol.iterator](): Generator<Stretch> {
      for (let index = first; index < stretches.length; index += 1) yield stretches[index] as Stretch;
    },
    /** Some clicks of the first stretch have come to their end; where all of it has, it goes. */
    settle(count: number, isWhole: boolean): void {
      const stretch = stretches[first];
      if (stretch === undefined) return;
      stretch.clicks -= count;
      clicks -= count;
      if (!isPlaced(stretch)) unplaced -= count;
      if (!isWhole) return;
      clicks -= stretch.clicks;
      bytes -= weigh(stretch);
      if (stretch.frames === null) unread -= 1;
      first += 1;
      if (first < 1024 || first * 2 < stretches.length) return;
      stretches = stretches.slice(first);
      first = 0;
    },
    /** So many bytes at the beginning of the first stretch, which is in memory, have come to their end. */
    cut(length: number): void {
      const stretch = stretches[first];
      if (!stretch?.frames) return;
      // A copy, as a part would hold all of it in memory.
      stretch.frames = Buffer.from(stretch.frames.subarray(length));
      bytes -= length;
      if (stretch.place !== null) stretch.place.from += length;
    },
    /** The first stretch turns out to have so many more clicks, or fewer. */
    correct(by: number): void {
      const stretch = stretches[first];
      if (stretch === undefined) return;
      stretch.clicks += by;
      clicks += by;
      if (!isPlaced(stretch)) unplaced += by;
    },
    /** A segment has lost its name. Returns how many of its clicks are in memory, and in it no longer as far as this knows. */
    lose(segment: Segment): number {
      let kept = 0;
      for (let index = first; index < stretches.length; index += 1) {
        const stretch = stretches[index] as Stretch;
        if (stretch.place?.segment !== segment) continue;
        unplaced += stretch.clicks;
        if (stretch.frames === null) continue;
        stretch.place = null;
        kept += stretch.clicks;
        homeless.push(stretch);
      }
      return kept;
    },
    /** Those that `lose` found in memory, once. */
    takeHomeless(): Stretch[] {
      const taken = homeless;
      if (taken.length > 0) homeless = [];
      return taken;
    },
    /** One of them has a place again; false where it has come to its end meanwhile. */
    place(stretch: Stretch, stored: Stored): boolean {
      if (stretch.clicks === 0) return false;
      stretch.uncertain = stored === "uncertain";
      if (typeof stored === "string") return true;
      stretch.place = stored;
      unplaced -= stretch.clicks;
      return true;
    },
    /** Where the first click is that is in a segment; null where none is. */
    front() {
      for (let index = first; index < stretches.length; index += 1) {
        const { place } = stretches[index] as Stretch;
        if (place !== null) return { number: place.segment.number, from: place.from, clicks: place.segment.settled };
      }
      return null;
    },
    clicks: () => clicks,
    /** Those of them that no other process would find. */
    unplaced: () => unplaced,
    bytes: () => bytes,
  };
}
