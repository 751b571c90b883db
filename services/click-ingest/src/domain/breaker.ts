// A circuit breaker as values: towards a database that fails again and again, nobody tries but one, and ever more rarely.

/** `openUntil` is on the clock that `now` is of. */
export type Breaker = { failures: number; openUntil: number };

export const CLOSED: Breaker = { failures: 0, openUntil: 0 };

/** One failure is a deadlock or a lost connection; three in a row are a database that is not there. */
const FAILURES_MAX = 3;
const FIRST_OPEN_MS = 1000;
/** Whoever waits for a file does not notice half a minute. */
const LONGEST_OPEN_MS = 30_000;

/**
 * The breaker after another failure: open for a time that doubles, once there were too many in a row.
 * @param now ms on a monotonic clock
 */
export function afterFailure({ failures }: Breaker, now: number): Breaker {
  const count = failures + 1;
  if (count < FAILURES_MAX) return { failures: count, openUntil: 0 };
  return { failures: count, openUntil: now + Math.min(LONGEST_OPEN_MS, FIRST_OPEN_MS * 2 ** (count - FAILURES_MAX)) };
}

/** Milliseconds until somebody may try; 0 where anybody may. */
export function waitMs({ openUntil }: Breaker, now: number): number {
  return Math.max(0, openUntil - now);
}

/** The breaker while one tries: the others wait as long as they would after its failure. */
export function whileTrying(breaker: Breaker, now: number): Breaker {
  return breaker.failures < FAILURES_MAX ? breaker : { ...breaker, openUntil: afterFailure(breaker, now).openUntil };
}
