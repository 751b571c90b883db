// When a worker that ended by itself is started again. Pure.

/** One that ends sooner than this was not worth its start: the next one waits. */
const SHORT_MS = 10_000;
/** A start takes a core half a second: a pause of seconds leaves the others theirs, and a cause the time to go away. */
const PAUSE_MS = { first: 100, longest: 5000 };
/** With the pauses between them, five starts take some three seconds: what is in the way for so long stays there. */
const STARTS_MAX = 5;

/** How the starts of one worker's number went lately. */
export type Record = {
  /** Ends in a row before it was ready. */
  unready: number;
  /** Ends in a row soon after the start. */
  short: number;
};
export const NO_ENDS: Record = { unready: 0, short: 0 };

/** The record after one more end, `livedMs` after the start. */
export function addEnd(record: Record, { wasReady, livedMs }: { wasReady: boolean; livedMs: number }): Record {
  return { unready: wasReady ? 0 : record.unready + 1, short: livedMs < SHORT_MS ? record.short + 1 : 0 };
}

/**
 * What is done about the last end: a pause in ms before the next start, or null for giving up.
 * @param othersServe whether another worker is ready: then giving up would take away what works
 */
export function pauseBefore({ unready, short }: Record, othersServe: boolean): number | null {
  if (unready >= STARTS_MAX && !othersServe) return null;
  if (short === 0) return 0;
  return Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** Math.min(short - 1, 10));
}
