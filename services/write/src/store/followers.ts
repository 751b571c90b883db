// One at a time for each name, and the others wait in memory: they would only wait for the same lock in the database, each
// with a connection of its own. Who comes next is decided when the one before has ended: all whom its end concerns are
// told at once, and of those left over one leads, so that a failure moves one caller on and not all of them.

/** How somebody's work ended. */
export type Ending<T> = { value: T } | { error: unknown };

export type Following<T> = {
  /** How long it waits behind others, in ms. */
  timeoutMs: number;
  /** Done once nobody else of this name is at work. */
  work: () => Promise<T>;
  /** What the end of another one's work says to this caller, who then need not do its own; undefined for nothing. */
  hear: (ending: Ending<T>) => Ending<T> | undefined;
};

type Turn<T> = Ending<T> | "leads" | "late";
type Follower<T> = { hear(ending: Ending<T>): boolean; lead(): void };

/** Creates the waiting of callers behind one another. */
export function createFollowers<T>() {
  const queues = new Map<string, Set<Follower<T>>>();

  function wait(queue: Set<Follower<T>>, { timeoutMs, hear }: Following<T>): Promise<Turn<T>> {
    return new Promise((resolve) => {
      let failure: Ending<T> | undefined;
      const end = (turn: Turn<T>) => {
        clearTimeout(timer);
        queue.delete(follower);
        resolve(turn);
      };
      const giveUp = () => {
        if (queue.has(follower)) end(failure ?? "late");
      };
      // A process that stood still has an answer lying ready, which is read after the timers have been looked at.
      const timer = setTimeout(() => setImmediate(giveUp), timeoutMs);
      const follower: Follower<T> = {
        hear(ending) {
          if ("error" in ending) failure = ending;
          const heard = hear(ending);
          if (heard) end(heard);
          return heard !== undefined;
        },
        lead: () => end("leads"),
      };
      queue.add(follower);
    });
  }

  /** Tells those who wait how it ended, and lets the first of those whom that does not help go ahead. */
  function pass(name: string, queue: Set<Follower<T>>, ending: Ending<T>): void {
    const [next] = [...queue].filter((follower) => !follower.hear(ending));
    if (next) next.lead();
    else queues.delete(name);
  }

  async function lead(name: string, queue: Set<Follower<T>>, work: () => Promise<T>): Promise<T> {
    const ending = await work().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    pass(name, queue, ending);
    return conclude(ending);
  }

  /**
   * Does `work`, or waits for somebody who is doing theirs.
   * @returns what its work, or the end of another one, came to; undefined when its time was over before its turn came
   * @throws what `work` or `hear` came to; and, when its time is over, what the last one before it failed with
   */
  async function follow(name: string, following: Following<T>): Promise<T | undefined> {
    const queue = queues.get(name);
    if (!queue) {
      const own = new Set<Follower<T>>();
      queues.set(name, own);
      return lead(name, own, following.work);
    }
    const turn = await wait(queue, following);
    if (turn === "leads") return lead(name, queue, following.work);
    return turn === "late" ? undefined : conclude(turn);
  }

  const waiting = () => [...queues.values()].reduce((total, { size }) => total + size, 0);
  return { follow, waiting };
}

function conclude<T>(ending: Ending<T>): T {
  if ("error" in ending) throw ending.error;
  return ending.value;
}
