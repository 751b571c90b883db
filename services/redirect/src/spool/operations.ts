/** A write to a page cache takes microseconds, and a busy disk makes it wait for tens of milliseconds. */
const DEADLINE_MS = 1000;

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
        const timer = setTimeout(() => {
          late = true;
          stuck = true;
          resolve(fail(what, new Error(`not done within ${deadlineMs} ms`)));
        }, deadlineMs);
        const end = () => {
          clearTimeout(timer);
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
