// A ratio is told of the rounds in which both servers were the limit, and of none where there are too few.
import { SERVER_WAS, type Verdict } from "./bottleneck.ts";
import { median, ratios } from "./numbers.ts";
import type { Results } from "./results.ts";
import type { Measured } from "./rounds.ts";

/** More than half of the rounds: what is left is not picked out of them. */
const SHARE_MIN = 0.5;

type Judged = Pick<Measured, "rate" | "verdicts">;

/** Numbers of the rounds that say something about both; none where they are too few. */
export function measuredRounds(...both: readonly Pick<Measured, "verdicts">[]): number[] {
  const rounds = (both[0]?.verdicts ?? []).map((_, round) => round);
  const good = rounds.filter((round) => both.every(({ verdicts }) => verdicts[round] === SERVER_WAS));
  return good.length > rounds.length * SHARE_MIN ? good : [];
}

/** Claims the p99 of one as a ratio to another's, of the rounds that say something. */
export function compareP99(
  results: Results,
  what: string,
  [of, to]: readonly [Measured, Measured],
  bound: number,
): void {
  const rounds = measuredRounds(of, to);
  const all = ratios(of.p99, to.p99);
  if (rounds.length === 0) results.refuse(what, whyNot([...of.verdicts, ...to.verdicts]) ?? "");
  else
    results.atMost(
      what,
      rounds.map((round) => all[round] ?? Number.NaN),
      bound,
    );
}

/** Why a server's rounds say nothing: its commonest verdict but the good one; null where there is none. */
export function whyNot(verdicts: readonly Verdict[]): Verdict | null {
  const bad = verdicts.filter((verdict) => verdict !== SERVER_WAS);
  const times = (verdict: Verdict) => bad.filter((each) => each === verdict).length;
  return bad.toSorted((a, b) => times(b) - times(a))[0] ?? null;
}

/**
 * Tells how many answers one gives for each of another's, and claims it where there is a bound. Where only the load kept the
 * other back, which would have given more, the ratio is too high: it can break the bound, and not keep it.
 */
export function compareRate(results: Results, what: string, of: Judged, to: Judged, bound?: number): void {
  const all = ratios(of.rate, to.rate);
  const rounds = measuredRounds(of, to);
  const values = rounds.map((round) => all[round] ?? Number.NaN);
  if (rounds.length > 0) {
    if (bound === undefined) results.spread(what, values, "", "more");
    else results.atLeast(what, values, bound);
    return;
  }
  const [ofWhy, toWhy] = [whyNot(of.verdicts), whyNot(to.verdicts)];
  const lower = measuredRounds(of).length > 0 && toWhy === "the load was the bottleneck";
  const [, dividend = what, divisor = "the other"] = /(?:.*, )?(.+?) ÷ (.+)$/.exec(what) ?? [];
  const named = lower || ofWhy === null ? `for ${divisor}, ${toWhy}` : `for ${dividend.trim()}, ${ofWhy}`;
  results.refuse(what, named);
  if (lower) results.spread(`${what}, at the most`, all);
  if (lower && bound !== undefined && median(all) < bound) results.atLeast(`${what}, at the most`, all, bound);
}
