import type { Database } from "@linkfence/db";
import type { Follower, Wake } from "@linkfence/link-feed";
import type { Metrics } from "@linkfence/service-shell";
import type { LinkLookup } from "./cache/link-lookup.ts";
import type { ClickSender } from "./clicks/click-sender.ts";
import type { HotPath } from "./http/hot-path.ts";

export type Measured = {
  hotPath: HotPath;
  lookup: LinkLookup;
  follower: Follower;
  wake: Wake | null;
  sender: ClickSender;
  databases: Record<string, Database>;
  syncAgeMs: () => number;
};

/** Registers everything this service tells about itself. All of it is read when the page is asked for. */
export function registerMetrics(metrics: Metrics, measured: Measured): void {
  const { counter, gauge } = metrics;
  const { hotPath, lookup, follower, wake, sender, databases, syncAgeMs } = measured;
  counter("linkfence_answers_total", "requests answered, by outcome", hotPath.counts, "outcome");

  const cache = () => lookup.stats();
  counter("linkfence_cache_hits_total", "answers from memory", () => cache().hits);
  counter("linkfence_cache_misses_total", "codes that were not in memory", () => cache().misses);
  counter("linkfence_cache_stale_total", "entries that were too old, or fenced, to answer with", () => cache().stale);
  counter("linkfence_cache_refreshes_total", "entries read anew before their end", () => cache().refreshes);
  counter("linkfence_loads_total", "reads of a link", () => cache().loads);
  counter("linkfence_loads_joined_total", "requests that shared a read under way", () => cache().joined);
  counter("linkfence_load_failures_total", "reads of a link that failed", () => cache().failures);
  counter("linkfence_fills_refused_total", "reads overtaken by a change and not kept", () => cache().fillsRefused);
  gauge("linkfence_cache_entries", "links in memory", () => cache().entries);
  gauge("linkfence_cache_bytes", "bytes that links in memory occupy", () => cache().bytes);
  gauge("linkfence_cache_unknown", "unknown codes in memory", () => cache().unknown);
  gauge("linkfence_loads_under_way", "reads of a link under way", () => cache().underWay);

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

  const ledger = () => sender.ledger();
  counter("linkfence_clicks_accepted_total", "redirects to be counted", () => ledger().accepted);
  counter("linkfence_clicks_inserted_total", "clicks stored", () => ledger().inserted);
  counter("linkfence_clicks_duplicate_total", "clicks that were stored already", () => ledger().duplicate);
  counter("linkfence_clicks_dead_lettered_total", "clicks kept for an operator", () => ledger().deadLettered);
  counter("linkfence_clicks_refused_total", "clicks that the ingest would not store", () => ledger().refused);
  counter("linkfence_clicks_dropped_total", "clicks lost, by reason", () => ledger().dropped, "reason");
  gauge("linkfence_clicks_in_flight", "clicks waiting or being sent", () => ledger().inFlight);
  counter("linkfence_click_batch_failures_total", "batches to be sent again", () => sender.stats().failures);

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
