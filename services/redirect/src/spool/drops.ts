/**
 * Why a click was given up: the ring was full; the spool was full and so was the memory beside it; the ingest will never
 * take the batch; it was in memory alone at the end of a stop; it lay in the spool and cannot be read.
 */
export const DROP_REASONS = ["ring-full", "spool-full", "batch-refused", "stopped", "damaged"] as const;
export type DropReason = (typeof DROP_REASONS)[number];
export type Drops = Record<DropReason, number>;

/** Counts of drops, made of a count for each reason. */
export function makeDrops(count: (reason: DropReason) => number): Drops {
  return Object.fromEntries(DROP_REASONS.map((reason) => [reason, count(reason)])) as Drops;
}

export const NO_DROPS: Readonly<Drops> = makeDrops(() => 0);
