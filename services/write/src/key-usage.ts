// Notes when keys were used, off the path of the calls that use them. Which key is due is read with the key itself, so
// nothing is remembered here but what is to be written next; what cannot be written is due again at the key's next use.
import { setTimeout as pause } from "node:timers/promises";

export type KeyUsageOptions = {
  /** Writes that these keys were used just now, of each at most once in a while; returns how many were written. */
  touch: (ids: string[]) => Promise<number>;
  counts: { written: number; dropped: number; failures: number };
  /** Between two statements at least, in ms. */
  pauseMs: number;
  /** Keys that wait to be written at the most; further ones are dropped. */
  maxPending: number;
  onFailure: (error: unknown) => void;
};

export type KeyUsage = ReturnType<typeof createKeyUsage>;

/** Creates the keeper of last uses. One statement at a time, whatever the number of calls. */
export function createKeyUsage({ touch, counts, pauseMs, maxPending, onFailure }: KeyUsageOptions) {
  const stopping = new AbortController();
  const pending = new Set<string>();
  let working: Promise<void> | null = null;

  async function write(): Promise<void> {
    const ids = [...pending];
    pending.clear();
    try {
      counts.written += await touch(ids);
    } catch (error) {
      counts.failures += 1;
      onFailure(error);
    }
  }

  async function work(): Promise<void> {
    while (pending.size > 0 && !stopping.signal.aborted) {
      await write();
      await pause(pauseMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
    working = null;
  }

  return {
    /** Takes note that a key is due. Returns at once, and never throws. */
    note(id: string): void {
      if (pending.size >= maxPending && !pending.has(id)) {
        counts.dropped += 1;
        return;
      }
      pending.add(id);
      working ??= work();
    },
    pending: () => pending.size,
    /** Writes what is left, in one try. */
    async stop(): Promise<void> {
      stopping.abort();
      await working;
      if (pending.size > 0) await write();
    },
  };
}
