import { setTimeout as pause } from "node:timers/promises";

/** Time of processors is told in hundredths of a second: two of them in this time are a share of 0.05. */
const LOOK_MS = 400;
/** What idles takes less: timers, and looks at a log that does not grow. */
const REST_SHARE = 0.05;
/** A checkpoint or a vacuum of a few million rows is over by then. What goes on for longer meets all servers. */
const REST_MAX_MS = 30_000;

/**
 * Waits until processes take next to nothing, for half a minute at the most.
 * @param cpuMs what they have taken so far
 */
export async function waitForRest(
  cpuMs: () => Promise<number>,
  tell: (text: string) => void,
  { lookMs = LOOK_MS, maxMs = REST_MAX_MS } = {},
): Promise<void> {
  const endsAt = performance.now() + maxMs;
  for (let [before, since] = [await cpuMs(), performance.now()]; ; ) {
    await pause(lookMs);
    const [after, at] = [await cpuMs(), performance.now()];
    const share = (after - before) / (at - since);
    // Where the system does not tell, there is nothing to wait for.
    if (!(share > REST_SHARE)) return;
    if (at > endsAt) {
      tell(`what is behind the servers still takes ${Math.round(share * 100)} % of a core after ${maxMs / 1000} s`);
      return;
    }
    [before, since] = [after, at];
  }
}
