// Carries the batches of one upload out, one after the other, under the import's lock. A database that is away for a
// moment is waited for: a batch is known by where it ends, so repeating one whose answer was lost does nothing twice.
import { setTimeout as pause } from "node:timers/promises";
import { Problem } from "@linkfence/contracts";
import { classifyError } from "@linkfence/db";
import { type ImportBatch, type ImportBatches, importInUse } from "../store/import-batches.ts";
import type { HeldLock, ImportLocks } from "../store/import-lock.ts";
import type { ImportRow } from "../store/import-rows.ts";

/** A failover or a restart of the database is over by then as a rule; a connection without traffic is cut after 30 s. */
const RETRY_FOR_MS = 15_000;
/** The first pause is about as long as a batch; none is so long that the client is kept waiting after the database is back. */
const PAUSE_MS = { first: 50, longest: 1000 };

export type CommitterOptions = {
  batches: ImportBatches;
  locks: ImportLocks;
  /** Held by who calls; given back by `release`. */
  lock: HeldLock;
  row: ImportRow;
  onRetry: () => void;
  retryForMs?: number;
};

export type Committer = ReturnType<typeof createCommitter>;

/** Creates the committer of one upload. */
export function createCommitter({ batches, locks, onRetry, retryForMs = RETRY_FOR_MS, ...start }: CommitterOptions) {
  let { lock, row } = start;

  /** A lock that was lost with its connection is taken again; who has it meanwhile is another upload. */
  async function ensureLock(): Promise<void> {
    if (!lock.lost()) return;
    const again = await locks.acquire(row.id);
    if (!again) throw importInUse();
    lock = again;
  }

  async function persist<T>(work: () => Promise<T>): Promise<T> {
    const endsAt = performance.now() + retryForMs;
    for (let wait = PAUSE_MS.first; ; wait = Math.min(PAUSE_MS.longest, wait * 2)) {
      try {
        await ensureLock();
        return await work();
      } catch (error) {
        const kind = classifyError(error);
        const hopeless = error instanceof Problem || (kind !== "retryable" && kind !== "unavailable");
        if (hopeless || performance.now() + wait > endsAt) throw error;
        onRetry();
        await pause(wait * (0.5 + Math.random() / 2));
      }
    }
  }

  return {
    /** The import as it is behind the last batch. */
    row: () => row,
    /** Commits a batch. Rejects as the store does, when the database stays away for too long. */
    async commit(batch: Omit<ImportBatch, "row">): Promise<void> {
      row = await persist(() => batches.commit({ ...batch, row }));
    },
    /** Removes what a trial run kept, a part at a time. */
    async forgetAliases(part: number): Promise<void> {
      while ((await persist(() => batches.forgetAliases(row.id, part))) === part);
    },
    release: () => lock.release(),
  };
}
