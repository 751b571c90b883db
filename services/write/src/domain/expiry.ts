import { formatDateTime, LATEST_MS, parseDateTime } from "./date-time.ts";

/**
 * When a link ends. A life in seconds stays one until it reaches the database, whose clock then says when it began:
 * the clock of this process has no part in it. A point in time is UTC text with microseconds.
 */
export type Expiry = { kind: "never" } | { kind: "after"; seconds: number } | { kind: "at"; time: string };

export type ExpiryFault = { field: "expiresAt" | "expiresInSeconds"; rule: string; detail: string };
export type ExpiryDecision = { ok: true; expiry: Expiry } | { ok: false; fault: ExpiryFault };

export type ExpiryRequest = {
  expiresInSeconds?: number | null | undefined;
  expiresAt?: string | null | undefined;
};

/**
 * Decides when a link ends. `null` means the same as absent.
 * @param now ms since 1970, to refuse what is over already
 */
export function decideExpiry(request: ExpiryRequest, now: number): ExpiryDecision {
  const { expiresInSeconds = null, expiresAt = null } = request;
  if (expiresInSeconds !== null && expiresAt !== null)
    return refuse("expiresAt", "exclusive", "cannot be combined with expiresInSeconds: keep one of the two");
  if (expiresInSeconds !== null) return { ok: true, expiry: { kind: "after", seconds: expiresInSeconds } };
  return expiresAt === null ? { ok: true, expiry: { kind: "never" } } : decideTime(expiresAt, now);
}

function decideTime(text: string, now: number): ExpiryDecision {
  const time = parseDateTime(text);
  if (!time)
    return refuse("expiresAt", "date-time", "must be an RFC 3339 time with its offset, as in 2030-01-31T12:00:00Z");
  if (time.ms > LATEST_MS) return refuse("expiresAt", "range", "must not be later than the year 9999 in UTC");
  // What is kept is compared, with its fraction: a second that has begun is not over yet.
  if (time.ms + Number(time.micros) / 1000 <= now) return refuse("expiresAt", "past", "must be in the future");
  return { ok: true, expiry: { kind: "at", time: formatDateTime(time) } };
}

function refuse(field: ExpiryFault["field"], rule: string, detail: string): ExpiryDecision {
  return { ok: false, fault: { field, rule, detail } };
}
