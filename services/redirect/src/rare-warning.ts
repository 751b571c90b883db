import type { Logger } from "@linkfence/service-shell";

/** During an outage each request would log the same line; one in this time tells as much. */
const SILENCE_MS = 10_000;

/**
 * Creates a way to warn that repeats no message within ten seconds.
 * @param now a clock that never steps, in ms
 */
export function createRareWarning(log: Logger, now: () => number): (message: string, error?: unknown) => void {
  const last = new Map<string, number>();
  return (message, error) => {
    const at = now();
    if (at - (last.get(message) ?? Number.NEGATIVE_INFINITY) < SILENCE_MS) return;
    last.set(message, at);
    log.warn(message, error === undefined ? {} : { error });
  };
}
