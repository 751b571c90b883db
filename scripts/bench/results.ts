// What a benchmark came to: figures, and claims about them with the bound that each has to keep.
import { loadavg } from "node:os";
import { type Spread, spreadOf } from "./numbers.ts";

export type Figure = { what: string; value: string };
export type Claim = Figure & { bound: string; held: boolean };
/** A ratio that can be held against another run's: what is better, and how far its rounds lie apart. */
export type Sample = { what: string; better: "more" | "less" } & Spread;
export type Results = ReturnType<typeof createResults>;
/** One value, or that of each round: the median is judged. */
type Values = number | readonly number[];

/**
 * Collects the results of one run; `print` is told of each as it comes.
 * @param quick judge for a collapse alone: at half of what has to be reached, twice of what has to be kept
 */
export function createResults(print: (line: string) => void, quick = false) {
  const figures: Figure[] = [];
  const claims: Claim[] = [];
  const samples: Sample[] = [];
  const refused: string[] = [];
  const tables: string[] = [];

  function claim(what: string, values: Values, bound: string, holds: (value: number) => boolean): void {
    const spread = spreadOf(typeof values === "number" ? [values] : values);
    const value = typeof values === "number" ? formatNumber(values) : formatSpread(spread);
    const claimed = { what, value, bound, held: holds(spread.median) };
    claims.push(claimed);
    print(`${claimed.held ? "ok  " : "FAIL"} ${what}: ${claimed.value} (${bound})`);
  }

  function sample(what: string, values: Values, better: Sample["better"]): void {
    if (typeof values !== "number") samples.push({ what, better, ...spreadOf(values) });
  }

  return {
    figures,
    claims,
    samples,
    /** What could not be measured, and why. */
    refused,
    /** For documents, in Markdown. */
    tables,
    /** Something observed that is not judged. */
    figure(what: string, value: number | string, unit = ""): void {
      const text = `${typeof value === "number" ? formatNumber(value) : value}${unit === "" ? "" : ` ${unit}`}`;
      figures.push({ what, value: text });
      print(`note ${what}: ${text}`);
    },
    /** The same with the spread of its rounds; a ratio that is not judged can still be held against another run's. */
    spread(what: string, values: readonly number[], unit = "", better?: Sample["better"]): void {
      this.figure(what, formatSpread(spreadOf(values)), unit);
      if (better !== undefined) sample(what, values, better);
    },
    /** Something that this run cannot say, and why. */
    refuse(what: string, why: string): void {
      refused.push(`${what}: ${why}`);
      figures.push({ what, value: `not reported: ${why}` });
      print(`NONE ${what}: ${why}`);
    },
    atMost(what: string, values: Values, bound: number): void {
      const kept = quick ? bound * 2 : bound;
      sample(what, values, "less");
      claim(what, values, `at most ${formatNumber(kept)}`, (value) => value <= kept);
    },
    atLeast(what: string, values: Values, bound: number): void {
      const kept = quick ? bound / 2 : bound;
      sample(what, values, "more");
      claim(what, values, `at least ${formatNumber(kept)}`, (value) => value >= kept);
    },
    /** The machine's load beside what was measured on it: a figure of a busy machine says little. */
    noteLoad(when: string): void {
      const [one = 0, five = 0] = loadavg();
      this.figure(`load average ${when}`, `${one.toFixed(1)}, ${five.toFixed(1)} over 1 and 5 minutes`);
    },
  };
}

const formatSpread = ({ median, low, high }: Spread) =>
  `${formatNumber(median)} (${formatNumber(low)} to ${formatNumber(high)})`;

/** Whole numbers from a hundred on, three digits below. */
function formatNumber(value: number): string {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

/** Lays out rows as a table in plain text. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
