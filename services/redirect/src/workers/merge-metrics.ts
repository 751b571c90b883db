// One page of metrics of several processes: what was counted is added up, what stands is told of each of them.
import type { Metrics } from "@linkfence/service-shell";
import { AggregatorRegistry } from "prom-client";
import type { Reading } from "./messages.ts";

/** Gauges that are amounts, so that those of all processes make one; any other tells of one process alone. */
export const AMOUNTS: ReadonlySet<string> = new Set([
  "linkfence_cache_entries",
  "linkfence_cache_bytes",
  "linkfence_cache_unknown",
  "linkfence_loads_under_way",
  "linkfence_clicks_in_flight",
  "linkfence_clicks_in_ring",
  "linkfence_clicks_at_risk",
  "linkfence_click_memory_bytes",
  "linkfence_clicks_reserved",
  "linkfence_spool_bytes",
  "linkfence_spool_segments",
  "linkfence_database_pending",
  "linkfence_http_connections",
]);
const IN_FLIGHT = "linkfence_clicks_in_flight";
const LEFT = "linkfence_clicks_left_total";

export type Part = { worker: string; reading: Reading };
type Metric = Reading[number];
/** What prom-client gives beside what it promises: values of a histogram go by names of their own. */
type Values = { values: { labels: Record<string, string | number>; value: number; metricName?: string }[] };

/** By the library's names of kinds, which are an enum in its types and words in its readings. */
const kindOf = ({ type }: Metric) => String(type);
const isCounted = (metric: Metric) => ["counter", "histogram"].includes(kindOf(metric));
/** What the primary says of its workers, which nobody else does. */
const isOfFleet = ({ name }: Metric) => name.startsWith("linkfence_worker");
const isAdded = (metric: Metric) => isCounted(metric) || isOfFleet(metric) || AMOUNTS.has(metric.name);

/** The sum aggregator adds values with the same labels, and leaves those with different ones alone. */
function labelled(metric: Metric, worker: string): Metric {
  const { values, ...rest } = metric as Metric & Values;
  const ofWorker = isAdded(metric) ? values : values.map((each) => ({ ...each, labels: { ...each.labels, worker } }));
  return { ...rest, aggregator: "sum", values: ofWorker } as Metric;
}

function aggregate(readings: readonly Reading[]): AggregatorRegistry<never> {
  return AggregatorRegistry.aggregate([...readings]) as AggregatorRegistry<never>;
}

/**
 * What remains of processes that have ended: all that they counted, so that no count ever falls; and how many clicks they left in
 * the spool or lost, which keeps the ledger closed.
 */
export async function addEnded(ended: Reading, reading: Reading): Promise<Reading> {
  const counted = reading.filter(isCounted).map((metric) => labelled(metric, ""));
  const waiting = (reading.find(({ name }) => name === IN_FLIGHT) as Values | undefined)?.values ?? [];
  const left = {
    name: LEFT,
    help: "clicks that were under way when their worker ended: found in the spool, or lost, as its account says",
    type: "counter",
    aggregator: "sum",
    values: [{ labels: {}, value: waiting.reduce((sum, { value }) => sum + value, 0) }],
  };
  return aggregate([ended, [...counted, left as unknown as Metric]]).getMetricsAsJSON();
}

/** The page, in Prometheus' format. */
export function renderParts(parts: readonly Part[], ended: Reading): ReturnType<Metrics["render"]> {
  const readings = parts.map(({ worker, reading }) => reading.map((metric) => labelled(metric, worker)));
  return aggregate([...readings, ended]).metrics();
}

/** Of a process that did not answer, what it counted when it last did. */
export const countedOf = (reading: Reading): Reading => reading.filter(isCounted);
