// Calls that come while others are under way are carried out together, so that the database is asked once for all of
// them. Whoever comes first waits for nobody; the more there are, the less each of them costs.
import { DeadlineExceeded } from "@linkfence/db";

export type GathererOptions<Q, A> = {
  /** Pieces of work under way at a time. */
  lanes: number;
  /** Calls in one piece at the most. */
  maxCalls: number;
  /** A call that was not answered so long after it came is refused, in ms. */
  timeoutMs: number;
  /** The clock that calls are timed with, in ms; it never goes back. */
  now: () => number;
  /**
   * Does the work of some calls, all of which came before it began. Resolves with one answer each, in their order, or with
   * a promise of one; a rejection is told to all of them.
   * @param leftMs what is left of the time of the one that came first, at least 1
   */
  work: (calls: readonly Q[], leftMs: number) => Promise<readonly (A | Promise<A>)[]>;
};

type Waiting<Q, A> = {
  call: Q;
  at: number;
  resolve: (answer: A | Promise<A>) => void;
  reject: (error: unknown) => void;
};

/** Creates it. The returned function rejects with what the work rejects with, or `DeadlineExceeded`. */
export function createGatherer<Q, A>({ lanes, maxCalls, timeoutMs, now, work }: GathererOptions<Q, A>) {
  let waiting: Waiting<Q, A>[] = [];
  let underWay = 0;
  let scheduled = false;

  function begin(): void {
    scheduled = false;
    while (underWay < lanes && waiting.length > 0) {
      const chosen = waiting.slice(0, maxCalls);
      waiting = waiting.slice(maxCalls);
      const endsAt = now() - timeoutMs;
      const inTime = chosen.filter(({ at }) => at > endsAt);
      for (const late of chosen) if (late.at <= endsAt) late.reject(new DeadlineExceeded(timeoutMs));
      if (inTime.length > 0) void carryOut(inTime);
    }
  }

  async function carryOut(calls: readonly Waiting<Q, A>[]): Promise<void> {
    underWay += 1;
    try {
      const leftMs = Math.max(1, timeoutMs - (now() - (calls[0]?.at ?? 0)));
      const answers = await work(
        calls.map(({ call }) => call),
        leftMs,
      );
      calls.forEach(({ resolve }, i) => {
        resolve(answers[i] as A | Promise<A>);
      });
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
    underWay -= 1;
    begin();
  }

  /** Those that arrive in one turn of the event loop go together. */
  return (call: Q): Promise<A> =>
    new Promise((resolve, reject) => {
      waiting.push({ call, at: now(), resolve, reject });
      if (scheduled) return;
      scheduled = true;
      setImmediate(begin);
    });
}
