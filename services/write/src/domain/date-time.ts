/** Date and time of RFC 3339 section 5.6; the offset is mandatory, without it the text names no point in time. */
const DATE_TIME =
  /^(\d{4}-(\d\d)-(\d\d))[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?(Z|z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** The last second that RFC 3339 can write. */
export const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** Whole seconds as ms since 1970, and six digits of the second's fraction. */
export type DateTime = { ms: number; micros: string };

/**
 * Reads a time without the help of `Date`'s own parser, which takes many other spellings and keeps milliseconds only.
 * What is finer than a microsecond is cut off. A second of 60 is refused: nobody can know today that a future minute
 * will have one.
 */
export function parseDateTime(text: string): DateTime | undefined {
  const [whole, date, month, day, time, fraction = "", offset = ""] = DATE_TIME.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const local = Date.parse(`${date}T${time}Z`);
  // A day that its month does not have is carried over into the next month by some parsers and refused by others.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(5, 10) !== `${month}-${day}`) return undefined;
  return { ms: local - offsetMs(offset), micros: fraction.slice(0, 6).padEnd(6, "0") };
}

/** Writes a time of the years 0 to 9999 in UTC with microseconds, as PostgreSQL and the API have it. */
export function formatDateTime({ ms, micros }: DateTime): string {
  return `${new Date(ms).toISOString().slice(0, 19)}.${micros}Z`;
}

function offsetMs(offset: string): number {
  if (/^z$/i.test(offset)) return 0;
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4, 6));
  return (offset.startsWith("-") ? -minutes : minutes) * 60_000;
}
