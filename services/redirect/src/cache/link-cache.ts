// Bounded memory of links. Known links and unknown codes are kept apart, so that somebody who guesses codes cannot
// push out links that are followed.
import { LRUCache } from "lru-cache";
import type { Entry } from "../domain/entry.ts";
import { createRecentLinks } from "./recent-links.ts";

/** Unknown codes live for a second or so; this many remembered ones cover 60,000 guesses a second. */
const UNKNOWN_MAX = 65_536;
/** Versions matter only to loads that are under way; a load lives for a query's deadline. */
const VERSIONS_MAX = 65_536;
export type LinkCache = ReturnType<typeof createLinkCache>;

export type LinkCacheOptions = {
  /** Bounds of the known links; both hold at once. */
  maxEntries: number;
  maxBytes: number;
  /** Unknown codes, and versions, that are remembered. The room for all of these is taken at once, with the first of them. */
  maxUnknown?: number;
  maxVersions?: number;
};

/** Creates the cache. */
export function createLinkCache(options: LinkCacheOptions) {
  const { maxEntries, maxBytes, maxUnknown = UNKNOWN_MAX, maxVersions = VERSIONS_MAX } = options;
  const known = createRecentLinks(maxEntries, maxBytes);
  // Forgetting them all is a matter of counting on: anyone who can connect to the database can ask for it, as often as
  // they like, and clearing a map of this size takes a part of a millisecond.
  let unknown: LRUCache<string, { entry: Entry; era: number }> | undefined;
  let era = 0;
  let versions: LRUCache<string, number> | undefined;

  return {
    get(code: string): Entry | undefined {
      const entry = known.get(code);
      // Mostly there is nothing else to look through, and a look that finds nothing is not free either.
      if (entry !== undefined || !unknown?.size) return entry;
      const remembered = unknown.get(code);
      return remembered?.era === era ? remembered.entry : undefined;
    },
    /** Keeps an answer. Returns false, and keeps nothing, when a newer version of the link is known to exist. */
    put(entry: Entry): boolean {
      if (entry.version < (versions?.get(entry.code) ?? 0)) return false;
      if (entry.kind === "unknown") {
        known.delete(entry.code);
        unknown ??= new LRUCache({ max: maxUnknown });
        unknown.set(entry.code, { entry, era });
      } else {
        unknown?.delete(entry.code);
        known.set(entry);
      }
      return true;
    },
    /** A link has reached `version`: what was kept of it is gone, and nothing older comes in again. */
    invalidate(code: string, version: number): void {
      known.delete(code);
      unknown?.delete(code);
      versions ??= new LRUCache({ max: maxVersions });
      versions.set(code, Math.max(version, versions.get(code) ?? 0));
    },
    forgetUnknown(): void {
      era += 1;
    },
    /** Forgets everything, versions too: after a failover that lost changes, the truth may be older than they are. */
    clear(): void {
      known.clear();
      unknown?.clear();
      versions?.clear();
    },
    /** `unknown` counts the forgotten ones that still take up room, too. */
    stats: () => ({ ...known.stats(), unknown: unknown?.size ?? 0 }),
  };
}
