// Redirects come first: while they take all the time that this process has, clicks are left where they are safe, on the disk,
// and only a part of them is sent. What is behind the ingest may share its cores with redirects, and whoever stores clicks
// at such a time takes from whoever wants to be redirected. Once there is time again, all that waits is sent at once.

/**
 * With half of its time taken, a process that shares cores with the ingest answers later than it could. With a bound near what
 * it takes where it is busy, it would fall from one state into the other by itself: storing clicks slows the visitors down,
 * which makes it less busy, so that more is stored.
 */
const BUSY_MIN = 0.5;
/** A batch is under way for a sixteenth of the time then: statistics go on, later than usual. */
const REST_PER_WORK = 15;
/** Looks again that often: a burst that is over is noticed within half a second, also where a batch took very long. */
const REST_MAX_MS = 500;
/** The rest of the spool is for an ingest that is away. Of the usual size this is a minute's clicks of a busy core. */
const SPOOL_SHARE_MAX = 0.5;

export type Moment = {
  /** Share of the time since the last batch in which this process had something to do, from 0 to 1. */
  utilization: number;
  /** How long the last batch was under way. */
  tookMs: number;
  /** Share of the spool's bound that is occupied, from 0 to 1. */
  spoolShare: number;
  /** Clicks that are in no file: nothing may keep them waiting. */
  unplaced: number;
};

/** Tells how long the next batch is to wait so that redirects are answered sooner, in ms; 0 where it need not. */
export function restMs({ utilization, tookMs, spoolShare, unplaced }: Moment): number {
  if (utilization < BUSY_MIN || spoolShare > SPOOL_SHARE_MAX || unplaced > 0) return 0;
  return Math.min(REST_MAX_MS, tookMs * REST_PER_WORK);
}

/**
 * Creates a reading of how busy this process is: of the time since it was last read, the share in which the event loop had
 * something to do (Node.js manual, performance.eventLoopUtilization).
 */
export function createUtilization(read: typeof performance.eventLoopUtilization): () => number {
  let before = read();
  return () => {
    const now = read();
    const { utilization } = read(now, before);
    before = now;
    return utilization;
  };
}
