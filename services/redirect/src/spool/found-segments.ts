// What an earlier process left in a directory: which segments there are, what of them is still to be sent, and what is damaged.
import {
  type Account,
  CUTS_MAX,
  type Cut,
  decodeHeader,
  HEADER_BLOCK,
  type SegmentHeader,
  UnknownFormat,
} from "./account.ts";
import type { FileSystem, SpoolFile } from "./file-system.ts";
import { findFrames } from "./frame.ts";
import { segmentName, segmentNumber } from "./segment.ts";

/** Far longer than a frame; looking through so much takes some milliseconds, between which other things have their turn. */
const SCAN_BYTES = 256 * 1024;

/** A segment whose clicks, from `from` on, are to be sent; `settled`: those before, which are not. */
export type LeftPart = { number: number; size: number; from: number; clicks: number; settled: number };

type FoundSegment = LeftPart & {
  header: SegmentHeader | null;
  /** All that were in it, as far as is known. */
  all: number;
  /** Clicks that can be read, of those to be sent. */
  whole: number;
};

export type Found = {
  segments: readonly FoundSegment[];
  /** Those whose clicks have all come to their end, and that were not removed yet. */
  done: readonly { number: number; size: number }[];
  /** Greater than all numbers that were ever given here. */
  firstNumber: number;
  /** What is not to be read of segments that are there. */
  cuts: readonly Cut[];
  /** Every segment could be read. */
  isComplete: boolean;
  damaged: number;
};

type Options = { fs: FileSystem; directory: string; onTrouble: (what: string, error: unknown) => void };

/** Finds them. Rejects with the system's error where this process may not read, and with `UnknownFormat`. */
export async function findSegments(
  { fs, directory, onTrouble }: Options,
  files: readonly { name: string; size: number }[],
  former: Account | null,
): Promise<Found> {
  const all = files
    .map(({ name, size }) => ({ number: segmentNumber(name), size }))
    .filter(({ number }) => !Number.isNaN(number))
    .sort((a, b) => a.number - b.number);
  const numbered = all.filter(({ number }) => !isSettled(former, number));
  const pathOf = (number: number) => `${directory}/${segmentName(number)}`;
  const attempt = async <T>(read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (isDenied(error) || error instanceof UnknownFormat) throw error;
      onTrouble("a segment that an earlier process left cannot be read, and stays where it is", error);
      return undefined;
    }
  };
  const told: Cut[] = [...(former?.cuts ?? [])];
  const headed: { number: number; size: number; header: SegmentHeader | null }[] = [];
  for (const { number, size } of numbered) {
    const header = await attempt(() => reading(fs, pathOf(number), readHeader));
    if (header === undefined) continue;
    if (header !== null) told.push(...header.cuts);
    headed.push({ number, size, header });
  }
  const cuts = joinCuts(
    told,
    all.map(({ number }) => number),
  );
  const segments: FoundSegment[] = [];
  for (const each of headed) {
    const size = Math.min(each.size, ...cuts.flatMap(([number, end]) => (number === each.number ? end : [])));
    const segment = await attempt(() =>
      reading(fs, pathOf(each.number), (file) => lookThrough(file, { ...each, size }, former)),
    );
    if (segment !== undefined) segments.push(segment);
  }
  for (const [index, segment] of segments.entries()) addTold(segment, segments[index + 1]);
  return {
    segments,
    done: all.filter(({ number }) => isSettled(former, number)),
    firstNumber: Math.max(all.at(-1)?.number ?? 0, former?.front.number ?? 0, ...told.map(([number]) => number)) + 1,
    cuts,
    isComplete: segments.length === numbered.length,
    damaged: segments.reduce((total, { clicks, whole }) => total + clicks - whole, 0),
  };
}

/** One for each segment that is there; no process has more of them at a time than it writes down. */
function joinCuts(told: readonly Cut[], there: readonly number[]): Cut[] {
  const sizes = new Map<number, number>();
  for (const [number, size] of told)
    if (there.includes(number)) sizes.set(number, Math.min(size, sizes.get(number) ?? size));
  return [...sizes].slice(-CUTS_MAX);
}

/** Of a segment that was there when the account of its process began, and lies before the front. */
function isSettled(former: Account | null, number: number): boolean {
  return former !== null && number >= former.front.base && number < former.front.number;
}

async function reading<T>(fs: FileSystem, path: string, read: (file: SpoolFile) => Promise<T>): Promise<T> {
  const file = await fs.open(path, "read");
  try {
    return await read(file);
  } finally {
    await file.close();
  }
}

async function readHeader(file: SpoolFile): Promise<SegmentHeader | null> {
  const block = Buffer.alloc(HEADER_BLOCK);
  return decodeHeader(block.subarray(0, await file.read(block, 0)));
}

/** How many clicks were in a stretch of damage a segment does not say; it counts as one. */
async function lookThrough(
  file: SpoolFile,
  segment: { number: number; size: number; header: SegmentHeader | null },
  former: Account | null,
): Promise<FoundSegment> {
  const { number, size } = segment;
  const front = former?.front.number === number ? former.front : { from: 0, clicks: 0 };
  const from = Math.min(size, Math.max(HEADER_BLOCK, front.from));
  const part = Buffer.allocUnsafe(Math.max(1, Math.min(SCAN_BYTES, size)));
  let clicks = 0;
  let whole = 0;
  for (let at = from; at < size; ) {
    const length = Math.min(size - at, await file.read(part, at));
    const { count, used, damaged } = findFrames(part.subarray(0, length), { last: at + length >= size });
    whole += count;
    clicks += count + damaged;
    if (used === 0) break;
    at += used;
  }
  return { ...segment, from, clicks, settled: front.clicks, all: front.clicks + clicks, whole };
}

/** The header of the next segment says how many clicks one must have had. */
function addTold(segment: FoundSegment, next: FoundSegment | undefined): void {
  const { number, header, all } = segment;
  if (!header || next?.number !== number + 1 || next.header?.incarnation !== header.incarnation) return;
  const more = Math.max(0, next.header.spooled - header.spooled - all);
  segment.clicks += more;
  segment.all += more;
}

const isDenied = (error: unknown) =>
  ["EACCES", "EPERM", "EROFS"].includes((error as NodeJS.ErrnoException | null)?.code ?? "");
