import type { Database } from "@linkfence/db";
import type { Metrics } from "@linkfence/service-shell";
import type { Counts } from "./counts.ts";
import type { BodyBudget } from "./http/body-budget.ts";
import type { Imports } from "./imports/imports.ts";
import type { Statistics } from "./statistics.ts";
import type { Idempotency } from "./store/idempotency.ts";

export type Measured = {
  counts: Counts;
  statistics: Statistics;
  budget: BodyBudget;
  idempotency: Idempotency;
  db: Database;
  imports: Imports;
};

/** Registers everything this service tells about itself. All of it is read when the page is asked for. */
export function registerMetrics(
  metrics: Metrics,
  { counts, statistics, budget, idempotency, db, imports }: Measured,
): void {
  const { counter, gauge } = metrics;
  counter("linkfence_requests_total", "requests answered", () => requestSamples(counts), ["route", "status"]);
  counter("linkfence_links_created_total", "links created", () => counts.created, "kind");
  counter("linkfence_code_collisions_total", "random codes that were taken already", () => counts.collisions);
  counter("linkfence_revocations_total", "codes that were to be revoked", () => counts.revoked, "outcome");
  counter("linkfence_listings_cut_total", "pages ended by the bound on links looked at", () => counts.listingsCut);
  counter("linkfence_auth_failures_total", "calls refused for their key", () => counts.authFailures, "reason");
  counter("linkfence_statistics_failures_total", "statistics not delivered", () => statistics.stats().failures);
  gauge("linkfence_statistics_under_way", "statistics being read", () => statistics.stats().underWay);
  counter("linkfence_batches_refused_total", "batches refused for want of memory", () => budget.stats().refused);
  gauge("linkfence_batch_bytes", "bytes reserved for the bodies of batches", () => budget.stats().taken);
  counter("linkfence_idempotent_requests_total", "creations with a key", () => counts.idempotency, "outcome");
  gauge(
    "linkfence_idempotency_keys_awaited",
    "requests that wait for a key in use",
    () => idempotency.stats(),
    "where",
  );
  counter("linkfence_idempotency_records_removed_total", "expired answers removed", () => counts.sweeps.removed);
  counter("linkfence_idempotency_sweep_failures_total", "failed removals", () => counts.sweeps.failures);
  registerImports(metrics, counts.imports, imports);
  registerDatabase(metrics, db);
}

function registerImports({ counter, gauge }: Metrics, counts: Counts["imports"], imports: Imports): void {
  counter("linkfence_imports_total", "uploads of imports, by their end", () => counts.uploads, "outcome");
  counter("linkfence_import_lines_total", "lines of imports", () => counts.lines, "outcome");
  counter("linkfence_import_refusals_total", "uploads that met a bound", () => counts.refusals, "reason");
  counter("linkfence_import_retries_total", "repeated tries of an import to commit", () => counts.retries);
  gauge("linkfence_imports_running", "imports under way in this process", () => imports.stats().running);
}

function registerDatabase({ counter, gauge }: Metrics, db: Database): void {
  const each = (name: keyof ReturnType<Database["stats"]>) => () => ({ main: db.stats()[name] });
  counter("linkfence_database_deadlines_total", "queries that missed their deadline", each("deadlines"), "pool");
  counter("linkfence_database_pools_replaced_total", "pools given up as mute", each("poolsReplaced"), "pool");
  counter("linkfence_database_connections_lost_total", "connections that ended", each("connectionsLost"), "pool");
  counter("linkfence_database_overloaded_total", "queries refused unsent", each("overloaded"), "pool");
  gauge("linkfence_database_pending", "queries under way or waiting", each("pending"), "pool");
  gauge("linkfence_database_sockets", "open connections", each("sockets"), "pool");
}

function requestSamples(counts: Counts) {
  return [...counts.requests].map(([key, value]) => {
    const at = key.lastIndexOf(" ");
    return { labels: { route: key.slice(0, at), status: key.slice(at + 1) }, value };
  });
}
