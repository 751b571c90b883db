// What a seed makes of a schedule: how large, how fast, in what weather, and what goes wrong when.
import type { Dice } from "./dice.ts";
import type { Weather } from "./line.ts";

export type Fault =
  | "stop-redirect"
  | "sleep-redirect"
  | "kill-redirect"
  | "shut-down-redirect"
  | "start-redirect"
  | "cut-feed"
  | "cut-redirect"
  | "slow-feed"
  | "slow-links"
  | "stop-write"
  | "restart-write"
  | "cut-write"
  | "slow-write"
  | "step-wall"
  | "trim"
  | "crash"
  | "fail-over";

/** What goes wrong together. A schedule with some of everything has hardly enough of anything. */
const THEMES: readonly (readonly Fault[])[] = [
  [],
  ["cut-feed", "slow-feed", "stop-redirect"],
  ["stop-redirect", "slow-links", "slow-feed"],
  ["kill-redirect", "shut-down-redirect", "start-redirect", "slow-links"],
  ["fail-over", "cut-redirect", "start-redirect"],
  ["fail-over", "slow-feed", "stop-write", "slow-links"],
  ["crash", "cut-feed", "slow-feed"],
  ["trim", "cut-feed", "stop-redirect"],
  ["step-wall", "stop-write", "restart-write", "cut-write"],
  ["step-wall", "step-wall", "cut-feed", "stop-redirect"],
  ["slow-write", "slow-feed", "cut-feed", "start-redirect"],
];
/** Where the machine may sleep its wall clock is right: a process can tell that time has passed by one of the two. */
const SLEEP_THEME: readonly Fault[] = ["sleep-redirect", "cut-feed"];

export type Plan = ReturnType<typeof drawPlan>;

/** In fair weather the bounds are met to a part in some thousands. */
const FAIR = { slow: 0, slowMs: 0, loss: 0 };

export function drawPlan(dice: Dice) {
  const isTight = dice.chance(0.08);
  // Short ones, beside which the allowance for reading a clock is long, and long ones, beside which it is nothing.
  const ttlMs = isTight ? 600_000 : dice.pick([600, 3000, 20_000]);
  const theme = isTight ? [] : dice.chance(0.1) ? SLEEP_THEME : dice.pick(THEMES);
  const meanMs = ttlMs * (isTight ? 0.000_01 : dice.pick([0.0005, 0.005]));
  const foul: Weather = {
    meanMs,
    slow: dice.pick([0, 0.02, 0.1]),
    slowMs: ttlMs * dice.between(0.2, 1.4),
    loss: dice.pick([0, 0, 0.05]),
  };
  const anchor = dice.between(0.3, 1.3);
  const weather = isTight ? { ...FAIR, meanMs } : foul;
  const revocations = isTight ? [] : drawRevocations(dice, ttlMs, anchor);
  const faults = theme.length === 0 ? 0 : dice.whole(1, 4);
  return {
    ttlMs,
    /** True ms after which nothing is looked at any more. */
    endsAt: ttlMs * (anchor + 2.4),
    codes: ["aaa", "bbb", "ccc"].slice(0, dice.whole(1, 3)),
    redirects: Array.from({ length: dice.pick([1, 1, 2, 3]) }, () => ttlMs * (isTight ? 1 : dice.pick([1, 1, 1, 0.5]))),
    writes: dice.pick([1, 1, 2]),
    /** Three rows are the fewest with which a reader gets on by two. */
    pageLimit: dice.pick([3, 2000]),
    /** A poll of 0 leaves notifications and renewals. */
    pollMs: ttlMs * dice.pick([1 / 16, 1 / 8, 1 / 5, 0]),
    deadlineMs: ttlMs * dice.pick([0.15, 0.5, 1.2]),
    looksMs: { awaited: ttlMs / 16, idle: ttlMs * dice.pick([1 / 8, 1 / 3]) },
    /** Part of all notifications that never come. */
    lostHints: dice.pick([0, 0.3, 1]),
    weather,
    requests: Array.from({ length: dice.whole(12, 30) }, () => ttlMs * dice.between(0, anchor + 2.2)),
    faults: Array.from({ length: faults }, () => ({
      at: ttlMs * (anchor + (dice.chance(0.4) ? dice.between(-0.1, 0.05) : dice.between(-0.3, 0.8))),
      fault: dice.pick(theme),
    })),
    revocations,
    /** Part of all revocations after which the log is trimmed at once: a clock of the server was set forward. */
    trims: theme.includes("trim") ? 0.6 : 0,
    /** True ms of a revocation that meets processes whose memory is as young as can be, and cut off from then on. */
    tightAt: isTight ? ttlMs * anchor : null,
    /** Part of all processes that are asked for links before they have read the log. */
    early: dice.pick([0, 0.5, 1]),
    /** Calls that ask once more for what was revoked. */
    asks: Array.from({ length: dice.whole(0, 2) }, () => ttlMs * (anchor + dice.between(0, 2))),
  };
}

/** In TTLs from the time at which things go wrong: at the same time, or when one of the waits that follow may be over. */
function drawMoment(dice: Dice): number {
  return dice.chance(0.4) ? dice.between(-0.1, 0.1) : dice.between(-0.2, 1.7);
}

/** Some of them with another one close behind, which may draw its number, or be committed, before it. */
function drawRevocations(dice: Dice, ttlMs: number, anchor: number): number[] {
  return Array.from({ length: dice.whole(1, 3) }, () => ttlMs * (anchor + drawMoment(dice))).flatMap((at) =>
    dice.chance(0.4) ? [at, at + dice.delay(ttlMs / 100)] : [at],
  );
}
