/** A write to a page cache takes microseconds, and a busy disk makes it wait for tens of milliseconds. */
const DEADLINE_MS = 1000;
/**
 * A deadline is made of so many turns, each of which begins when the one before has ended: a process that was stopped, or
 * that was busy for seconds, has lost one of them, and not all.
 */
const TURNS = 10;

/**
 * Waits for operations on a disk, one at a time and each within a deadline. One that misses it goes on, as nothing can end
 * it; until it does, `stuck` says so, and nothing else should be begun.
 * @param onTrouble told what failed, and why
 */
export function createOperations(onTrouble: (what: string, error: unknown) => void) {
  let stuck = false;
  let lastError: unknown = null;

  function fail(what: string, error: unknown): null {
    lastError = error;
    onTrouble(`cannot ${what}`, error);
    return null;
  }

  return {
    /**
     * Resolves with what the operation resolves with, or with null where it fails or is late. Never rejects.
     * @param undo takes what comes too late
     */
    run<T>(what: string, work: Promise<T>, undo?: (late: T) => void, deadlineMs = DEADLINE_MS): Promise<T | null> {
      return new Promise((resolve) => {
        let late = false;
        const cancel = afterTurns(deadlineMs, () => {
          late = true;
          stuck = true;
          resolve(fail(what, new Error(`not done within ${deadlineMs} ms`)));
        });
        const end = () => {
          cancel();
          if (late) stuck = false;
        };
        work.then(
          (value) => {
            end();
            if (late) undo?.(value);
            else resolve(value);
          },
          (error: unknown) => {
            end();
            if (!late) resolve(fail(what, error));
          },
        );
      });
    },
    stuck: () => stuck,
    lastError: () => lastError,
  };
}

/**
 * Calls back after a time in which the process ran. What came to its end meanwhile is heard first: timers are looked at
 * before it, so that a timer alone would judge what is long done. Returns what cancels it.
 */
function afterTurns(ms: number, callBack: () => void): () => void {
  let left = TURNS;
  let isOver = false;
  let timer: NodeJS.Timeout;
  const wait = () => {
    timer = setTimeout(next, ms / TURNS);
  };
  const next = () => {
    left -= 1;
    if (left > 0) wait();
    // The first of the two comes after what has ended by now, the second one after what that has called.
    else setImmediate(() => setImmediate(() => !isOver && callBack()));
  };
  wait();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
