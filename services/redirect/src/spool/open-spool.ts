// Opens a directory as the spool of this process: takes its lock, finds out what an earlier process left there and what
// that one may have lost, and writes down the beginning of its own account, before the first click.
import { ConfigError } from "@linkfence/service-shell";
import {
  type Account,
  beginAccount,
  countMissing,
  type Front,
  mayBeLost,
  type Start,
  UnknownFormat,
} from "./account.ts";
import { type AccountFile, openAccountFile, type Standing } from "./account-file.ts";
import { type Drops, NO_DROPS } from "./drops.ts";
import type { FileSystem } from "./file-system.ts";
import { type Found, findSegments, type LeftPart } from "./found-segments.ts";
import { createNames, type Lock } from "./names.ts";
import type { Segment, Stored } from "./segment.ts";
import { createSegments } from "./segments.ts";

/**
 * What a power loss takes beside what a crash does: the clicks of a second or so that are not stored yet. A flush takes a
 * disk some milliseconds, so that one a second leaves it free for everything else.
 */
const SYNC_EVERY_MS = 1000;

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
export type Left = LeftPart & { segment: Segment };
/** What its process counts. `front`: the first of its clicks in segments, where there is one. */
export type Counted = Omit<Standing, "front" | "cuts"> & { front: Omit<Front, "base" | "own"> | null };

/** Opens it. Throws a ConfigError where the directory cannot be used. */
export async function openSpool(options: SpoolOptions) {
  const { directory, fs, start } = options;
  const lock = await refusing(directory, () => options.lock(directory));
  if (lock === null)
    throw unusable(directory, "another process uses it: each redirect process needs a directory of its own");
  try {
    const names = await refusing(directory, () => fs.list(directory));
    let sweep = () => {};
    const file = await refusing(directory, () => openAccountFile({ ...options, onTried: () => sweep() }));
    const { former, home } = file;
    const found = await refusing(directory, () => findSegments(options, names, former));
    const { segments } = found;
    const isUnknown = segments.length > 0 || names.some(({ name }) => name === "account");
    const front = frontOf(found);
    const left = segments.reduce((total, { clicks }) => total + clicks, 0);
    const { cuts } = found;
    const account = beginAccount({ start, home, front, cuts, left, former, isUnknown, segments });
    await file.begin(account);
    const earlier = {
      lost: account.lostEarlier,
      drops: account.dropsEarlier,
      unknown: account.unknownEarlier,
      ...tellOfLast(found, former, account),
    };
    const spool = assemble(options, { lock, file, found, first: account.first, earlier, base: front });
    sweep = spool.sweep;
    return spool;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Where the queue of a new process begins. Where a segment is not known, no other one is taken for settled. */
function frontOf({ segments: [first], done, firstNumber, isComplete }: Found): Front {
  const { number, from, settled } = first ?? { number: firstNumber, from: 0, settled: 0 };
  const base = isComplete ? Math.min(number, ...done.map((each) => each.number)) : Number.MAX_SAFE_INTEGER;
  return { base, own: firstNumber, number, from, clicks: settled };
}

/** What is found out about the process before this one. */
function tellOfLast({ segments, damaged }: Found, former: Account | null, account: Omit<Account, "reserved">) {
  return {
    /** Clicks that it may have lost, at the most; those of them that certainly were in segments; and whether nobody knows. */
    lostLast: former === null ? 0 : mayBeLost(former, segments),
    missing: former === null ? 0 : countMissing(former, segments),
    isLastUnknown: account.unknownEarlier > (account.first === former?.first ? former.unknownEarlier : 0),
    /** Clicks that cannot be read, as far as that is known. */
    damaged,
    isCopy: former !== null && former.home !== account.home,
  };
}

type Earlier = ReturnType<typeof tellOfLast> & { lost: number; drops: Drops; unknown: number };

type Opened = { lock: Lock; file: AccountFile; found: Found; first: Start; earlier: Earlier; base: Front };

function assemble(options: SpoolOptions, { lock, file, found, first, earlier, base }: Opened) {
  const { start, now } = options;
  const { incarnation } = start;
  let standing: (() => Counted) | null = null;
  let onNameless = (_segment: Segment) => {};
  let syncedAt = now();
  const names = createNames(options, lock, file.check);
  const segments = createSegments({
    ...options,
    firstNumber: found.firstNumber,
    cuts: found.cuts,
    header: () => {
      const { unspooled = 0, drops = NO_DROPS } = standing?.() ?? {};
      return { incarnation, unspooled, drops: file.told(drops) };
    },
    settledBefore: file.settledBefore,
    onNameless: (segment) => onNameless(segment),
  });
  for (const each of found.done) segments.adopt({ ...each, clicks: 0, settled: 0 });
  const left: Left[] = found.segments.map((each) => ({ ...each, segment: segments.adopt(each) }));
  const standingOf = ({ front, ...counted }: Counted): Standing => {
    const { base: first, own } = base;
    return { ...counted, front: { base: first, own, ...(front ?? segments.end()) }, cuts: segments.cuts() };
  };

  return {
    /** In the order in which they were written. */
    left: left.filter(({ clicks }) => clicks > 0),
    append: async (frames: Buffer, clicks: number): Promise<Stored> =>
      names.areTaken() ? "refused" : segments.append(frames, clicks),
    settle: segments.settle,
    correct: segments.correct,
    disown: segments.disown,
    read: segments.read,
    sweep: segments.sweep,
    told: file.told,
    /** Has somebody told of each segment that only this process can read any more. */
    watch(listener: (segment: Segment) => void): void {
      onNameless = listener;
    },
    /** Does in the background what is due; to be called every few milliseconds. */
    tick(accepted: number, counted: () => Counted): void {
      standing = counted;
      if (names.areTaken()) return;
      file.tick(accepted, () => standingOf(counted()), segments.wantsRoom());
      if (now() - syncedAt < SYNC_EVERY_MS) return;
      syncedAt = now();
      names.look();
      segments.sync();
    },
    /**
     * Keeps what is not sent for the next process. Never rejects.
     * @param waiting clicks of this process in segments that have not come to their end
     */
    async close(last: () => Counted, waiting: number): Promise<void> {
      await segments.seal();
      if (!names.areTaken()) await file.end(standingOf(last()), waiting);
      await segments.close();
      await names.release();
    },
    /** The first process on this directory. */
    first,
    /** Clicks that processes before this one may have lost by an unclean end, at the most, and what they dropped. */
    earlier,
    /** How much of `maxBytes` its segments occupy, from 0 to 1. */
    share: () => segments.stats().bytes / options.maxBytes,
    stats: () => ({ ...segments.stats(), ...file.stats(), locksLost: names.lost() }),
  };
}

const code = (error: unknown) => (error as NodeJS.ErrnoException | null)?.code ?? "";

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
