// Takes batches from the front of the queue, from memory or back from the segments, and takes them out of it when they
// have come to their end.
import { CLICK_BATCH_LIMIT } from "@linkfence/contracts";
import { FRAME_HEAD, findFrames, PAYLOAD_MAX } from "../spool/frame.ts";
import type { Spool } from "../spool/open-spool.ts";
import { type ClickQueue, isPlaced, type Stretch } from "./click-queue.ts";

/** The ingest reads bodies of 2 MiB; a group of the longest clicks has less than 1.3 MiB. */
const BATCH_BYTES = 1_500_000;
/** A little more than a usual batch. */
const READ_BYTES = Math.max(512 * 1024, FRAME_HEAD + PAYLOAD_MAX);
/** A read that fails for want of descriptors or memory succeeds a little later; one that fails by damage never does. */
const READ_TRIES = 5;

type Part = {
  stretch: Stretch;
  clicks: number;
  /** So many of them cannot be read. They come to their end with the others, so that it is written down at once. */
  damaged: number;
  to: number;
  /** Bytes of frames in memory that they are, where the stretch has more; else 0. */
  cut: number;
};

export type Batch = {
  clicks: number;
  /** Each click as JSON, in whole frames. */
  frames: Buffer[];
  /** In which stretches they are, and up to where in the segment; 0 where all of a stretch is in memory. */
  parts: Part[];
};

export type BatchCounts = {
  /** Clicks of earlier processes found beyond those that were expected. */
  found: number;
  /** Clicks of a segment that could not be read. */
  damaged: number;
  /** Clicks of this process that came to their end: those in segments, and those that were in none. */
  settled: number;
  unspooled: number;
  /** Clicks of earlier processes that came to their end, less those that were found. */
  leftSettled: number;
  readFailures: number;
};

export type ClickBatches = ReturnType<typeof createClickBatches>;

/** Creates the source of batches. `spool` is null where there are no segments. */
export function createClickBatches(queue: ClickQueue, spool: Spool | null) {
  const counts: BatchCounts = { found: 0, damaged: 0, settled: 0, unspooled: 0, leftSettled: 0, readFailures: 0 };
  let failuresInARow = 0;
  let clicksMax = CLICK_BATCH_LIMIT;
  /** What is read back. One batch is under way at a time, and the next one is read when that has come to its end. */
  let room: Buffer | undefined;

  /** Takes stretches in memory, as many as fit, or the beginning of one that does not. */
  function fromMemory(): Batch {
    const batch: Batch = { clicks: 0, frames: [], parts: [] };
    let bytes = 0;
    for (const stretch of queue) {
      const { frames, clicks } = stretch;
      if (frames === null) break;
      bytes += frames.length;
      const isFull = batch.clicks + clicks > clicksMax || bytes > BATCH_BYTES;
      if (batch.parts.length > 0 && isFull) break;
      if (clicks > clicksMax) return beginningOf(stretch, frames);
      batch.clicks += clicks;
      batch.frames.push(frames);
      batch.parts.push({ stretch, clicks, damaged: 0, to: 0, cut: 0 });
    }
    return batch;
  }

  function beginningOf(stretch: Stretch, frames: Buffer): Batch {
    const { runs, count: clicks, used } = findFrames(frames, { last: true, limit: clicksMax });
    return { clicks, frames: runs, parts: [{ stretch, clicks, damaged: 0, to: 0, cut: used }] };
  }

  /** Reads on where the first stretch begins. Null where nothing was found there; then it has grown shorter, or is gone. */
  async function fromSegment(stretch: Stretch): Promise<Batch | null> {
    const { place } = stretch;
    if (place === null || spool === null) return null;
    const { segment, from, to } = place;
    const length = Math.min(READ_BYTES, to - from);
    room ??= Buffer.allocUnsafeSlow(READ_BYTES);
    const bytes = await spool.read(segment, from, room.subarray(0, length));
    // Somebody has cut the file off.
    if (bytes.length < length) place.to = from + bytes.length;
    const last = bytes.length < length || from + length >= to;
    const { runs, count, used } = findFrames(bytes, { last, limit: clicksMax });
    // The stretch may have grown meanwhile, and may until the batch is settled.
    const isWhole = from + used >= place.to;
    addFound(stretch, count);
    // What is not there is damaged.
    const damaged = isWhole ? stretch.clicks - count : 0;
    const part = { stretch, clicks: count + damaged, damaged, to: from + used, cut: 0 };
    if (count > 0) return { clicks: count, frames: runs, parts: [part] };
    settlePart(part);
    return null;
  }

  /** What is there beyond what was expected. */
  function addFound(stretch: Stretch, there: number): void {
    const by = there - stretch.clicks;
    if (by <= 0) return;
    queue.correct(by);
    counts.found += by;
    if (stretch.isLeft) counts.leftSettled -= by;
    else counts.settled -= by;
    if (stretch.place !== null) spool?.correct(stretch.place.segment, by);
  }

  function settlePart({ stretch, clicks, damaged, to, cut }: Part): void {
    const { frames, place, uncertain, isLeft } = stretch;
    counts.damaged += damaged;
    if (isLeft) counts.leftSettled += clicks;
    else if (isPlaced(stretch)) counts.settled += clicks;
    else if (!uncertain) counts.unspooled += clicks;
    if (frames === null && place !== null) place.from = to;
    if (cut > 0) queue.cut(cut);
    queue.settle(clicks, cut === 0 && (frames !== null || place === null || to >= place.to));
    if (place !== null) spool?.settle(place.segment, clicks);
  }

  /** After some failures the whole stretch is given up. */
  function noteReadFailure(stretch: Stretch): void {
    counts.readFailures += 1;
    failuresInARow += 1;
    if (failuresInARow < READ_TRIES) return;
    failuresInARow = 0;
    const { clicks, place } = stretch;
    settlePart({ stretch, clicks, damaged: clicks, to: place?.to ?? 0, cut: 0 });
  }

  return {
    /**
     * The next batch; null where there is none yet: nothing waits, or what was read held no click. Rejects with the
     * system's error where a segment cannot be read.
     */
    async next(): Promise<Batch | null> {
      const [stretch] = queue;
      if (stretch === undefined) return null;
      if (stretch.frames !== null) return fromMemory();
      try {
        const batch = await fromSegment(stretch);
        failuresInARow = 0;
        return batch;
      } catch (error) {
        noteReadFailure(stretch);
        throw error;
      }
    },
    /**
     * A batch is larger than somebody on the way to the ingest lets pass. Makes this one, and all after it, half as large;
     * false where it is a single click.
     */
    divide({ clicks }: Batch): boolean {
      if (clicks <= 1) return false;
      clicksMax = Math.floor(clicks / 2);
      return true;
    },
    /** A batch has come to its end. */
    settle({ parts }: Batch): void {
      for (const part of parts) settlePart(part);
    },
    counts: (): Readonly<BatchCounts> => counts,
  };
}
