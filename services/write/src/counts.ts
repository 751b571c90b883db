export type Counts = ReturnType<typeof createCounts>;

/** What one process counts, as plain numbers; they are read when the metrics page is asked for. */
export function createCounts() {
  return {
    /** By route and status class, with a blank between the two. */
    requests: new Map<string, number>(),
    created: { RANDOM: 0, ALIAS: 0 },
    collisions: 0,
    revoked: { revoked: 0, "already-revoked": 0, "not-found": 0 },
    /** Pages that ended at the bound of links that one may look at. */
    listingsCut: 0,
    /** What became of creations with a key. */
    idempotency: { created: 0, replayed: 0, reused: 0, "in-use": 0 },
    sweeps: { removed: 0, failures: 0 },
    /** What became of calls that make, rotate or revoke an API key; those refused for its scopes are no part of it. */
    keys: {
      created: 0,
      rotated: 0,
      revoked: 0,
      "already-revoked": 0,
      "not-found": 0,
      "not-usable": 0,
      replaced: 0,
      outlives: 0,
      "too-many-keys": 0,
      "last-admin-key": 0,
      unauthorized: 0,
    },
    keyUses: { written: 0, dropped: 0, failures: 0 },
    /** Streams of changes: what they sent, why they ended or did not open, and what could not be read for them. */
    changes: {
      events: 0,
      ended: { client: 0, slow: 0, key: 0, stopped: 0 },
      refused: { process: 0, owner: 0 },
      failures: { head: 0, page: 0 },
    },
    /** The same of streams of counts; `head` is the look at their keys, and `page` the counts themselves. */
    live: {
      events: 0,
      ended: { client: 0, slow: 0, key: 0, stopped: 0 },
      refused: { process: 0, owner: 0 },
      failures: { head: 0, page: 0 },
    },
    /** The watch over the registry of redirect processes, and what became of those who waited for it. */
    effective: {
      looks: 0,
      failures: 0,
      removed: 0,
      confirmed: { acknowledged: 0, ttl: 0 },
      unconfirmed: { waiting: 0, "history-changed": 0 },
    },
    trims: { removed: 0, failures: 0 },
    /** Calls refused by a rate limit. */
    rateLimited: { key: 0, address: 0 },
    /** Uploads by their end, lines by what became of them, what met a bound, tries of a batch that were repeated. */
    imports: {
      uploads: { done: 0, replayed: 0, interrupted: 0, refused: 0 },
      lines: { created: 0, already: 0, refused: 0 },
      refusals: { busy: 0, "too-large": 0, stalled: 0, "in-use": 0, "long-line": 0 },
      /** Refused lines beyond those whose reason is kept. */
      errorsDropped: 0,
      retries: 0,
    },
    authFailures: { missing: 0, malformed: 0, refused: 0, scope: 0 },
  };
}

/** Counts one finished request. Routes and status classes are few, so the map stays small. */
export function countRequest(counts: Counts, route: string, statusClass: string): void {
  const key = `${route} ${statusClass}`;
  counts.requests.set(key, (counts.requests.get(key) ?? 0) + 1);
}
