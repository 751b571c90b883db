/** Calls `act` once after that many milliseconds at the earliest, unless the function that it returns is called before. */
export type StartTimer = (ms: number, act: () => void) => () => void;

/** A timer of this process. */
export const startTimer: StartTimer = (ms, act) => {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
};
