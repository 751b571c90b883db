// The segment files of a spool. One of them is open and grows, a group of clicks by one write; a full one is sealed, and
// each is removed when all its clicks are settled. A segment on which a write or an fsync failed is abandoned: nothing is
// ever written to that descriptor or flushed by it again, as the system may have marked as clean what never reached the
// disk (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020). What it holds can still be read, and
// is sent like everything else.
import { encodeHeader, HEADER_BLOCK, type SegmentHeader } from "./account.ts";
import type { FileSystem, SpoolFile } from "./file-system.ts";
import { createOperations } from "./operations.ts";

/** Where everything is settled a segment of this size is replaced, so that a crash leaves little to be sent twice. */
const ROLL_BYTES = 256 * 1024;
/** A disk that cannot be written to is tried again so often: an operator who made room sees it within a second or so. */
const RETRY_MS = 1000;
/** Removals and the last flush at a stop; the whole stop has 20 s. */
const CLOSE_MS = 2000;

export type Segment = {
  readonly number: number;
  readonly path: string;
  /** Bytes that are known to be in it. */
  size: number;
  /** Clicks in it that have not come to their end. */
  unsettled: number;
  /** Nothing is added to it any more. */
  sealed: boolean;
  abandoned: boolean;
  removed: boolean;
  writing: boolean;
  /** Written to since the last flush. */
  dirty: boolean;
  /** Its name is not known to be on the disk. */
  fresh: boolean;
  file: SpoolFile | null;
};

/** A part of a segment, from `from` to before `to`. */
export type Place = { segment: Segment; from: number; to: number };
/** `refused`: nothing was written. `uncertain`: nobody knows how much was. */
export type Stored = Place | "refused" | "uncertain";
export type AbandonCause = "write" | "sync";

export type SegmentsOptions = {
  fs: FileSystem;
  directory: string;
  maxBytes: number;
  segmentBytes: number;
  /** Number of the first new one; greater than all that are there. */
  firstNumber: number;
  /** What stands in the header of a segment that begins now. */
  header: (spooled: number) => Omit<SegmentHeader, "number" | "spooled">;
  now: () => number;
  /** Told what went wrong with the disk. */
  onTrouble: (what: string, error: unknown) => void;
};

export type Segments = ReturnType<typeof createSegments>;

export const segmentName = (number: number) => `clicks-${String(number).padStart(12, "0")}.spool`;
export const segmentNumber = (name: string) => Number(/^clicks-(\d{12})\.spool$/.exec(name)?.[1] ?? Number.NaN);

/** Creates the store of segments in a directory that nobody else uses. */
export function createSegments(options: SegmentsOptions) {
  const { fs, directory, maxBytes, header, now, onTrouble } = options;
  // A segment is removed as a whole: were there but one, a full spool would have room again only when it is empty.
  const segmentBytes = Math.min(options.segmentBytes, Math.floor(maxBytes / 4));
  const live = new Set<Segment>();
  const counts = { appends: 0, full: 0, syncs: 0, removeFailures: 0, abandoned: { write: 0, sync: 0 } };
  const operations = createOperations(onTrouble);
  let current: Segment | null = null;
  let nextNumber = options.firstNumber;
  let bytes = 0;
  let spooled = 0;
  let failuresInARow = 0;
  let retryAt = Number.NEGATIVE_INFINITY;
  /** Flushes go one after the other, so that a disk that hangs holds one thread of the pool at the most. */
  let flushes: Promise<unknown> = Promise.resolve();
  let removals: Promise<unknown> = Promise.resolve();

  /** A second failure without a success between them makes the next attempts wait. */
  function noteFailure(): void {
    if (failuresInARow > 0) retryAt = now() + RETRY_MS;
    failuresInARow += 1;
  }

  async function begin(): Promise<Segment | null> {
    const number = nextNumber;
    nextNumber += 1;
    const path = `${directory}/${segmentName(number)}`;
    const undo = (file: SpoolFile) =>
      void file
        .close()
        .then(() => fs.remove(path))
        .catch(() => {});
    const file = await operations.run("begin a segment", fs.open(path, "create"), undo);
    if (file !== null) {
      const block = encodeHeader({ ...header(spooled), number, spooled });
      const written = await operations.run("begin a segment", file.write(block, 0), () => undo(file));
      if (written === block.length) {
        const flags = { sealed: false, abandoned: false, removed: false, writing: false, dirty: true, fresh: true };
        current = { number, path, size: HEADER_BLOCK, unsettled: 0, ...flags, file };
        live.add(current);
        bytes += HEADER_BLOCK;
        return current;
      }
      if (!operations.stuck()) undo(file);
    }
    noteFailure();
    return null;
  }

  /** Flushes it, unless it is gone, given up or clean. */
  function flush(segment: Segment): Promise<unknown> {
    flushes = flushes.then(async () => {
      const { file, fresh } = segment;
      if (file === null || !segment.dirty || segment.abandoned || segment.removed) return;
      segment.dirty = false;
      try {
        await file.sync();
        if (fresh) await fs.syncDirectory(directory);
        segment.fresh = false;
        counts.syncs += 1;
      } catch (error) {
        abandon(segment, "sync", error);
      }
    });
    return flushes;
  }

  function release(segment: Segment): void {
    const { file } = segment;
    segment.file = null;
    // Whatever a close has to say was said by the flush before it.
    file?.close().catch(() => {});
  }

  function seal(segment: Segment): void {
    if (current === segment) current = null;
    segment.sealed = true;
    void flush(segment).then(() => release(segment));
    removeIfSettled(segment);
  }

  function abandon(segment: Segment, cause: AbandonCause, error: unknown): void {
    if (segment.abandoned) return;
    if (current === segment) current = null;
    segment.abandoned = true;
    segment.sealed = true;
    counts.abandoned[cause] += 1;
    onTrouble(`a segment was abandoned: ${cause} failed`, error);
    release(segment);
    removeIfSettled(segment);
  }

  function removeIfSettled(segment: Segment): void {
    if (!segment.sealed || segment.removed || segment.writing || segment.unsettled > 0) return;
    segment.removed = true;
    live.delete(segment);
    bytes -= segment.size;
    removals = removals.then(() =>
      fs.remove(segment.path).catch((error: unknown) => {
        counts.removeFailures += 1;
        onTrouble("a segment that is done with cannot be removed, and will be sent again", error);
      }),
    );
  }

  return {
    /** Takes over a segment that an earlier process left. */
    adopt({ number, size, clicks }: { number: number; size: number; clicks: number }): Segment {
      const flags = { sealed: true, abandoned: false, removed: false, writing: false, dirty: false, fresh: false };
      const path = `${directory}/${segmentName(number)}`;
      const segment = { number, path, size, unsettled: clicks, ...flags, file: null };
      live.add(segment);
      bytes += size;
      removeIfSettled(segment);
      return segment;
    },

    /** Writes a group of clicks behind the others. Never rejects, and resolves within a second. One call at a time. */
    async append(frames: Buffer, clicks: number): Promise<Stored> {
      if (operations.stuck() || now() < retryAt) return "refused";
      if (bytes + frames.length + (current === null ? HEADER_BLOCK : 0) > maxBytes) {
        counts.full += 1;
        return "refused";
      }
      if (current !== null && current.size > HEADER_BLOCK && current.size + frames.length > segmentBytes) seal(current);
      const segment = current ?? (await begin());
      if (segment?.file == null) return "refused";
      segment.writing = true;
      const written = await operations.run("write to a segment", segment.file.write(frames, segment.size));
      segment.writing = false;
      if (written !== frames.length) {
        noteFailure();
        segment.size += written ?? 0;
        bytes += written ?? 0;
        const short = `${written} of ${frames.length} bytes were written`;
        abandon(segment, "write", written === null ? operations.lastError() : new Error(short));
        removeIfSettled(segment);
        return "uncertain";
      }
      failuresInARow = 0;
      counts.appends += 1;
      const from = segment.size;
      segment.size += written;
      segment.unsettled += clicks;
      segment.dirty = true;
      bytes += written;
      spooled += clicks;
      return { segment, from, to: segment.size };
    },

    /** So many clicks of a segment have come to their end. */
    settle(segment: Segment, clicks: number): void {
      segment.unsettled -= clicks;
      const idle = segment === current && !segment.writing && segment.unsettled === 0;
      if (idle && segment.size >= ROLL_BYTES) seal(segment);
      else removeIfSettled(segment);
    },

    /** Begins to flush what was written since the last time. */
    sync(): void {
      if (current?.dirty && !operations.stuck()) void flush(current);
    },

    /** Reads a part of a segment. Rejects with the system's error. */
    async read({ path }: Segment, from: number, length: number): Promise<Buffer> {
      const file = await fs.open(path, "read");
      try {
        const part = Buffer.allocUnsafe(length);
        return part.subarray(0, await file.read(part, from));
      } finally {
        await file.close();
      }
    },

    /** Seals the last one, and waits until everything is flushed and removed, within a bound. Never rejects. */
    async close(): Promise<void> {
      if (current !== null) seal(current);
      await operations.run("flush the spool", Promise.all([flushes, removals]), undefined, CLOSE_MS);
    },

    spooled: () => spooled,
    stats: () => ({
      ...counts,
      bytes,
      segments: live.size,
      /** Whether the last write succeeded, and none is under way that does not end. */
      writable: failuresInARow === 0 && !operations.stuck(),
    }),
  };
}
