import { setTimeout as pause } from "node:timers/promises";

/**
 * Lets the first of several callers of one name go ahead, and the others wait for its end in memory: they would only
 * wait for the same lock in the database, each with a connection of its own.
 */
export function createFollowers() {
  const leaders = new Map<string, Promise<unknown>>();
  let waiting = 0;

  async function endsWithin(leader: Promise<unknown>, timeoutMs: number): Promise<boolean> {
    const over = new AbortController();
    const late = pause(timeoutMs, false, { signal: over.signal }).catch(() => false);
    waiting += 1;
    try {
      // How it ended is the leader's own affair: who waited tries for itself.
      const ended = leader.then(
        () => true,
        () => true,
      );
      return await Promise.race([ended, late]);
    } finally {
      waiting -= 1;
      over.abort();
    }
  }

  /**
   * Does `work` at once where nobody of this name is at work, else when that one has ended.
   * @returns what `work` returns, or undefined when the other one did not end within `timeoutMs`
   */
  async function follow<T>(name: string, timeoutMs: number, work: () => Promise<T>): Promise<T | undefined> {
    const leader = leaders.get(name);
    if (leader) return (await endsWithin(leader, timeoutMs)) ? work() : undefined;
    const leading = work();
    leaders.set(name, leading);
    try {
      return await leading;
    } finally {
      leaders.delete(name);
    }
  }

  return { follow, waiting: () => waiting };
}
