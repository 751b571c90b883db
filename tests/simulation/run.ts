// Many schedules in one process, a few of them at once: what it takes to let promises go on is paid for all together.
import type { Twin } from "./twins.ts";
import { createSchedule, type Schedule } from "./world.ts";

/** More of them live longer, each, and cost the collector of garbage more than they save. */
const AT_ONCE = 4;
/**
 * How many promises may wait for each other in a row, from an answer of the database to that of a request. There are some
 * fifteen; a test holds histories against those where each turn of the event loop lets all promises go on.
 */
const CHAIN = 40;
/** Signals and output get their turn after so many schedules: a fraction of a second. */
const YIELD_EVERY = 200;

export type Found = { seed: number; violations: readonly string[] };
export type Run = {
  schedules: number;
  steps: number;
  found: readonly Found[];
  /** What happened how often, so that one can see that it did. */
  tally: ReadonlyMap<string, number>;
};

export type RunOptions = {
  from: number;
  count: number;
  twin: Twin;
  /** Ends the run when so many seeds have failed; those under way are judged, too. */
  enough?: number;
  /** Told after every 200 of them. */
  onProgress?: (schedules: number, failed: number) => void;
};

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Runs the schedules of `count` seeds, from the seed `from` on. */
export async function runSchedules({ from, count, twin, enough = 1, onProgress }: RunOptions): Promise<Run> {
  const found: Found[] = [];
  const tally = new Map<string, number>();
  let [begun, ended, steps] = [0, 0, 0];
  let underWay: Schedule[] = [];
  let pausing = false;

  function finish({ seed, judge, steps: stepsOf }: Schedule): void {
    ended += 1;
    steps += stepsOf();
    if (judge.violations().length > 0) found.push({ seed, violations: judge.violations() });
    if (ended % YIELD_EVERY !== 0) return;
    onProgress?.(ended, found.length);
    pausing = true;
  }

  do {
    while (underWay.length < AT_ONCE && begun < count && found.length < enough) {
      underWay.push(createSchedule(from + begun, { twin, tally }));
      begun += 1;
    }
    if (pausing) await nextTurn();
    pausing = false;
    for (let link = 0; link < CHAIN; link += 1) await undefined;
    const before = underWay;
    underWay = [];
    for (const schedule of before) {
      if (schedule.turn()) underWay.push(schedule);
      else finish(schedule);
    }
  } while (underWay.length > 0 || (begun < count && found.length < enough));
  found.sort((a, b) => a.seed - b.seed);
  return { schedules: ended, steps, found, tally };
}

/** Runs the schedule of one seed, and returns its history to the letter. */
export async function tellSchedule(
  seed: number,
  twin: Twin,
): Promise<{ history: readonly string[]; violations: readonly string[] }> {
  const history: string[] = [];
  const schedule = createSchedule(seed, { twin, tally: new Map(), history });
  do await nextTurn();
  while (schedule.turn());
  return { history, violations: schedule.judge.violations() };
}
