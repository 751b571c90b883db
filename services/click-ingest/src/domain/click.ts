import type { Click } from "@linkfence/contracts";

/** Why a click becomes a dead letter: the field that breaks its rule, or one of three that are about no single field. */
export const DEATH_REASONS = [
  "shape",
  "id",
  "code",
  "version",
  "at",
  "referrer-host",
  "user-agent",
  "prefetch",
  "country",
  "owner",
  "id-time",
  "unstorable",
] as const;
export type DeathReason = (typeof DEATH_REASONS)[number];

/** Why a click is neither stored nor kept: its day is no longer, or there is no room for another dead letter. */
export const REFUSAL_REASONS = ["late", "dead-letters-full"] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

const REASON_OF_FIELD = new Map<string, DeathReason>([
  ["id", "id"],
  ["code", "code"],
  ["version", "version"],
  ["at", "at"],
  ["referrerHost", "referrer-host"],
  ["userAgent", "user-agent"],
  ["prefetch", "prefetch"],
  ["country", "country"],
  ["owner", "owner"],
]);

/** Names the reason for a field that broke the contract's schema; a field that does not belong or is missing is `shape`. */
export function reasonOfField(field: string, rule: string): DeathReason {
  if (rule === "required" || rule === "additionalProperties") return "shape";
  return REASON_OF_FIELD.get(field) ?? "shape";
}

/** Milliseconds since 1970 that a UUIDv7 carries in its first 48 bits (RFC 9562 section 5.7). */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const DAY_MS = 86_400_000;

/** The UTC day of a time in ms, as the number of days since 1970. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/**
 * What a schema cannot say about a click that has the right shape. The id's time must be the click's: partitions follow
 * the id, and a click dated otherwise would sit in the wrong one. Nor can it be from further ahead than the next UTC day:
 * that is more than any clock may be wrong by. An owner is never cleaned, as that would make it another one's click; so one
 * that cannot be stored makes the click a dead letter.
 * @param now ms since 1970
 * @returns the reason why it cannot be stored, or undefined for a click that can
 */
export function findFault(click: Click, now: number): DeathReason | undefined {
  if (!Number.isSafeInteger(click.version)) return "version";
  if (click.owner !== undefined && click.owner !== cleanText(click.owner)) return "owner";
  return idTimeMs(click.id) === click.at && dayOf(click.at) <= dayOf(now) + 1 ? undefined : "id-time";
}

/** The day after the next one has begun: whatever says so is wrong. */
export function isPlausible(at: unknown, now: number): at is number {
  return typeof at === "number" && Number.isSafeInteger(at) && at >= 0 && dayOf(at) <= dayOf(now) + 1;
}

const REPLACEMENT = "\ufffd";
/** NUL, and halves of pairs, which nearly no text has: most are told so by one look. */
const MAYBE_UNSTORABLE = /[\0\ud800-\udfff]/;

/**
 * Makes a visitor's text storable: NUL, which PostgreSQL's text cannot hold, and lone surrogates, which UTF-8 cannot,
 * become U+FFFD. The same text always gives the same result, of the same number of characters.
 */
export function cleanText(text: string): string {
  if (!MAYBE_UNSTORABLE.test(text)) return text;
  return text.replace(/\p{Cs}/gu, REPLACEMENT).replaceAll("\0", REPLACEMENT);
}

/**
 * Cleans what a visitor's browser sent, in a click of its own where there is something to clean. A click is never refused for
 * it: that would let a visitor hide.
 */
export function cleanClick(click: Click): Click {
  const referrerHost = click.referrerHost === null ? null : cleanText(click.referrerHost);
  const userAgent = click.userAgent === null ? null : cleanText(click.userAgent);
  if (referrerHost === click.referrerHost && userAgent === click.userAgent) return click;
  return { ...click, referrerHost, userAgent };
}

/**
 * Object, id, code and two numbers of a click, generously, also as it came where that is another one; and 512 for what is
 * prepared of it to be sent to the database, its texts included.
 */
const FIXED_BYTES = 1024;

/** Memory a waiting click takes at the most: the engine stores up to two bytes a UTF-16 unit. */
export function clickBytes(click: Click): number {
  const { referrerHost, userAgent, owner } = click;
  return FIXED_BYTES + 2 * ((referrerHost?.length ?? 0) + (userAgent?.length ?? 0) + (owner?.length ?? 0));
}
