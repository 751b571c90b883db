// What survives a process beside the clicks: how many it may have accepted, and how many of them have come to their end.
// Both are JSON in a frame, in a block of fixed size: the account in two blocks of a file of its own, written in turn and
// in place, so that one of them is always whole and a full disk does not matter; and the header of each segment.
import { type Drops, makeDrops } from "./drops.ts";
import { encodeFrames, readFrames } from "./frame.ts";

/** Both blocks of an account lie in one page of 4 KiB. The longest account has about 700 bytes. */
export const ACCOUNT_BLOCK = 1024;
/** The longest header has about 300 bytes. */
export const HEADER_BLOCK = 512;
const FORMAT = 1;

/** A process, and when it was started, in ms since 1970. */
export type Start = { incarnation: string; at: number };

export type Account = {
  /** Id of the process. */
  incarnation: string;
  /** Id and start, in ms since 1970, of the first process on this directory: since then its losses are summed up. */
  first: Start;
  /** Rises with each writing; the greater one of two blocks counts. */
  seq: number;
  /** The process has accepted no more clicks than this, whenever it ended. */
  reserved: number;
  /** Clicks of this process that have come to their end: the ingest answered for them, or they were dropped. */
  ended: number;
  /** Those of them that were in no segment. */
  unspooled: number;
  /** Clicks that this process dropped. */
  drops: Drops;
  /** Clicks that earlier processes on this directory may have lost, at the most, and those that they dropped. */
  lostEarlier: number;
  dropsEarlier: Drops;
};

export type SegmentHeader = {
  incarnation: string;
  number: number;
  /** Clicks of this process that were written to the segments before this one. */
  spooled: number;
  /** As in the account, at the time when the segment was begun. */
  unspooled: number;
  drops: Drops;
};

/** Written by a later version, which may keep things that this one would lose. */
export class UnknownFormat extends Error {}

function encodeBlock(content: object, size: number): Buffer {
  const block = Buffer.alloc(size);
  const frame = encodeFrames([JSON.stringify({ format: FORMAT, ...content })]);
  if (frame.length > size) throw new RangeError(`${frame.length} bytes fit no block of ${size}`);
  frame.copy(block);
  return block;
}

/** The content of a block, or null where it is damaged. Throws `UnknownFormat`. */
function decodeBlock(block: Buffer): Record<string, unknown> | null {
  const { payloads, damaged } = readFrames(block, { last: true, limit: 1 });
  const [payload] = payloads;
  if (payload === undefined || damaged > 0) return null;
  const content = JSON.parse(payload.toString("utf8")) as Record<string, unknown>;
  if (content.format !== FORMAT) throw new UnknownFormat(`format ${String(content.format)} is not known`);
  return content;
}

export const encodeAccount = (account: Account) => encodeBlock(account, ACCOUNT_BLOCK);
export const encodeHeader = (header: SegmentHeader) => encodeBlock(header, HEADER_BLOCK);

/** The account in a file: the later one of its two blocks, or null where neither is whole. Throws `UnknownFormat`. */
export function decodeAccount(file: Buffer): Account | null {
  const blocks = [file.subarray(0, ACCOUNT_BLOCK), file.subarray(ACCOUNT_BLOCK, 2 * ACCOUNT_BLOCK)];
  const [one, other] = blocks.map(decodeBlock) as (Account | null)[];
  if (!one || !other) return one ?? other ?? null;
  return one.seq > other.seq ? one : other;
}

/** The header of a segment, or null where it is damaged. Throws `UnknownFormat`. */
export function decodeHeader(file: Buffer): SegmentHeader | null {
  return decodeBlock(file.subarray(0, HEADER_BLOCK)) as SegmentHeader | null;
}

/** The place of an account in its file, so that the one before it stays whole. */
export const accountPosition = (seq: number) => (seq % 2) * ACCOUNT_BLOCK;

export type LeftSegment = { header: SegmentHeader | null; clicks: number };

/**
 * The most clicks that a process which ended without a word can have lost: what it may have accepted, less what is known to
 * have come to its end, or to lie in a segment or to have lain in one before the last that was found. What the process
 * wrote to segments that nobody finds, after a power loss, is not known to be anywhere.
 */
export function mayBeLost(
  { incarnation, reserved, ended, unspooled }: Account,
  segments: readonly LeftSegment[],
): number {
  const known = segments.flatMap(({ header, clicks }) =>
    header?.incarnation === incarnation ? [header.spooled + clicks + Math.max(unspooled, header.unspooled)] : [],
  );
  return Math.max(0, reserved - Math.max(ended, ...known));
}

/** All that was dropped by a process and by those before it, as far as it came to write it down. */
export function sumDrops({ incarnation, drops, dropsEarlier }: Account, segments: readonly LeftSegment[]): Drops {
  const headers = segments.flatMap(({ header }) => (header?.incarnation === incarnation ? [header.drops] : []));
  return makeDrops((reason) => dropsEarlier[reason] + Math.max(drops[reason], ...headers.map((each) => each[reason])));
}

/** How the account of a process begins that comes after others. */
export function beginAccount(
  start: Start,
  former: Account | null,
  segments: readonly LeftSegment[],
): Omit<Account, "reserved"> {
  const none = makeDrops(() => 0);
  return {
    incarnation: start.incarnation,
    first: former?.first ?? start,
    seq: (former?.seq ?? 0) + 1,
    ended: 0,
    unspooled: 0,
    drops: none,
    lostEarlier: former === null ? 0 : former.lostEarlier + mayBeLost(former, segments),
    dropsEarlier: former === null ? none : sumDrops(former, segments),
  };
}
