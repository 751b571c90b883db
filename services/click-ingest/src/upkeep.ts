// What the service does by itself: it keeps the partitions of days, and looks how many dead letters there are.
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "@linkfence/service-shell";

export type Chore = {
  /** For the log and the metrics. */
  name: string;
  /** Pause after each time, in ms. */
  everyMs: number;
  work: () => Promise<void>;
};
export type Upkeep = ReturnType<typeof createUpkeep>;

/** A chore that failed is tried again after this long, or after its own pause where that is shorter. */
const AFTER_FAILURE_MS = 10_000;

/** Does each chore at once and then again and again, until it is stopped. A failure is told once, until it passes. */
export function createUpkeep(chores: readonly Chore[], logger: Logger) {
  const stopping = new AbortController();
  const failures: Record<string, number> = Object.fromEntries(chores.map(({ name }) => [name, 0]));
  let loops: Promise<unknown> | undefined;

  async function repeat({ name, everyMs, work }: Chore): Promise<void> {
    let failing = false;
    while (!stopping.signal.aborted) {
      try {
        await work();
        if (failing) logger.info("a chore is done again", { chore: name });
        failing = false;
      } catch (error) {
        failures[name] = (failures[name] ?? 0) + 1;
        if (!failing) logger.warn("a chore failed, and is tried again", { chore: name, error });
        failing = true;
      }
      const pause = failing ? Math.min(everyMs, AFTER_FAILURE_MS) : everyMs;
      await delay(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  }

  return {
    start(): void {
      loops ??= Promise.all(chores.map(repeat));
    },
    /** Resolves when what is under way has ended. */
    async stop(): Promise<void> {
      stopping.abort();
      await loops;
    },
    stats: () => ({ failures: { ...failures } }),
  };
}
