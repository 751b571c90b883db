// How sums between cuts become what is answered.
import {
  type DroppedSums,
  KILLED,
  type LinkStats,
  type LinkSums,
  type OwnerStats,
  type OwnerSums,
  type StatsPoint,
  type StepSums,
} from "@linkfence/contracts";
import type { Period } from "./stats-period.ts";
import { formatLocal } from "./time-zone.ts";

/** @param sums of the steps of the same period */
export function describeLinkStats(period: Period, { series, top, code, ...sums }: LinkSums): LinkStats {
  const none = { items: [], others: 0 };
  return {
    code,
    total: sums.total,
    bots: sums.bots,
    prefetches: sums.prefetches,
    ...describePeriod(period),
    series: describeSeries(period, series),
    top: {
      referrers: top?.referrer ?? none,
      browsers: top?.browser ?? none,
      systems: top?.os ?? none,
      devices: top?.device ?? none,
      countries: top?.country ?? none,
    },
    ...describeDropped(sums.dropped),
  };
}

/** @param sums of the steps of the same period */
export function describeOwnerStats(period: Period, { series, ...sums }: OwnerSums): OwnerStats {
  return {
    total: sums.total,
    bots: sums.bots,
    prefetches: sums.prefetches,
    ...describePeriod(period),
    series: describeSeries(period, series),
    links: sums.links,
    ...describeDropped(sums.dropped),
  };
}

/** What came together, and must not be added up: clicks that were counted, and a bound. */
function describeDropped(sums: DroppedSums): Pick<LinkStats, "dropped" | "killed"> {
  const of = (name: string) => sums.find(({ reason }) => reason === name)?.total ?? 0;
  return {
    dropped: sums.filter(({ reason }) => reason !== KILLED.atMost && reason !== KILLED.unknown),
    killed: { atMost: of(KILLED.atMost), unknown: of(KILLED.unknown) },
  };
}

function describePeriod({ zone, interval, edges }: Period) {
  const at = (edge: number | undefined) => formatLocal(zone, edge ?? Number.NaN);
  return { from: at(edges[0]), to: at(edges.at(-1)), interval, timezone: zone.name };
}

function describeSeries({ zone, edges }: Period, series: readonly StepSums[]): StatsPoint[] {
  return series.map(([total, bots, prefetches], index) => ({
    start: formatLocal(zone, edges[index] ?? Number.NaN),
    total,
    bots,
    prefetches,
  }));
}
