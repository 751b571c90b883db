/**
 * Bounds how many pieces of work run at a time; further ones wait in memory, in the order of their coming, until a
 * place is free or their time is over.
 * @param places pieces at a time; with 0 nobody ever has a place
 */
export function createWaitingRoom(places: number) {
  const waiting = new Set<() => void>();
  let inside = 0;

  /** Resolves with whether there is a place for the caller within `timeoutMs`. */
  function enter(timeoutMs: number): Promise<boolean> {
    if (inside < places) {
      inside += 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        waiting.delete(admit);
        resolve(false);
      }, timeoutMs);
      const admit = () => {
        clearTimeout(timer);
        waiting.delete(admit);
        resolve(true);
      };
      waiting.add(admit);
    });
  }

  /** A place passes from who leaves to who has waited longest. */
  function leave(): void {
    const [next] = waiting;
    if (next) next();
    else inside -= 1;
  }

  /**
   * Does `work` when there is a place.
   * @param work gets what is left of `timeoutMs`, at least 1
   * @returns what `work` returns, or undefined when there was no place in time
   */
  async function run<T>(timeoutMs: number, work: (leftMs: number) => Promise<T>): Promise<T | undefined> {
    const endsAt = performance.now() + timeoutMs;
    if (!(await enter(timeoutMs))) return undefined;
    try {
      return await work(Math.max(1, Math.floor(endsAt - performance.now())));
    } finally {
      leave();
    }
  }

  return { run, stats: () => ({ inside, waiting: waiting.size }) };
}
