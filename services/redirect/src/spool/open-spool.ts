// Opens a directory as the spool of this process: takes its lock, finds out what an earlier process left there and what
// that one may have lost, and writes down the beginning of its own account, before the first click.
import { ConfigError } from "@linkfence/service-shell";
import { beginAccount, decodeHeader, HEADER_BLOCK, type SegmentHeader, type Start, UnknownFormat } from "./account.ts";
import { type AccountFile, openAccountFile, type Standing } from "./account-file.ts";
import { type Drops, NO_DROPS } from "./drops.ts";
import type { FileSystem } from "./file-system.ts";
import { readFrames } from "./frame.ts";
import { createSegments, type Segment, segmentName, segmentNumber } from "./segments.ts";

/**
 * What a power loss takes beside what a crash does: the clicks of a second or so that are not stored yet. A flush takes a
 * disk some milliseconds, so that one a second leaves it free for everything else.
 */
const SYNC_EVERY_MS = 1000;
/** Far longer than a frame, and a small part of a segment. */
const SCAN_BYTES = 1024 * 1024;

/** Ends with its process at the latest. */
export type Lock = { release(): Promise<void> };

export type SpoolOptions = {
  directory: string;
  maxBytes: number;
  segmentBytes: number;
  fs: FileSystem;
  /** Resolves with null where another process has the lock. */
  lock: (directory: string) => Promise<Lock | null>;
  /** This process. */
  start: Start;
  /** Milliseconds of a clock that never steps. */
  now: () => number;
  onTrouble: (what: string, error: unknown) => void;
};

export type Spool = Awaited<ReturnType<typeof openSpool>>;
/** A segment of an earlier process, whose clicks are to be sent first. */
export type Left = { segment: Segment; clicks: number };

type FoundSegment = { number: number; size: number; header: SegmentHeader | null; clicks: number };

/** Opens it. Throws a ConfigError where the directory cannot be used. */
export async function openSpool(options: SpoolOptions) {
  const { directory, fs, start, now, onTrouble } = options;
  const lock = await refusing(directory, () => options.lock(directory));
  if (lock === null)
    throw unusable(directory, "another process uses it: each redirect process needs a directory of its own");
  try {
    const file = await refusing(directory, () => openAccountFile({ fs, directory, now, onTrouble }));
    const { found, lastNumber } = await refusing(directory, () => findSegments(options));
    const account = beginAccount(start, file.former, found);
    await file.begin(account);
    const { first, lostEarlier, dropsEarlier } = account;
    const lostLast = lostEarlier - (file.former?.lostEarlier ?? 0);
    return assemble(options, { lock, file, found, lastNumber, first, lostEarlier, lostLast, dropsEarlier });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

type Opened = {
  lock: Lock;
  file: AccountFile;
  found: readonly FoundSegment[];
  lastNumber: number;
  first: Start;
  lostEarlier: number;
  lostLast: number;
  dropsEarlier: Drops;
};

function assemble(options: SpoolOptions, opened: Opened) {
  const { start, now } = options;
  const { incarnation } = start;
  const { lock, file, found, lastNumber, first, lostEarlier, lostLast, dropsEarlier } = opened;
  let standing: Standing | null = null;
  let syncedAt = now();
  const segments = createSegments({
    ...options,
    firstNumber: lastNumber + 1,
    header: () => ({ incarnation, unspooled: standing?.unspooled ?? 0, drops: standing?.drops ?? NO_DROPS }),
  });
  const left: Left[] = found.map((each) => ({ segment: segments.adopt(each), clicks: each.clicks }));

  return {
    /** In the order in which they were written. */
    left: left.filter(({ clicks }) => clicks > 0),
    append: segments.append,
    settle: segments.settle,
    read: segments.read,
    /** Does in the background what is due; to be called every few milliseconds. */
    tick(at: Standing): void {
      standing = at;
      file.tick(at);
      if (now() - syncedAt < SYNC_EVERY_MS) return;
      syncedAt = now();
      segments.sync();
    },
    /** Keeps what is not sent for the next process. Never rejects. */
    async close(last: Standing): Promise<void> {
      await segments.close();
      await file.end(last, segments.spooled());
      await lock.release();
    },
    /** The first process on this directory. */
    first,
    /** Clicks that processes before this one may have lost by an unclean end, at the most; the last one alone; and drops. */
    earlier: { lost: lostEarlier, lostLast, drops: dropsEarlier },
    stats: () => ({ ...segments.stats(), ...file.stats() }),
  };
}

/** What segments there are. `lastNumber` is also that of one which cannot be read. */
async function findSegments({ fs, directory, onTrouble }: SpoolOptions) {
  const files = (await fs.list(directory))
    .map(({ name, size }) => ({ number: segmentNumber(name), size }))
    .filter(({ number }) => !Number.isNaN(number))
    .sort((a, b) => a.number - b.number);
  const found: FoundSegment[] = [];
  for (const { number, size } of files) {
    const path = `${directory}/${segmentName(number)}`;
    try {
      found.push({ number, size, ...(await readSegment(fs, path, size)) });
    } catch (error) {
      if (isDenied(error) || error instanceof UnknownFormat) throw error;
      onTrouble("a segment that an earlier process left cannot be read, and stays where it is", error);
    }
  }
  for (const [index, segment] of found.entries())
    segment.clicks = Math.max(segment.clicks, clicksTold(segment, found[index + 1]));
  return { found, lastNumber: files.at(-1)?.number ?? 0 };
}

/** How many clicks a segment must have had, by the header of the next one; 0 where that says nothing. */
function clicksTold({ number, header }: FoundSegment, next: FoundSegment | undefined): number {
  const isNext = next?.number === number + 1 && next.header?.incarnation === header?.incarnation;
  return isNext && header && next.header ? next.header.spooled - header.spooled : 0;
}

/** Looks through a segment. How many clicks were in a stretch of damage it does not say; it counts as one. */
async function readSegment(fs: FileSystem, path: string, size: number) {
  const file = await fs.open(path, "read");
  try {
    const block = Buffer.alloc(HEADER_BLOCK);
    const header = decodeHeader(block.subarray(0, await file.read(block, 0)));
    const part = Buffer.allocUnsafe(Math.max(1, Math.min(SCAN_BYTES, size)));
    let clicks = 0;
    for (let at = HEADER_BLOCK; at < size; ) {
      const length = await file.read(part, at);
      const { payloads, used, damaged } = readFrames(part.subarray(0, length), { last: at + length >= size });
      clicks += payloads.length + damaged;
      if (used === 0) break;
      at += used;
    }
    return { header, clicks };
  } finally {
    await file.close();
  }
}

const code = (error: unknown) => (error as NodeJS.ErrnoException | null)?.code ?? "";
const isDenied = (error: unknown) => ["EACCES", "EPERM", "EROFS"].includes(code(error));

const REASONS: Record<string, string> = {
  ENOENT: "there is no such directory",
  ENOTDIR: "it is no directory",
  EACCES: "this process may not write there",
  EPERM: "this process may not write there",
  EROFS: "it can only be read",
};

async function refusing<T>(directory: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof UnknownFormat)
      throw unusable(directory, `a later version of linkfence wrote there: ${error.message}`);
    throw unusable(directory, REASONS[code(error)] ?? (error instanceof Error ? error.message : String(error)));
  }
}

function unusable(directory: string, reason: string): ConfigError {
  return new ConfigError([`CLICK_SPOOL_DIR cannot be used (${directory}): ${reason}`]);
}
