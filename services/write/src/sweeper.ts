import { setTimeout as pause } from "node:timers/promises";

export type SweeperOptions = {
  /** Removes at most so many expired records, and says how many there were. */
  sweep: (limit: number) => Promise<number>;
  counts: { removed: number; failures: number };
  /** Pause between two rounds in ms; each is shortened by up to a half at random, so that processes do not go in step. */
  intervalMs: number;
  /** Records in one transaction: short enough that nobody notices. */
  batch: number;
  /** Transactions in one round: what is left waits for the next. */
  maxBatches: number;
  onFailure: (error: unknown) => void;
};

/** Creates the removal of expired records. Nothing but disk space depends on whether or when it happens. */
export function createSweeper({ sweep, counts, intervalMs, batch, maxBatches, onFailure }: SweeperOptions) {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function round(): Promise<void> {
    try {
      for (let done = 0; done < maxBatches && !stopping.signal.aborted; done += 1) {
        const removed = await sweep(batch);
        counts.removed += removed;
        if (removed < batch) return;
      }
    } catch (error) {
      counts.failures += 1;
      onFailure(error);
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const wait = intervalMs * (1 - Math.random() / 2);
      await pause(wait, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
      if (!stopping.signal.aborted) await round();
    }
  }

  return {
    start(): void {
      running = run();
    },
    /** Resolves when the round that is under way has ended. */
    stop(): Promise<void> {
      stopping.abort();
      return running;
    },
  };
}
