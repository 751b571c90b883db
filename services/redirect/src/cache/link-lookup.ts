// What the handlers ask and what the feed drives. Each function below runs in one synchronous turn, so a request sees
// either all of a change or nothing of it.
import type { Change } from "@linkfence/link-feed";
import { type Entry, type Moment, NEVER } from "../domain/entry.ts";
import { isAgeing, isServable, isWithin } from "./freshness.ts";
import type { LinkCache } from "./link-cache.ts";
import type { Loader } from "./loader.ts";

export type LinkLookup = ReturnType<typeof createLinkLookup>;

/**
 * Entries read anew at a time. They have a fifth of a TTL for it, in which a hundred times as many can be read; those of
 * them that wait are a quarter of a statement.
 */
const REFRESHES_MAX = 64;

export type LookupOptions = { cache: LinkCache; loader: Loader; ttlMs: number; maxRefreshes?: number };

export function createLinkLookup({ cache, loader, ttlMs, maxRefreshes = REFRESHES_MAX }: LookupOptions) {
  const counts = { hits: 0, misses: 0, stale: 0, refreshes: 0, refreshesPutOff: 0 };
  let refreshing = 0;
  let syncedAt = NEVER;

  /** Beyond the bound it is left to whoever asks next; the entry serves until its own end. So it does after a failure. */
  function refresh(entry: Entry): void {
    if (refreshing >= maxRefreshes) {
      counts.refreshesPutOff += 1;
      return;
    }
    refreshing += 1;
    entry.refreshing = true;
    counts.refreshes += 1;
    loader.refresh(entry.code, (_, error) => {
      refreshing -= 1;
      if (error !== null) entry.refreshing = false;
    });
  }

  return {
    /** The entry to answer with from memory at this instant, or undefined: then `load`. */
    find(code: string, mono: number, wall: number): Entry | undefined {
      const entry = cache.get(code);
      if (entry === undefined) {
        counts.misses += 1;
        return undefined;
      }
      if (!isServable(entry, mono, wall, syncedAt)) {
        counts.stale += 1;
        return undefined;
      }
      counts.hits += 1;
      if (!entry.refreshing && entry.kind !== "unknown" && isAgeing(entry, mono)) refresh(entry);
      return entry;
    },
    ask: loader.ask,
    load: loader.load,
    /** Says whether the answer of a load is still young enough to be given: its reader may have been stopped for long. */
    isYoung: (entry: Entry, mono: number, wall: number) => isWithin(entry.loadedAt, mono, wall, ttlMs),
    apply(changes: readonly Change[]): void {
      for (const { code, version } of changes) {
        cache.invalidate(code, version);
        loader.detach(code);
      }
    },
    flush(): void {
      syncedAt = NEVER;
      cache.clear();
      loader.detachAll();
    },
    /** A code may have come into being: nobody is told "no such code" from memory, or from a read that is under way. */
    forgetUnknown(): void {
      cache.forgetUnknown();
      loader.distrustUnknown();
    },
    synced(moment: Moment): void {
      syncedAt = moment;
      loader.synced(moment);
    },
    /** Milliseconds since the last complete sync by the stricter clock; infinite before the first. */
    syncAge: (mono: number, wall: number) => Math.max(mono - syncedAt.mono, wall - syncedAt.wall),
    stats: () => ({ ...counts, refreshing, ...cache.stats(), ...loader.stats() }),
  };
}
