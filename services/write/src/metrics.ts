import type { Database } from "@linkfence/db";
import type { Metrics } from "@linkfence/service-shell";
import type { ChangeStreams } from "./changes/streams.ts";
import type { Counts } from "./counts.ts";
import type { RegistryWatch } from "./effective/registry-watch.ts";
import type { Exports } from "./exports.ts";
import type { BodyBudget } from "./http/body-budget.ts";
import type { Downloads } from "./http/download.ts";
import type { RateLimits } from "./http/rate-limits.ts";
import type { Imports } from "./imports/imports.ts";
import type { KeyUsage } from "./key-usage.ts";
import type { LiveCountsStreams } from "./live/live-counts.ts";
import type { Statistics } from "./statistics.ts";
import type { Idempotency } from "./store/idempotency.ts";

export type Measured = {
  counts: Counts;
  statistics: Statistics;
  budget: BodyBudget;
  idempotency: Idempotency;
  keyUsage: KeyUsage;
  streams: Pick<ChangeStreams, "stats">;
  live: Pick<LiveCountsStreams, "stats">;
  watch: Pick<RegistryWatch, "stats">;
  db: Database;
  imports: Imports;
  exports: Pick<Exports, "stats">;
  downloads: Pick<Downloads, "stats">;
};

/** Registers everything this service tells about itself. All of it is read when the page is asked for. */
export function registerMetrics(metrics: Metrics, measured: Measured): void {
  const { counts, statistics, budget, idempotency, keyUsage, streams, live, watch, imports, db } = measured;
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
  registerKeys(metrics, counts, keyUsage);
  registerStreams(metrics, counts.changes, streams);
  registerLiveCounts(metrics, counts.live, live);
  registerEffective(metrics, counts, watch);
  registerImports(metrics, counts.imports, imports);
  registerExports(metrics, measured);
  registerDatabase(metrics, db);
}

function registerExports(
  { counter, gauge }: Metrics,
  { exports, downloads }: Pick<Measured, "exports" | "downloads">,
): void {
  gauge("linkfence_export_calls_under_way", "calls about exports under way", () => exports.stats().underWay);
  counter("linkfence_export_call_failures_total", "calls about exports not answered", () => exports.stats().failures);
  gauge("linkfence_downloads", "downloads under way", () => downloads.stats().open);
  gauge("linkfence_downloads_max", "downloads at a time", () => downloads.stats().max);
  counter("linkfence_downloads_total", "downloads that ended", () => downloads.stats().ended, "outcome");
  counter("linkfence_download_bytes_total", "bytes of files sent", () => downloads.stats().bytes);
}

function registerKeys({ counter, gauge }: Metrics, counts: Counts, keyUsage: KeyUsage): void {
  counter("linkfence_keys_total", "API keys that were to be made, rotated or revoked", () => counts.keys, "outcome");
  counter("linkfence_key_uses_written_total", "last uses of keys written", () => counts.keyUses.written);
  counter("linkfence_key_uses_dropped_total", "last uses not noted for want of room", () => counts.keyUses.dropped);
  counter("linkfence_key_use_failures_total", "statements that wrote no last use", () => counts.keyUses.failures);
  gauge("linkfence_key_uses_pending", "keys whose last use is to be written", keyUsage.pending);
}

function registerStreams({ counter, gauge }: Metrics, counts: Counts["changes"], streams: Measured["streams"]): void {
  gauge("linkfence_change_streams", "streams of changes open", () => streams.stats().open);
  gauge("linkfence_change_stream_reads", "pages read for streams", () => streams.stats().reads, "where");
  counter("linkfence_change_stream_events_total", "changes sent in streams", () => counts.events);
  counter("linkfence_change_streams_ended_total", "streams that ended", () => counts.ended, "why");
  counter("linkfence_change_streams_refused_total", "streams not opened", () => counts.refused, "bound");
  counter("linkfence_change_stream_failures_total", "failed reads for streams", () => counts.failures, "what");
}

function registerLiveCounts({ counter, gauge }: Metrics, counts: Counts["live"], live: Measured["live"]): void {
  gauge("linkfence_count_streams", "streams of counts open", () => live.stats().open);
  gauge("linkfence_count_stream_reads", "counts read for streams", () => live.stats().reads, "where");
  counter("linkfence_count_stream_events_total", "counts sent in streams", () => counts.events);
  counter("linkfence_count_streams_ended_total", "streams of counts that ended", () => counts.ended, "why");
  counter("linkfence_count_streams_refused_total", "streams of counts not opened", () => counts.refused, "bound");
  counter("linkfence_count_stream_failures_total", "failed reads for streams of counts", () => counts.failures, "what");
}

function registerEffective({ counter, gauge }: Metrics, { effective, trims }: Counts, watch: Measured["watch"]): void {
  gauge("linkfence_instances", "redirect processes registered", () => watch.stats().instances);
  gauge("linkfence_instance_lag", "changes that a process has not acknowledged", () => watch.stats().lag, "address");
  gauge("linkfence_epoch_settled", "1 while acknowledgements alone can confirm a revocation", () =>
    watch.stats().settled ? 1 : 0,
  );
  gauge("linkfence_revocation_waits", "calls that wait for a revocation", () => watch.stats().waiting);
  counter("linkfence_revocations_confirmed_total", "waits that ended well", () => effective.confirmed, "by");
  counter("linkfence_revocations_unconfirmed_total", "waits that ended early", () => effective.unconfirmed, "why");
  counter("linkfence_registry_looks_total", "looks at the registry", () => effective.looks);
  counter("linkfence_registry_failures_total", "looks at the registry that failed", () => effective.failures);
  counter("linkfence_instances_removed_total", "silent processes taken out of the registry", () => effective.removed);
  counter("linkfence_changes_trimmed_total", "old changes removed from the log", () => trims.removed);
  counter("linkfence_change_trim_failures_total", "failed removals of old changes", () => trims.failures);
}

/** What the limits on calls refused, and how many clients they remember. */
export function registerLimitMetrics({ counter, gauge }: Metrics, counts: Counts, limits: RateLimits): void {
  const { key, address, known } = limits;
  const each = (name: "clients" | "evicted") => () => ({ key: key.stats()[name], address: address.stats()[name] });
  counter("linkfence_rate_limited_total", "calls refused by a rate limit", () => counts.rateLimited, "limit");
  gauge("linkfence_rate_limit_clients", "clients that a rate limit remembers", each("clients"), "limit");
  gauge("linkfence_known_keys", "keys remembered as valid when last seen", known.size);
  counter("linkfence_rate_limit_evictions_total", "clients forgotten for want of room", each("evicted"), "limit");
}

function registerImports({ counter, gauge }: Metrics, counts: Counts["imports"], imports: Imports): void {
  counter("linkfence_imports_total", "uploads of imports, by their end", () => counts.uploads, "outcome");
  counter("linkfence_import_lines_total", "lines of imports", () => counts.lines, "outcome");
  counter("linkfence_import_refusals_total", "uploads and lines that met a bound", () => counts.refusals, "reason");
  counter("linkfence_import_errors_dropped_total", "refused lines without a kept reason", () => counts.errorsDropped);
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
