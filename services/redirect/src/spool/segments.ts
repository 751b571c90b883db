// The segment files of a spool. One of them is open and grows, a group of clicks by one write; a full one is sealed, and
// each is removed when all its clicks are settled. A segment on which a write or an fsync failed is abandoned: nothing is
// ever written to that descriptor or flushed by it again, as the system may have marked as clean what never reached the
// disk (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020). What it holds can still be read, and
// is sent like everything else. One whose name no longer leads to it is abandoned, too: no other process would find it.
import { CUTS_MAX, type Cut, encodeHeader, type Front, HEADER_BLOCK, type SegmentHeader } from "./account.ts";
import type { FileSystem, SpoolFile } from "./file-system.ts";
import { createOperations } from "./operations.ts";
import { type AbandonCause, type Adopted, FRESH, type Segment, type Stored, segmentName, TROUBLES } from "./segment.ts";

/** Where everything is settled a segment of this size is replaced, so that a crash leaves little to be sent twice. */
const ROLL_BYTES = 256 * 1024;
/** A disk that cannot be written to is tried again so often: an operator who made room sees it within a second or so. */
const RETRY_MS = 1000;
/** Removals and the last flush at a stop; the whole stop has 20 s. */
const CLOSE_MS = 2000;

export type SegmentsOptions = {
  fs: FileSystem;
  directory: string;
  maxBytes: number;
  segmentBytes: number;
  /** Number of the first new one; greater than all that are there. */
  firstNumber: number;
  /** Of segments that earlier processes left. */
  cuts: readonly Cut[];
  /** What stands in the header of a segment that begins now. */
  header: () => Omit<SegmentHeader, "number" | "spooled" | "cuts">;
  /** Segments before this one may be removed when they are settled: so much is written down. */
  settledBefore: () => number;
  /** Told of each that has become nameless. */
  onNameless: (segment: Segment) => void;
  now: () => number;
  /** Told what went wrong with the disk. */
  onTrouble: (what: string, error: unknown) => void;
};

export type Segments = ReturnType<typeof createSegments>;

/** Creates the store of segments in a directory that nobody else uses. */
export function createSegments(options: SegmentsOptions) {
  const { fs, directory, maxBytes, header, now, onTrouble } = options;
  const { settledBefore, onNameless } = options;
  // A segment is removed as a whole: were there but one, a full spool would have room again only when it is empty.
  const segmentBytes = Math.min(options.segmentBytes, Math.floor(maxBytes / 4));
  const live = new Set<Segment>();
  const counts = { appends: 0, full: 0, syncs: 0, removeFailures: 0, abandoned: { write: 0, sync: 0, name: 0 } };
  const operations = createOperations(onTrouble);
  let current: Segment | null = null;
  let isFull = false;
  let nextNumber = options.firstNumber;
  let bytes = 0;
  let spooled = 0;
  /** Segments that a write failed on and that are there still, and what is certainly in them. */
  let failed: { cut: Cut; isDisowned: boolean }[] = options.cuts.map((cut) => ({ cut, isDisowned: true }));
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

  const cuts = (): Cut[] => failed.flatMap(({ cut, isDisowned }) => (isDisowned ? [cut] : []));
  const mayFail = () => failed.length < CUTS_MAX;

  function forget(gone: Segment): void {
    failed = failed.filter(({ cut: [number] }) => number !== gone.number);
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
      const block = encodeHeader({ ...header(), number, spooled, cuts: cuts() });
      const written = await operations.run("begin a segment", file.write(block, 0), () => undo(file));
      if (written === block.length) {
        current = { ...FRESH, number, path, size: HEADER_BLOCK, dirty: true, fresh: true, file };
        live.add(current);
        bytes += HEADER_BLOCK;
        return current;
      }
      if (!operations.stuck()) undo(file);
    }
    noteFailure();
    return null;
  }

  /** Flushes it, unless it is gone, given up or clean, and looks whether its name leads to it still. */
  function flush(segment: Segment): Promise<unknown> {
    flushes = flushes.then(async () => {
      const { file } = segment;
      if (file === null || segment.abandoned || segment.removed) return;
      try {
        if (segment.dirty) await flushNow(segment, file);
        if (!(await fs.leadsTo(segment.path, file)) && !segment.abandoned && !segment.removed) lose(segment);
      } catch (error) {
        abandon(segment, "sync", error);
      }
    });
    return flushes;
  }

  async function flushNow(segment: Segment, file: SpoolFile): Promise<void> {
    const { fresh } = segment;
    segment.dirty = false;
    await file.sync();
    if (fresh) await fs.syncDirectory(directory);
    segment.fresh = false;
    counts.syncs += 1;
  }

  function lose(segment: Segment): void {
    segment.nameless = true;
    abandon(segment, "name", new Error(segment.path));
    onNameless(segment);
    removeIfSettled(segment);
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
    void flush(segment).then(() => segment.nameless || release(segment));
    removeIfSettled(segment);
  }

  function abandon(segment: Segment, cause: AbandonCause, error: unknown): void {
    if (segment.abandoned) return;
    if (current === segment) current = null;
    segment.abandoned = true;
    segment.sealed = true;
    counts.abandoned[cause] += 1;
    onTrouble(TROUBLES[cause], error);
    if (segment.nameless) return;
    release(segment);
    removeIfSettled(segment);
  }

  function removeIfSettled(segment: Segment): void {
    if (!segment.sealed || segment.removed || segment.writing || segment.unsettled > 0) return;
    // In one that was given up with its first group nobody is to find anything.
    const isWaste = segment.abandoned && segment.settled === 0;
    if (!segment.nameless && !isWaste && segment.number >= settledBefore()) return;
    segment.removed = true;
    live.delete(segment);
    bytes -= segment.size;
    if (segment.nameless) {
      forget(segment);
      release(segment);
      return;
    }
    removals = removals.then(() =>
      fs.remove(segment.path).then(
        () => forget(segment),
        (error: unknown) => {
          counts.removeFailures += 1;
          onTrouble("a segment that is done with cannot be removed, and will be sent again", error);
        },
      ),
    );
  }

  return {
    /** Takes over a segment that an earlier process left. */
    adopt({ number, size, clicks, settled }: Adopted): Segment {
      const path = `${directory}/${segmentName(number)}`;
      const segment: Segment = { ...FRESH, number, path, size, unsettled: clicks, settled, sealed: true };
      live.add(segment);
      bytes += size;
      removeIfSettled(segment);
      return segment;
    },

    /** Writes a group of clicks behind the others. Never rejects, and resolves within a second. One call at a time. */
    async append(frames: Buffer, clicks: number): Promise<Stored> {
      isFull = false;
      if (operations.stuck() || now() < retryAt || !mayFail()) return "refused";
      if (bytes + frames.length + (current === null ? HEADER_BLOCK : 0) > maxBytes) {
        counts.full += 1;
        isFull = true;
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
        failed.push({ cut: [segment.number, segment.size - (written ?? 0)], isDisowned: false });
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
      segment.settled += clicks;
      const idle = segment === current && !segment.writing && segment.unsettled === 0;
      if (idle && segment.size >= ROLL_BYTES) seal(segment);
      else removeIfSettled(segment);
    },

    /** So many more clicks of it, or fewer, wait than was known. */
    correct(segment: Segment, by: number): void {
      segment.unsettled += by;
    },

    /** Begins to flush what was written since the last time. */
    sync(): void {
      if (current !== null && !operations.stuck()) void flush(current);
    },

    /** Removes what has come to its end, as far as that is written down. */
    sweep(): void {
      for (const segment of live) removeIfSettled(segment);
    },

    /** The last group found no room, here or on the disk, and segments that have come to their end could make some. */
    wantsRoom: () =>
      (isFull || failuresInARow > 0) && [...live].some(({ sealed, unsettled }) => sealed && unsettled === 0),

    /** Clicks of groups that were `uncertain` are dropped: no other process is to find any of them. */
    disown(): void {
      for (const each of failed) each.isDisowned = true;
    },
    cuts,

    /** Where the next group will be written. */
    end: (): Omit<Front, "base" | "own"> =>
      current === null
        ? { number: nextNumber, from: 0, clicks: 0 }
        : { number: current.number, from: current.size, clicks: current.settled },

    /** Reads as much of a segment as `part` has room for, into it. Rejects with the system's error. */
    async read({ path, nameless, file: own }: Segment, from: number, part: Buffer): Promise<Buffer> {
      if (nameless && own !== null) return part.subarray(0, await own.read(part, from));
      const file = await fs.open(path, "read");
      try {
        return part.subarray(0, await file.read(part, from));
      } finally {
        await file.close();
      }
    },

    /** Seals the last one, and waits until everything is flushed, within a bound. Never rejects. */
    async seal(): Promise<void> {
      if (current !== null) seal(current);
      await operations.run("flush the spool", flushes, undefined, CLOSE_MS);
    },

    /** Waits until everything is removed that has come to its end, within a bound. Never rejects. */
    async close(): Promise<void> {
      for (const segment of live) if (segment.nameless) release(segment);
      await operations.run("remove what is done with", removals, undefined, CLOSE_MS);
    },

    stats: () => ({
      ...counts,
      bytes,
      segments: live.size,
      /** Whether the last write succeeded, none is under way that does not end, and another one may be tried. */
      writable: failuresInARow === 0 && !operations.stuck() && mayFail(),
    }),
  };
}
