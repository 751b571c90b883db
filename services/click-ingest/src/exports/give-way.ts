// Files are written out of what others leave. While clicks wait to be stored, or many come, a writer works for a twentieth of
// the time: it comes to an end all the same, and takes a twentieth of what it would take.

/** A piece, of 64 KiB at the most, costs this process one ms and the database three, of which nothing is seen here. */
const PAUSE_MIN_MS = 60;
/** Pause for each ms of work. */
const PAUSE_PER_WORK = 19;
/** A pause is judged anew ten times a second: clicks that wait are stored within a fraction of that. */
const PAUSE_MAX_MS = 100;

/**
 * Creates what a writer asks before each further piece.
 * @param busy whether others wait at this moment
 * @returns a promise to wait for; undefined where it may go on at once
 */
export function createGiveWay(busy: () => boolean, now: () => number = () => performance.now()) {
  let workedFrom = now();
  let pauses = 0;

  function giveWay(): Promise<void> | undefined {
    const worked = now() - workedFrom;
    if (!busy()) {
      workedFrom = now();
      return undefined;
    }
    pauses += 1;
    return new Promise((resolve) => {
      setTimeout(
        () => {
          workedFrom = now();
          resolve();
        },
        Math.min(PAUSE_MAX_MS, Math.max(PAUSE_MIN_MS, worked * PAUSE_PER_WORK)),
      ).unref();
    });
  }

  return { giveWay, stats: () => ({ pauses }) };
}
