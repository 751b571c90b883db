/** A lock wait or a failover's first refusals pass within this time. */
const FIRST_MS = 50;
/** Once a second costs a struggling database nothing and finds it again within a second. */
const LONGEST_MS = 1000;

/**
 * Tells how long to wait before the next attempt: doubled after each failure, capped, and the upper half of it random, so
 * that several writers do not come back together.
 * @param failures failed attempts in a row, at least 1
 * @param random a number in [0, 1)
 * @returns milliseconds
 */
export function backoffMs(failures: number, random: number): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1));
  return ceiling * (0.5 + random / 2);
}
