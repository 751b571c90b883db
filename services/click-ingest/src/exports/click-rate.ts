/** Long enough to see more than one batch of each sender, and short enough to let go soon. */
const WINDOW_MS = 500;

/**
 * Creates what tells, at the moment it is asked, whether more clicks come in a second than `max`.
 * @param total clicks that have come so far
 */
export function createClickRate(total: () => number, max: number, now: () => number = () => performance.now()) {
  let from = { at: now(), count: total() };
  let isHigh = false;
  return function isBusy(): boolean {
    const at = now();
    if (at - from.at < WINDOW_MS) return isHigh;
    const count = total();
    isHigh = ((count - from.count) * 1000) / (at - from.at) > max;
    from = { at, count };
    return isHigh;
  };
}
