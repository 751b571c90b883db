/** Calls `act` once after that many milliseconds at the earliest, unless the function that it returns is called before. */
export type StartTimer = (ms: number, act: () => void) => () => void;

/** A timer of this process. */
export const startTimer: StartTimer = (ms, act) => {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
};

/** Pauses of one loop, one at a time, which others may end early. */
export function createPauses(after: StartTimer = startTimer) {
  let rouse = () => {};
  return {
    /**
     * Waits.
     * @param mayEnd whether a rousing ends it; each does unless it says otherwise
     */
    pause(ms: number, mayEnd = () => true): Promise<void> {
      return new Promise((resolve) => {
        const done = () => {
          cancel();
          rouse = () => {};
          resolve();
        };
        const cancel = after(ms, done);
        rouse = () => {
          if (mayEnd()) done();
        };
      });
    },
    /** Ends the pause under way, if it may end; nothing where there is none. */
    rouse: () => rouse(),
  };
}
