/** Milliseconds of a clock that never steps, and of the wall clock, read together. */
export type Moment = { mono: number; wall: number };

/** Before any other moment. */
export const NEVER: Moment = { mono: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** What the database said of a code. `remainingMs` is null for a link without expiry. */
export type LinkRow = {
  target: string | null;
  state: "ACTIVE" | "REVOKED";
  version: number;
  remainingMs: number | null;
  owner: string;
};

/**
 * A code as this process knows it; a newer answer is a new entry. There may be a million of them, so it is flat, holds whole
 * numbers, which cost nothing beside their field, and shares what it can with others.
 */
export type Entry = {
  readonly code: string;
  readonly kind: "active" | "revoked" | "unknown";
  /** The stored bytes; empty unless the link is active. */
  readonly target: string;
  /** 0 for an unknown code. */
  readonly version: number;
  /** Null for an unknown code. */
  readonly owner: string | null;
  /** Instant of the never-stepping clock from which on the link has expired; null for one that does not. */
  readonly expiresAtMono: number | null;
  /** Taken before the question was sent: whatever was committed before it is in the answer. */
  readonly loadedAt: Moment;
  /** Age from which on the entry must not be served from memory, in whole ms. */
  readonly ttlMs: number;
  /** A newer answer has been asked for. */
  refreshing: boolean;
  /** The cache's own: neighbours in the order of use. */
  newer: Entry | null;
  older: Entry | null;
};

export type EntryTimes = { loadedAt: Moment; ttlMs: number };

/**
 * Makes an entry from what the database said. The remaining life counts from before the question was sent, so an
 * expiry is met up to one query early, never late.
 * @param row null for an unknown code
 */
export function makeEntry(code: string, row: LinkRow | null, { loadedAt, ttlMs }: EntryTimes): Entry {
  const active = row?.state === "ACTIVE" && row.target !== null;
  return {
    code,
    kind: row === null ? "unknown" : active ? "active" : "revoked",
    target: active && row.target !== null ? row.target : "",
    version: row?.version ?? 0,
    owner: row?.owner ?? null,
    expiresAtMono: row?.remainingMs == null ? null : loadedAt.mono + row.remainingMs,
    loadedAt,
    ttlMs: Math.floor(ttlMs),
    refreshing: false,
    newer: null,
    older: null,
  };
}

export type Outcome = "redirect" | "gone" | "not-found";

/** What a visitor is answered. At exactly its instant a link has expired. */
export function resolve(entry: Entry, mono: number): Outcome {
  if (entry.kind === "unknown") return "not-found";
  if (entry.kind === "revoked" || (entry.expiresAtMono !== null && mono >= entry.expiresAtMono)) return "gone";
  return "redirect";
}
