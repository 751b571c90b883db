// What a benchmark came to: figures, and claims about them with the bound that each has to keep.
import { loadavg } from "node:os";

export type Figure = { what: string; value: string };
export type Claim = Figure & { bound: string; held: boolean };
export type Results = ReturnType<typeof createResults>;

/** Collects the results of one run; `print` is told of each as it comes. */
export function createResults(print: (line: string) => void) {
  const figures: Figure[] = [];
  const claims: Claim[] = [];

  function claim(what: string, value: number, { bound, held }: { bound: string; held: boolean }): void {
    const claimed = { what, value: formatNumber(value), bound, held };
    claims.push(claimed);
    print(`${held ? "ok  " : "FAIL"} ${what}: ${claimed.value} (${bound})`);
  }

  return {
    figures,
    claims,
    /** Something observed that is not judged. */
    figure(what: string, value: number | string, unit = ""): void {
      const text = `${typeof value === "number" ? formatNumber(value) : value}${unit === "" ? "" : ` ${unit}`}`;
      figures.push({ what, value: text });
      print(`note ${what}: ${text}`);
    },
    atMost: (what: string, value: number, bound: number) =>
      claim(what, value, { bound: `at most ${formatNumber(bound)}`, held: value <= bound }),
    atLeast: (what: string, value: number, bound: number) =>
      claim(what, value, { bound: `at least ${formatNumber(bound)}`, held: value >= bound }),
    /** The machine's load beside what was measured on it: a figure of a busy machine says little. */
    noteLoad(when: string): void {
      const [one = 0, five = 0] = loadavg();
      this.figure(`load average ${when}`, `${one.toFixed(1)}, ${five.toFixed(1)} over 1 and 5 minutes`);
    },
  };
}

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
