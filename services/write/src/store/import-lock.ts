// Who works at an import holds a lock for as long as a connection of its lasts: in a transaction that does nothing else.
// When the process dies the lock is gone with it, at once, and the import can be continued. It only answers the question
// whether somebody is at work; what keeps two from writing is the number of the attempt, in every batch.
import type { Database } from "@linkfence/db";

/** An import ends long before; a transaction of this library must have a deadline. */
const LONGEST_MS = 7 * 3_600_000;

/** A lock that is held. */
export type HeldLock = {
  /** Whether the connection was lost, and the lock with it. */
  lost(): boolean;
  /** Gives it back; resolves when that is done, or cannot be. */
  release(): Promise<void>;
};

export type ImportLocks = ReturnType<typeof createImportLocks>;

/**
 * Creates the locks.
 * @param db keeps one connection busy for each lock that is held
 * @param timeoutMs how long the database may take to answer whether the lock is free
 */
export function createImportLocks(db: Database, timeoutMs: number) {
  /** Takes the lock of an import. Resolves with undefined where somebody holds it; rejects with the database's error. */
  function acquire(id: string): Promise<HeldLock | undefined> {
    let release = () => {};
    let begun = false;
    let lost = false;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    return new Promise((resolve, reject) => {
      // Who comes too late with the lock gives it back at once.
      const giveUp = setTimeout(() => {
        release();
        reject(Object.assign(new Error("the lock of an import was not answered in time"), { code: "CONNECT_TIMEOUT" }));
      }, timeoutMs);
      const held = db.transaction(async (sql) => {
        if (begun) throw new Error("a lock that was lost is not taken again by itself");
        begun = true;
        const [row] = await sql<{ taken: boolean }[]>`
          SELECT set_config('idle_in_transaction_session_timeout', '0', true),
                 set_config('tcp_keepalives_idle', '10', true), set_config('tcp_keepalives_interval', '5', true),
                 set_config('tcp_keepalives_count', '3', true),
                 pg_try_advisory_xact_lock(hashtextextended('import ' || ${id}::text, 0)) AS taken`;
        clearTimeout(giveUp);
        if (!row?.taken) return resolve(undefined);
        resolve({ lost: () => lost, release: giveBack });
        await released;
      }, LONGEST_MS);
      const giveBack = () => {
        release();
        return ended;
      };
      const ended = held.catch((error: unknown) => {
        clearTimeout(giveUp);
        lost = true;
        reject(error);
      });
    });
  }

  return { acquire };
}
