// How long an instance that is not heard of may go on answering from memory, told by another machine's clock. Pure.

/** Clock rates of two machines differ by less than this (a quartz is off by 1e-4 at the worst). */
export const CLOCK_RATE_ERROR = 1e-3;
/** What lies between reading a clock and acting by it, in ms: a scheduler's turn on a busy machine. */
export const CLOCK_READ_MS = 50;
/**
 * An instance renews its row when a quarter of its TTL has passed since it last did, and may read the log without renewing
 * until then. Its memory holds for a TTL from its last read, so that much longer than for its last renewal.
 */
const UNRENEWED = 0.25;

/**
 * How long after a moment an instance that read nothing since then has stopped answering from memory.
 * @param ttlMs its CACHE_TTL_MS
 * @returns ms of a clock that never steps, on any machine
 */
export function fenceMs(ttlMs: number): number {
  return ttlMs * (1 + 2 * CLOCK_RATE_ERROR) + CLOCK_READ_MS;
}

/** The same for an instance of which only its renewals are seen. */
export function silenceMs(ttlMs: number): number {
  return fenceMs(ttlMs * (1 + UNRENEWED));
}
