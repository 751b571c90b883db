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

/** Date and time of RFC 3339 section 5.6; the offset is mandatory, without it the text names no point in time. */
const DATE_TIME =
  /^(\d{4}-(\d\d)-(\d\d))[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?(Z|z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** The last second that RFC 3339 can write. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

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
  return { ok: true, expiry: { kind: "at", time: `${new Date(time.ms).toISOString().slice(0, 19)}.${time.micros}Z` } };
}

/**
 * Reads a time without the help of `Date`'s own parser, which takes many other spellings and keeps milliseconds only.
 * A second of 60 is refused: nobody can know today that a future minute will have one.
 * @returns whole seconds as ms since 1970 and six digits of the second's fraction
 */
function parseDateTime(text: string): { ms: number; micros: string } | undefined {
  const [whole, date, month, day, time, fraction = "", offset = ""] = DATE_TIME.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const local = Date.parse(`${date}T${time}Z`);
  // A day that its month does not have is carried over into the next month by some parsers and refused by others.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(5, 10) !== `${month}-${day}`) return undefined;
  return { ms: local - offsetMs(offset), micros: fraction.slice(0, 6).padEnd(6, "0") };
}

function offsetMs(offset: string): number {
  if (/^z$/i.test(offset)) return 0;
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4, 6));
  return (offset.startsWith("-") ? -minutes : minutes) * 60_000;
}

function refuse(field: ExpiryFault["field"], rule: string, detail: string): ExpiryDecision {
  return { ok: false, fault: { field, rule, detail } };
}
