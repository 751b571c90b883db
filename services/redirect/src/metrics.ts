import type { Database } from "@linkfence/db";
import type { Follower, Wake } from "@linkfence/link-feed";
import type { Metrics } from "@linkfence/service-shell";
import type { LinkLookup } from "./cache/link-lookup.ts";
import type { ReadBatches } from "./cache/read-batches.ts";
import type { ClickPath } from "./clicks/click-path.ts";
import type { HotPath } from "./http/hot-path.ts";
import type { PlainConnections } from "./http/plain-connections.ts";
import { NO_DROPS } from "./spool/drops.ts";
import type { Spool } from "./spool/open-spool.ts";

export type Measured = {
  hotPath: HotPath;
  plain: Pick<PlainConnections, "stats">;
  lookup: LinkLookup;
  reads: ReadBatches;
  follower: Follower;
  wake: Wake | null;
  clicks: ClickPath;
  spool: Spool | null;
  databases: Record<string, Database>;
  syncAgeMs: () => number;
};

/** Registers everything this service tells about itself. All of it is read when the page is asked for. */
export function registerMetrics(metrics: Metrics, measured: Measured): void {
  const { counter, gauge } = metrics;
  const { hotPath, plain, lookup, reads, follower, wake, databases, syncAgeMs } = measured;
  counter("linkfence_answers_total", "requests answered, by outcome", hotPath.counts, "outcome");
  gauge("linkfence_plain_connections", "connections with plain requests alone so far", () => plain.stats().open);
  counter(
    "linkfence_connections_passed_on_total",
    "connections whose requests Node's server reads",
    () => plain.stats().passedOn,
  );

  const cache = () => lookup.stats();
  counter("linkfence_cache_hits_total", "answers from memory", () => cache().hits);
  counter("linkfence_cache_misses_total", "codes that were not in memory", () => cache().misses);
  counter("linkfence_cache_stale_total", "entries that were too old, or fenced, to answer with", () => cache().stale);
  counter("linkfence_cache_refreshes_total", "entries read anew before their end", () => cache().refreshes);
  counter(
    "linkfence_cache_refreshes_put_off_total",
    "entries not read anew yet, as too many were",
    () => cache().refreshesPutOff,
  );
  gauge("linkfence_cache_refreshes_under_way", "entries being read anew", () => cache().refreshing);
  counter("linkfence_loads_total", "reads of a link", () => cache().loads);
  counter("linkfence_loads_joined_total", "requests that shared a read under way", () => cache().joined);
  counter("linkfence_load_failures_total", "reads of a link that failed", () => cache().failures);
  counter("linkfence_fills_refused_total", "reads overtaken by a change and not kept", () => cache().fillsRefused);
  counter("linkfence_cache_evictions_total", "links put out of memory to make room", () => cache().evicted);
  gauge("linkfence_cache_entries", "links in memory", () => cache().entries);
  gauge("linkfence_cache_bytes", "bytes that links in memory occupy", () => cache().bytes);
  gauge("linkfence_cache_unknown", "unknown codes in memory", () => cache().unknown);
  gauge("linkfence_loads_under_way", "reads of a link under way", () => cache().underWay);

  const batches = () => reads.stats();
  counter("linkfence_link_statements_total", "statements that read links, many at once", () => batches().statements);
  counter("linkfence_link_statements_split_total", "statements refused and asked in halves", () => batches().split);
  counter("linkfence_link_reads_refused_total", "reads of a link refused, as too many waited", () => batches().refused);
  counter("linkfence_link_reads_late_total", "reads of a link given up at their deadline", () => batches().givenUp);
  gauge("linkfence_link_reads_waiting", "reads of a link that wait for a statement", () => batches().waiting);
  gauge("linkfence_link_statements_under_way", "statements that read links, under way", () => batches().sent);

  const feed = () => follower.stats();
  counter("linkfence_syncs_total", "reads of the change log", () => feed().syncs);
  counter("linkfence_sync_failures_total", "reads of the change log that failed", () => feed().failures);
  counter("linkfence_changes_applied_total", "changes applied", () => feed().applied);
  counter("linkfence_renewals_total", "renewals of this instance's row", () => feed().renewals);
  counter("linkfence_flushes_total", "times everything in memory was forgotten, by cause", follower.flushes, "cause");
  gauge("linkfence_applied_seq", "number of the last change applied", () => feed().appliedSeq);
  gauge("linkfence_feed_lag", "changes known to exist and not applied", () => feed().lag);
  gauge("linkfence_sync_age_seconds", "time since the last complete read of the change log", () => syncAgeMs() / 1000);
  gauge("linkfence_listening", "1 while notifications are known to arrive", () =>
    wake?.state() === "listening" ? 1 : 0,
  );
  counter("linkfence_listen_reconnects_total", "connections for LISTEN given up", () => wake?.stats().reconnects ?? 0);

  registerClickMetrics(metrics, measured);

  const each = (read: (stats: ReturnType<Database["stats"]>) => number) => () =>
    Object.fromEntries(Object.entries(databases).map(([name, database]) => [name, read(database.stats())]));
  counter(
    "linkfence_database_deadlines_total",
    "queries that missed their deadline",
    each((s) => s.deadlines),
    "pool",
  );
  counter(
    "linkfence_database_pools_replaced_total",
    "pools given up as mute",
    each((s) => s.poolsReplaced),
    "pool",
  );
  counter(
    "linkfence_database_overloaded_total",
    "queries refused unsent",
    each((s) => s.overloaded),
    "pool",
  );
  gauge(
    "linkfence_database_pending",
    "queries under way or waiting",
    each((s) => s.pending),
    "pool",
  );
}

/** All samples of the ledger are read in one turn, so that it closes on every page. */
function registerClickMetrics({ counter, gauge }: Metrics, { clicks, spool }: Measured): void {
  const ledger = () => clicks.ledger();
  counter("linkfence_clicks_accepted_total", "redirects to be counted", () => ledger().accepted);
  counter("linkfence_clicks_recovered_total", "clicks that an earlier process left", () => ledger().recovered);
  counter("linkfence_clicks_inserted_total", "clicks stored", () => ledger().inserted);
  counter("linkfence_clicks_duplicate_total", "clicks that were stored already", () => ledger().duplicate);
  counter("linkfence_clicks_dead_lettered_total", "clicks kept for an operator", () => ledger().deadLettered);
  counter("linkfence_clicks_refused_total", "clicks that the ingest would not store", () => ledger().refused);
  counter("linkfence_clicks_dropped_total", "clicks lost, by reason", () => ledger().dropped, "reason");
  gauge("linkfence_clicks_in_flight", "clicks waiting or being sent", () => ledger().inFlight);
  counter("linkfence_click_batch_failures_total", "batches to be sent again", () => clicks.stats().failures);
  counter(
    "linkfence_click_rests_total",
    "batches after which the next one waited, as redirects took all the time",
    () => clicks.stats().rests,
  );
  gauge("linkfence_clicks_in_ring", "clicks that were not looked at yet", () => clicks.stats().inRing);
  gauge(
    "linkfence_clicks_at_risk",
    "clicks that would be lost if this process were killed now",
    () => clicks.stats().atRisk,
  );
  gauge("linkfence_click_memory_bytes", "bytes of clicks behind the ring", () => clicks.stats().memoryBytes);

  const earlier = spool?.earlier;
  counter(
    "linkfence_clicks_lost_unclean_max_total",
    "clicks that earlier processes on this spool may have lost by an unclean end, at the most",
    () => earlier?.lost ?? 0,
  );
  counter(
    "linkfence_clicks_lost_unclean_unknown_total",
    "ends of earlier processes on this spool of which nobody knows how many clicks they took",
    () => earlier?.unknown ?? 0,
  );
  counter(
    "linkfence_clicks_missing_total",
    "clicks of the process before this one that were in segments which are gone; a part of what may be lost",
    () => earlier?.missing ?? 0,
  );
  counter(
    "linkfence_clicks_dropped_earlier_total",
    "clicks that earlier processes on this spool dropped, by reason",
    () => earlier?.drops ?? NO_DROPS,
    "reason",
  );
  if (spool === null) return;
  const stats = () => spool.stats();
  gauge(
    "linkfence_clicks_reserved",
    "clicks that may be accepted before more are reserved on disk",
    () => stats().reserved,
  );
  gauge("linkfence_spool_bytes", "bytes of the spool's segments", () => stats().bytes);
  gauge("linkfence_spool_segments", "segments of the spool", () => stats().segments);
  gauge("linkfence_spool_writable", "1 while the last write to the spool succeeded", () => (stats().writable ? 1 : 0));
  counter("linkfence_spool_appends_total", "groups of clicks written to the spool", () => stats().appends);
  counter("linkfence_spool_syncs_total", "flushes of the spool to the disk", () => stats().syncs);
  counter("linkfence_spool_full_total", "groups of clicks for which the spool had no room", () => stats().full);
  counter(
    "linkfence_spool_segments_abandoned_total",
    "segments given up, by what failed",
    () => stats().abandoned,
    "cause",
  );
  counter("linkfence_spool_remove_failures_total", "segments that could not be removed", () => stats().removeFailures);
  counter("linkfence_spool_read_failures_total", "reads of segments that failed", () => clicks.stats().readFailures);
  counter(
    "linkfence_spool_account_failures_total",
    "accounts of clicks that could not be written",
    () => stats().accountFailures,
  );
  counter(
    "linkfence_spool_files_lost_total",
    "files of the spool that were removed or replaced while they were in use",
    () => ({ account: stats().accountLost, lock: stats().locksLost, segment: stats().abandoned.name }),
    "file",
  );
}
