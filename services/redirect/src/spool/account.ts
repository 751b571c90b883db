// What survives a process beside the clicks: how many it may have accepted, and how many of them have come to their end.
// Both are JSON in a frame, in a block of fixed size: the account in two blocks of a file of its own, written in turn and
// in place, so that one of them is always whole and a full disk does not matter; and the header of each segment.
import { type Drops, makeDrops } from "./drops.ts";
import { encodeFrames, readFrames } from "./frame.ts";

/** Both blocks of an account lie in one page of 4 KiB. The longest account has less than 1,000 bytes. */
export const ACCOUNT_BLOCK = 1024;
/** The longest header has about 400 bytes. */
export const HEADER_BLOCK = 512;
const FORMAT = 1;

/** A process, and when it was started, in ms since 1970. */
export type Start = { incarnation: string; at: number };

/**
 * Where the queue of clicks in segments begins: what lies before it has come to its end. Written in one block with the counts of
 * drops, so that no click is both dropped and found again, nor neither.
 */
export type Front = {
  /** First segment that its process answers for. One before it was put there by somebody else. */
  base: number;
  /** First segment that its process began. */
  own: number;
  /** Segment, and place in it, of the first click that has not come to its end; and clicks of that segment before it. */
  number: number;
  from: number;
  clicks: number;
};

/** What lies behind this size of a segment was dropped: a write failed half way, and nobody knows how much came of it. */
export type Cut = readonly [number: number, size: number];
/** So many find room in an account and in a header, whatever their numbers are. */
export const CUTS_MAX = 4;

export type Account = {
  /** Id of the process. */
  incarnation: string;
  /** Id and start, in ms since 1970, of the first process on this directory: since then its losses are summed up. */
  first: Start;
  /** Tells this file from a copy of it. */
  home: string;
  /** Rises with each writing; the greater one of two blocks counts. */
  seq: number;
  /** Its process has ended in good order: `reserved` is what it has accepted. */
  clean: boolean;
  /** The process has accepted no more clicks than this, whenever it ended. */
  reserved: number;
  /** Clicks of this process that were in segments and have come to their end: answered for by the ingest, or dropped. */
  settled: number;
  /** Those that have come to their end, and were in none. */
  unspooled: number;
  /** Clicks of earlier processes, in segments, that have not come to their end. */
  left: number;
  front: Front;
  /** Of segments of this process and of earlier ones, for as long as they are there. */
  cuts: readonly Cut[];
  /** Clicks that this process dropped. */
  drops: Drops;
  /** Clicks that earlier processes on this directory may have lost, at the most, and those that they dropped. */
  lostEarlier: number;
  dropsEarlier: Drops;
  /** Ends of earlier processes of which nobody knows how many clicks they took. */
  unknownEarlier: number;
};

export type SegmentHeader = {
  incarnation: string;
  number: number;
  /** Clicks of this process that were written to the segments before this one. */
  spooled: number;
  /** As in the account, at the time when the segment was begun. */
  unspooled: number;
  drops: Drops;
  cuts: readonly Cut[];
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
  return { cuts: [], ...content };
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

/** `clicks`: those at or behind the front. */
export type LeftSegment = { number: number; header: SegmentHeader | null; clicks: number };

const ownOf = ({ incarnation }: Account, segments: readonly LeftSegment[]) =>
  segments.filter(({ header }) => header?.incarnation === incarnation);

/** As the account says, or as the header of a later segment does. */
function unspooledOf(account: Account, segments: readonly LeftSegment[]): number {
  const headers = ownOf(account, segments).map(({ header }) => header?.unspooled ?? 0);
  return Math.max(account.unspooled, ...headers);
}

const sum = (segments: readonly LeftSegment[]) => segments.reduce((total, { clicks }) => total + clicks, 0);

/**
 * The most clicks that a process can have lost that ended without a word, or whose segments somebody took away: all that it
 * answered for, less what is known to have come to its end, or was found.
 */
export function mayBeLost(account: Account, segments: readonly LeftSegment[]): number {
  const { left, reserved, settled, front } = account;
  const found = sum(segments.filter(({ number }) => number >= front.number));
  return Math.max(0, left + reserved - settled - unspooledOf(account, segments) - found);
}

/**
 * Whether a process may have lost more than `mayBeLost` says: it came to accept more than it had reserved, or it was not the
 * last one, and the account of that one is nowhere.
 */
export function isBoundUnknown(account: Account, segments: readonly LeftSegment[]): boolean {
  const { incarnation, clean, reserved, settled, front } = account;
  const known = settled + unspooledOf(account, segments) + sum(ownOf(account, segments));
  const isOfAnother = ({ number, header }: LeftSegment) =>
    number >= front.own && header !== null && header.incarnation !== incarnation;
  return (!clean && known > reserved) || segments.some(isOfAnother);
}

/**
 * Clicks that must be missing, by the headers of the segments before and behind a gap; and after an end in good order all that
 * were not found. They are a part of what may be lost.
 */
export function countMissing(account: Account, segments: readonly (LeftSegment & { all: number })[]): number {
  if (account.clean) return mayBeLost(account, segments);
  return segments.reduce((total, { number, header, all }, index) => {
    const next = segments[index + 1];
    if (!header || next?.header?.incarnation !== header.incarnation || next.number === number + 1) return total;
    return total + Math.max(0, next.header.spooled - header.spooled - all);
  }, 0);
}

/** All that a process dropped, as far as it came to write it down. */
function dropsOf(account: Account, segments: readonly LeftSegment[]): Drops {
  const headers = ownOf(account, segments).flatMap(({ header }) => header?.drops ?? []);
  return makeDrops((reason) => Math.max(account.drops[reason], ...headers.map((each) => each[reason])));
}

export type Beginning = {
  start: Start;
  home: string;
  front: Front;
  /** Of segments that are there still. */
  cuts: readonly Cut[];
  /** Clicks that are to be sent first. */
  left: number;
  /** Null where there is none that is whole; `isUnknown` says then whether there must have been one. */
  former: Account | null;
  isUnknown: boolean;
  /** Those that the former one answers for. */
  segments: readonly LeftSegment[];
};

/**
 * How the account of a process begins that comes after others. In a copy of their directory it goes by a name of its own, as the
 * original may be in use under theirs, and leaves to that what they had told of already.
 */
export function beginAccount({ start, home, front, cuts, left, former, isUnknown, segments }: Beginning) {
  const none = makeDrops(() => 0);
  const base = { incarnation: start.incarnation, home, clean: false, settled: 0, unspooled: 0, left, front, cuts };
  if (former === null) {
    const unknownEarlier = isUnknown ? 1 : 0;
    return { ...base, first: start, seq: 1, drops: none, lostEarlier: 0, dropsEarlier: none, unknownEarlier };
  }
  const isCopy = former.home !== home;
  const drops = dropsOf(former, segments);
  return {
    ...base,
    first: isCopy ? start : former.first,
    seq: former.seq + 1,
    drops: none,
    lostEarlier: (isCopy ? 0 : former.lostEarlier) + mayBeLost(former, segments),
    dropsEarlier: isCopy ? drops : makeDrops((reason) => former.dropsEarlier[reason] + drops[reason]),
    unknownEarlier: (isCopy ? 0 : former.unknownEarlier) + (isBoundUnknown(former, segments) ? 1 : 0),
  };
}
