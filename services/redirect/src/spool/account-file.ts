// Writes down ahead how many clicks may be accepted, so that whoever starts after a crash knows how many may be missing at
// the most; and, behind, what became of those that were in no segment.
import { ACCOUNT_BLOCK, type Account, accountPosition, decodeAccount, encodeAccount } from "./account.ts";
import type { Drops } from "./drops.ts";
import type { FileSystem, SpoolFile } from "./file-system.ts";

/** Clicks reserved at once, at the least: the number that is reported after a crash is of this size. */
const RESERVE_MIN = 10_000;
/** Under load as many as come in this time, of which the half is left when the next ones are reserved. */
const RESERVE_MS = 4000;
/** How old what is written down of drops may get. */
const WRITE_EVERY_MS = 1000;

/** What of an account changes while its process runs. */
export type Standing = { accepted: number; ended: number; unspooled: number; drops: Drops };

export type AccountFile = Awaited<ReturnType<typeof openAccountFile>>;

export type AccountFileOptions = {
  fs: FileSystem;
  directory: string;
  /** Milliseconds of a clock that never steps. */
  now: () => number;
  onTrouble: (what: string, error: unknown) => void;
};

/** Reads the account that is there. `former` is null where there is none, or none that is whole. */
export async function openAccountFile({ fs, directory, now, onTrouble }: AccountFileOptions) {
  const path = `${directory}/account`;
  let file: SpoolFile | null = await fs.open(path, "change");
  const there = Buffer.alloc(2 * ACCOUNT_BLOCK);
  const found = await file.read(there, 0);
  const former = decodeAccount(there.subarray(0, found));
  /** As it was last written; as it is to be written first where that has not succeeded yet. */
  let account: Account | null = null;
  let isWritten = false;
  let acceptedThen = 0;
  let writtenAt = now();
  let failedAt = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | null = null;
  let failures = 0;

  /** Rejects with the system's error; then this descriptor is not used again. */
  async function write(next: Account): Promise<void> {
    const at = now();
    file ??= await fs.open(path, "change");
    const target = file;
    try {
      const block = encodeAccount(next);
      const length = await target.write(block, accountPosition(next.seq));
      if (length !== block.length) throw new Error(`${length} of ${block.length} bytes were written`);
      await target.sync();
      if (!isWritten) await fs.syncDirectory(directory);
      account = next;
      isWritten = true;
      writtenAt = at;
    } catch (error) {
      file = null;
      target.close().catch(() => {});
      throw error;
    }
  }

  function tryToWrite(next: Account): Promise<void> {
    underWay = write(next)
      .catch((error: unknown) => {
        failures += 1;
        failedAt = now();
        onTrouble("cannot write the account of clicks", error);
      })
      .finally(() => {
        underWay = null;
      });
    return underWay;
  }

  /** The account that should be written now, or null. */
  function due({ accepted, ...standing }: Standing): Account | null {
    if (account === null || underWay !== null || now() - failedAt < WRITE_EVERY_MS) return null;
    const ageMs = Math.max(1, now() - writtenAt);
    const rate = (accepted - acceptedThen) / ageMs;
    const block = Math.max(RESERVE_MIN, Math.ceil(rate * RESERVE_MS));
    const isShort = !isWritten || account.reserved - accepted < block / 2;
    const isOld = ageMs >= WRITE_EVERY_MS && standing.unspooled !== account.unspooled;
    if (!isShort && !isOld) return null;
    acceptedThen = accepted;
    return { ...account, ...standing, seq: account.seq + 1, reserved: isShort ? accepted + block : account.reserved };
  }

  return {
    former,
    /** Writes the first account of this process, with a first reserve. Where that fails, `tick` tries again. */
    begin(first: Omit<Account, "reserved">): Promise<void> {
      account = { ...first, seq: first.seq - 1, reserved: 0 };
      return tryToWrite({ ...first, reserved: RESERVE_MIN });
    },
    /** Writes what is due, in the background; to be called every few milliseconds. */
    tick(standing: Standing): void {
      const next = due(standing);
      if (next !== null) void tryToWrite(next);
    },
    /**
     * Writes that nothing is missing: everything has come to its end, or was written to segments. Never rejects.
     * @param spooled clicks that were written to segments
     */
    async end({ accepted: _accepted, ...standing }: Standing, spooled: number): Promise<void> {
      await underWay;
      if (account !== null) {
        const reserved = spooled + standing.unspooled;
        await tryToWrite({ ...account, ...standing, seq: account.seq + 1, reserved });
      }
      const last = file;
      file = null;
      await last?.close().catch(() => {});
    },
    stats: () => ({ reserved: isWritten ? (account?.reserved ?? 0) : 0, failures }),
  };
}
