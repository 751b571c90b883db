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

/** A code as this process knows it. Nothing of it changes but `refreshing`; a newer answer is a new entry. */
export type Entry = {
  readonly code: string;
  readonly kind: "active" | "revoked" | "unknown";
  /** The stored bytes; empty unless the link is active. */
  readonly target: string;
  /** 0 for an unknown code. */
  readonly version: number;
  /** Null for an unknown code. */
  readonly owner: string | null;
  /** Instant of the never-stepping clock from which on the link has expired. */
  readonly expiresAtMono: number;
  /** Taken before the question was sent: whatever was committed before it is in the answer. */
  readonly loadedAt: Moment;
  /** Age from which on the entry must not be served from memory. */
  readonly ttlMs: number;
  /** Header fields of the redirect, built once. */
  readonly headers: Readonly<Record<string, string>>;
  /** A newer answer has been asked for. */
  refreshing: boolean;
};

export type EntryTimes = { loadedAt: Moment; ttlMs: number };

/**
 * Makes an entry from what the database said. The remaining life counts from before the question was sent, so an
 * expiry is met up to one query early, never late.
 * @param row null for an unknown code
 */
export function makeEntry(code: string, row: LinkRow | null, { loadedAt, ttlMs }: EntryTimes): Entry {
  const active = row?.state === "ACTIVE" && row.target !== null;
  const target = active && row.target !== null ? row.target : "";
  return {
    code,
    kind: row === null ? "unknown" : active ? "active" : "revoked",
    target,
    version: row?.version ?? 0,
    owner: row?.owner ?? null,
    expiresAtMono: row?.remainingMs == null ? Number.POSITIVE_INFINITY : loadedAt.mono + row.remainingMs,
    loadedAt,
    ttlMs,
    headers: { Location: target, "Cache-Control": "no-store", "Content-Length": "0" },
    refreshing: false,
  };
}

export type Outcome = "redirect" | "gone" | "not-found";

/** What a visitor is answered. At exactly its instant a link has expired. */
export function resolve(entry: Entry, mono: number): Outcome {
  if (entry.kind === "unknown") return "not-found";
  if (entry.kind === "revoked" || mono >= entry.expiresAtMono) return "gone";
  return "redirect";
}
