// Clock time in a time zone, by the zone data that the platform brings along.
import { QUARTER_MS } from "@linkfence/contracts";

const HOUR_MS = 4 * QUARTER_MS;
export const DAY_MS = 24 * HOUR_MS;
/** No clock is further ahead of UTC (Kiritimati), or behind it (the Pacific's empty islands); an hour more for the future. */
const AHEAD_MS = 15 * HOUR_MS;
const BEHIND_MS = 13 * HOUR_MS;

/** Offsets such as `+01:00` are no names, though platforms take them: they know nothing of a change of the clocks. */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/;
/** The longest name has 32 characters (America/Argentina/ComodRivadavia). */
const NAME_MAX = 64;
const LOCAL = /^(\d\d)\/(\d\d)\/(\d{4}), (\d\d):(\d\d):(\d\d)$/;

export type TimeZone = {
  /** As it was asked for. */
  name: string;
  /** By how many ms its clocks are ahead of UTC at a time in ms since 1970. */
  offsetMs(at: number): number;
};

/** Finds a zone of the IANA data base by its name; undefined where there is none. */
export function findTimeZone(name: string): TimeZone | undefined {
  if (name.length > NAME_MAX || !NAME.test(name)) return undefined;
  const format = openFormat(name);
  return format && { name, offsetMs: (at) => readLocal(format.format(at)) - Math.floor(at / 1000) * 1000 };
}

function openFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  const digits = "2-digit";
  const time = { hour: digits, minute: digits, second: digits, hourCycle: "h23" } as const;
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone, year: "numeric", month: digits, day: digits, ...time });
  } catch {
    return undefined;
  }
}

function readLocal(text: string): number {
  const [, month, day, year, hour, minute, second] = (LOCAL.exec(text) ?? []).map(Number);
  return Date.UTC(year ?? Number.NaN, (month ?? 0) - 1, day, hour, minute, second);
}

/** What the zone's clocks show, as if it were UTC: ms since 1970. */
function localMs(zone: TimeZone, at: number): number {
  return at + zone.offsetMs(at);
}

/** The local day of a time, as its midnight in UTC. */
export function dayOf(zone: TimeZone, at: number): number {
  return Math.floor(localMs(zone, at) / DAY_MS) * DAY_MS;
}

/**
 * The first quarter of an hour of a local day. That is not always 00:00: where clocks go forward at midnight a day begins at
 * 01:00, and a day that a zone skips begins, and ends, with the next one.
 * @param day its midnight in UTC
 */
export function startOfDay(zone: TimeZone, day: number): number {
  const guess = day - zone.offsetMs(day - zone.offsetMs(day));
  if (localMs(zone, guess) === day && localMs(zone, guess - QUARTER_MS) < day) return guess;
  let before = day - AHEAD_MS;
  let within = day + BEHIND_MS;
  while (within - before > QUARTER_MS) {
    const middle = before + Math.floor((within - before) / (2 * QUARTER_MS)) * QUARTER_MS;
    if (localMs(zone, middle) >= day) within = middle;
    else before = middle;
  }
  return within;
}

/** Where the local day after that of `at` begins. */
export function nextDay(zone: TimeZone, at: number): number {
  return startOfDay(zone, dayOf(zone, at) + DAY_MS);
}

/**
 * Where the next local hour begins, or where the clocks change within this one: one that is shown twice is two, and those
 * around a change by half an hour have half an hour.
 * @param at a whole quarter of an hour
 */
export function nextHour(zone: TimeZone, at: number): number {
  const offset = zone.offsetMs(at);
  const next = at + HOUR_MS - modulo(at + offset, HOUR_MS);
  if (zone.offsetMs(next) === offset) return next;
  for (let quarter = at + QUARTER_MS; quarter < next; quarter += QUARTER_MS)
    if (zone.offsetMs(quarter) !== offset) return quarter;
  return next;
}

/** RFC 3339 to the second, with the zone's offset at that time. */
export function formatLocal(zone: TimeZone, at: number): string {
  const minutes = zone.offsetMs(at) / 60_000;
  const text = new Date(localMs(zone, at)).toISOString().slice(0, 19);
  if (minutes === 0) return `${text}Z`;
  const two = (value: number) => String(value).padStart(2, "0");
  const size = Math.abs(minutes);
  return `${text}${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
