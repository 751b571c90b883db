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
    /** Uploads by their end, their lines by what became of them, tries of a batch that were repeated. */
    imports: {
      uploads: { done: 0, replayed: 0, interrupted: 0, refused: 0 },
      lines: { created: 0, already: 0, refused: 0 },
      refusals: { busy: 0, "too-large": 0, stalled: 0, "in-use": 0 },
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
