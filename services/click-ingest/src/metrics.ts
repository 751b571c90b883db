import type { Database } from "@linkfence/db";
import { createMetrics, type Metrics } from "@linkfence/service-shell";
import type { createAuthentication } from "./http/authenticate.ts";
import type { createBodyReader } from "./http/batch-body.ts";
import type { DropReports } from "./queue/drop-reports.ts";
import type { Intake } from "./queue/intake.ts";
import type { Ledger } from "./queue/ledger.ts";
import type { Writer } from "./queue/writer.ts";
import type { ClickDays } from "./store/click-days.ts";
import type { createDayValues } from "./store/day-values.ts";
import type { DeadClicks } from "./store/dead-clicks.ts";
import type { Upkeep } from "./upkeep.ts";

export type Observed = {
  ledger: Ledger;
  intake: Intake;
  writer: Writer;
  drops: DropReports;
  dayValues: Pick<ReturnType<typeof createDayValues>, "stats">;
  bodies: ReturnType<typeof createBodyReader>;
  authentication: ReturnType<typeof createAuthentication>;
  days: ClickDays;
  deadClicks: DeadClicks;
  upkeep: Upkeep;
  /** By the name that stands in the `pool` label. */
  pools: Record<string, Database>;
};

/** Creates the metrics page of the process. The numbers are read from their owners when the page is asked for. */
export function createIngestMetrics(observed: Observed): Metrics {
  const metrics = createMetrics();
  observeClicks(metrics, observed);
  observeWork(metrics, observed);
  observeKeeping(metrics, observed);
  observePools(metrics, observed.pools);
  return metrics;
}

function observeClicks({ counter, gauge }: Metrics, { ledger, intake, writer }: Observed): void {
  const name = (what: string) => `linkfence_ingest_clicks_${what}`;
  counter(name("received_total"), "Clicks in the batches that came in.", () => ledger.read().received);
  counter(name("inserted_total"), "Clicks answered as newly stored.", () => ledger.read().inserted);
  counter(name("duplicate_total"), "Clicks answered as stored before.", () => ledger.read().duplicate);
  counter(name("dead_lettered_total"), "Clicks kept as dead letters.", () => ledger.read().deadLettered, "reason");
  counter(name("refused_total"), "Clicks answered as refused.", () => ledger.read().refused, "reason");
  counter(name("given_back_total"), "Clicks whose sender keeps them.", () => ledger.read().givenBack, "reason");
  gauge(name("in_flight"), "Clicks whose batch is not answered yet.", () => ledger.read().inFlight);
  gauge("linkfence_ingest_intake_clicks", "Clicks waiting to be stored.", () => intake.stats().clicks);
  gauge(
    "linkfence_ingest_suspect_clicks",
    "Clicks of batches of which the database refused some.",
    () => writer.stats().suspects,
  );
  gauge("linkfence_ingest_intake_bytes", "Their memory, as an upper estimate.", () => intake.stats().bytes);
}

function observeWork({ counter, gauge }: Metrics, { writer, drops, bodies, authentication }: Observed): void {
  counter("linkfence_ingest_batches_stored_total", "Committed transactions.", () => writer.stats().batches);
  counter("linkfence_ingest_rows_stored_total", "Rows they added.", () => writer.stats().rows);
  counter("linkfence_ingest_batches_failed_total", "Failed transactions.", () => writer.stats().failed, "sqlstate");
  counter("linkfence_ingest_retries_total", "Transactions tried again.", () => writer.stats().retries);
  counter(
    "linkfence_ingest_isolations_total",
    "Times that some of them were looked through.",
    () => writer.stats().isolations,
  );
  counter(
    "linkfence_ingest_drop_reports_stored_total",
    "Reports of dropped clicks stored.",
    () => drops.stats().stored,
  );
  counter("linkfence_ingest_drop_reports_failed_total", "Those that failed.", () => drops.stats().failed);
  counter("linkfence_ingest_bodies_turned_away_total", "Batches refused unread.", () => bodies.stats().turnedAway);
  gauge("linkfence_ingest_bodies_reading", "Batches being read.", () => bodies.stats().reading);
  counter("linkfence_ingest_unauthorized_total", "Calls without the secret.", () => authentication.stats().refused);
}

function observeKeeping({ counter, gauge }: Metrics, { days, dayValues, deadClicks, upkeep }: Observed): void {
  const name = (what: string) => `linkfence_ingest_${what}`;
  gauge(name("dead_clicks"), "Dead letters that wait for an operator: alert on any.", () => deadClicks.stats().rows);
  gauge(name("dead_clicks_max"), "Dead letters at the most.", () => deadClicks.stats().rowsMax);
  gauge(name("dead_clicks_bytes"), "Bytes of their payloads.", () => deadClicks.stats().bytes);
  gauge(name("dead_clicks_bytes_max"), "Bytes of payloads at the most.", () => deadClicks.stats().bytesMax);
  counter(name("click_days_dropped_total"), "Days of clicks that were dropped.", () => days.stats().dropped);
  counter(name("days_added_up_total"), "Busy days whose values were added up.", () => dayValues.stats().added);
  counter(name("chores_failed_total"), "Chores that failed.", () => upkeep.stats().failures, "chore");
}

function observePools({ counter, gauge }: Metrics, pools: Record<string, Database>): void {
  const read = (what: keyof ReturnType<Database["stats"]>) => () =>
    Object.fromEntries(Object.entries(pools).map(([pool, database]) => [pool, database.stats()[what]]));
  const name = (what: string) => `linkfence_ingest_database_${what}`;
  counter(name("deadlines_total"), "Calls that ended at their deadline.", read("deadlines"), "pool");
  counter(name("overloaded_total"), "Calls refused as too many waited.", read("overloaded"), "pool");
  counter(name("connections_lost_total"), "Connections that ended.", read("connectionsLost"), "pool");
  counter(name("pools_replaced_total"), "Times that all connections were replaced.", read("poolsReplaced"), "pool");
  gauge(name("calls_pending"), "Calls under way or waiting.", read("pending"), "pool");
  gauge(name("sockets"), "Open sockets.", read("sockets"), "pool");
}
