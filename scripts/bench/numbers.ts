/** The value below which the share `p` of all values lies (nearest rank); NaN of none. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * p) - 1)] ?? Number.NaN;
}

export const median = (values: readonly number[]) => percentile(values, 0.5);

/** What each round came to, divided by what the same round of the other came to: the machine drifts between rounds. */
export function ratios(of: readonly number[], to: readonly number[]): number[] {
  return of.map((each, round) => each / (to[round] ?? Number.NaN));
}

/** The middle of several rounds and how far they lie apart. */
export type Spread = { median: number; low: number; high: number };

/** NaN of no rounds. */
export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), low: percentile(values, 0), high: percentile(values, 1) };
}
