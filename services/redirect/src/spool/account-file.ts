// Writes down ahead how many clicks may be accepted, so that whoever starts after a crash knows how many may be missing at
// the most; and, behind, what became of them: how many have come to their end, and where those begin that have not.
import { ACCOUNT_BLOCK, type Account, accountPosition, decodeAccount, encodeAccount } from "./account.ts";
import { type DropReason, type Drops, makeDrops } from "./drops.ts";
import type { FileSystem, SpoolFile } from "./file-system.ts";
import { createOperations } from "./operations.ts";

/**
 * Clicks reserved at once, at the least: the number that is reported after a crash is of this size. The half of them is left when
 * more are written down, and comes in within 25 ms where there were none before, which a writing usually takes less than.
 */
const RESERVE_MIN = 1000;
/** Under load as many as come in this time, of which the half is left when the next ones are reserved. */
const RESERVE_MS = 2000;
/** A few clicks in a millisecond are no load yet. */
const RATE_MS = 100;
/** How old what is written down may get, and how old where segments wait for it to be removed, and their room is needed. */
const WRITE_EVERY_MS = 1000;
const HURRY_MS = 50;
/** A disk flushes within tens of milliseconds; a start waits for one writing and a stop for two, of the 20 s that it has. */
const DEADLINE_MS = 2000;
/** Of clicks that may be in segments: told only when it is written down that they are not to be found there again. */
const FROM_SEGMENTS: readonly DropReason[] = ["batch-refused", "damaged", "spool-full"];

/** What of an account changes while its process runs. */
export type Standing = Pick<Account, "settled" | "unspooled" | "left" | "front" | "cuts" | "drops">;

export type AccountFile = Awaited<ReturnType<typeof openAccountFile>>;

export type AccountFileOptions = {
  fs: FileSystem;
  directory: string;
  /** Milliseconds of a clock that never steps. */
  now: () => number;
  onTrouble: (what: string, error: unknown) => void;
  /** Told after each writing, and each that failed. */
  onTried: () => void;
};

/** Reads the account that is there. `former` is null where there is none, or none that is whole. */
export async function openAccountFile({ fs, directory, now, onTrouble, onTried }: AccountFileOptions) {
  const path = `${directory}/account`;
  let file: SpoolFile | null = await fs.open(path, "change");
  const there = Buffer.alloc(2 * ACCOUNT_BLOCK);
  const found = await file.read(there, 0);
  const former = decodeAccount(there.subarray(0, found));
  const operations = createOperations(onTrouble);
  let home = await file.identity();
  /** As it was last written; as it is to be written first where that has not succeeded yet. */
  let account: Account | null = null;
  let isWritten = false;
  /** Its name is not known to be on the disk; `isAnew` where what else the file holds is not this process's. */
  let isFresh = true;
  let isAnew = false;
  let acceptedThen = 0;
  let writtenAt = now();
  let lookedAt = now();
  let failedAt = Number.NEGATIVE_INFINITY;
  let failuresInARow = 0;
  let underWay: Promise<void> | null = null;
  const counts = { failures: 0, lost: 0 };

  /** Rejects with the system's error; then this descriptor is not used again. */
  async function write(next: Account): Promise<true> {
    const at = now();
    file ??= await fs.open(path, "change");
    const target = file;
    try {
      home = await target.identity();
      if (isAnew) await target.write(Buffer.alloc(ACCOUNT_BLOCK), accountPosition(next.seq + 1));
      const block = encodeAccount({ ...next, home });
      const length = await target.write(block, accountPosition(next.seq));
      if (length !== block.length) throw new Error(`${length} of ${block.length} bytes were written`);
      await target.sync();
      if (isFresh) await fs.syncDirectory(directory);
      [isFresh, isAnew, isWritten] = [false, false, true];
      account = next;
      writtenAt = at;
      return true;
    } catch (error) {
      giveUp(target);
      throw error;
    }
  }

  function giveUp(target: SpoolFile): void {
    file = null;
    target.close().catch(() => {});
  }

  function tryToWrite(next: Account): Promise<void> {
    underWay = operations.run("write the account of clicks", write(next), undefined, DEADLINE_MS).then((isDone) => {
      underWay = null;
      failuresInARow = isDone ? 0 : failuresInARow + 1;
      if (!isDone) {
        counts.failures += 1;
        failedAt = now();
      }
      onTried();
    });
    return underWay;
  }

  /** The account that should be written now, or null. */
  function due(accepted: number, standing: () => Standing, hurries: boolean): Account | null {
    const at = now();
    if (account === null || underWay !== null || operations.stuck() || at - failedAt < WRITE_EVERY_MS) return null;
    const rate = (accepted - acceptedThen) / Math.max(RATE_MS, at - writtenAt);
    const block = Math.max(RESERVE_MIN, Math.ceil(rate * RESERVE_MS));
    const isShort = !isWritten || isAnew || account.reserved - accepted < block / 2;
    if (!isShort && at - lookedAt < (hurries ? HURRY_MS : WRITE_EVERY_MS)) return null;
    lookedAt = at;
    const next = { ...account, ...standing(), seq: account.seq + 1, reserved: accepted + block };
    if (!isShort && !isOld(account, next)) return null;
    acceptedThen = accepted;
    return next;
  }

  return {
    former,
    home,
    /** Writes the first account of this process, with a first reserve. Where that fails, `tick` tries again. */
    begin(first: Omit<Account, "reserved">): Promise<void> {
      account = { ...first, seq: first.seq - 1, reserved: 0 };
      return tryToWrite({ ...first, reserved: RESERVE_MIN });
    },
    /** Writes what is due, in the background; to be called every few milliseconds. */
    tick(accepted: number, standing: () => Standing, hurries: boolean): void {
      const next = due(accepted, standing, hurries);
      if (next !== null) void tryToWrite(next);
    },
    /** Looks whether the name leads to the file, which is made anew where it does not. Rejects with the system's error. */
    async check(): Promise<void> {
      const target = file;
      if (target === null || underWay !== null || operations.stuck() || (await fs.leadsTo(path, target))) return;
      if (target !== file || underWay !== null) return;
      giveUp(target);
      [isFresh, isAnew] = [true, true];
      counts.lost += 1;
      onTrouble("the account of clicks is no longer where it was, and is written anew", new Error(path));
    },
    /**
     * Writes that nothing is missing: everything has come to its end, or was written to segments. Never rejects.
     * @param waiting clicks of this process in segments that have not come to their end
     */
    async end(standing: Standing, waiting: number): Promise<void> {
      await underWay;
      if (account !== null && !operations.stuck()) {
        const reserved = standing.settled + standing.unspooled + waiting;
        await tryToWrite({ ...account, ...standing, clean: true, seq: account.seq + 1, reserved });
      }
      if (operations.stuck()) return;
      const last = file;
      file = null;
      await last?.close().catch(() => {});
    },
    /** What may be told of drops: of those in segments as many as are written down, unless nothing can be. */
    told(drops: Drops): Drops {
      const written = account?.drops;
      if (!isWritten || failuresInARow > 0 || written === undefined) return drops;
      return makeDrops((reason) =>
        FROM_SEGMENTS.includes(reason) ? Math.min(written[reason], drops[reason]) : drops[reason],
      );
    },
    /** Segments before this one have come to their end, and that is written down, unless nothing can be. */
    settledBefore: () => (isWritten && failuresInARow === 0 ? (account?.front.number ?? 0) : Number.POSITIVE_INFINITY),
    stats: () => ({
      reserved: isWritten ? (account?.reserved ?? 0) : 0,
      accountFailures: counts.failures,
      accountLost: counts.lost,
    }),
  };
}

/** Whether something is to be written down, be it that far less is to be reserved than was. */
function isOld(written: Account, next: Account): boolean {
  const of = ({ settled, unspooled, left, front, cuts, drops }: Account) =>
    JSON.stringify([settled, unspooled, left, front, cuts, drops]);
  return written.reserved > next.reserved + RESERVE_MIN || of(written) !== of(next);
}
