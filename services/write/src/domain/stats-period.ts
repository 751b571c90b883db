// Which time statistics are about, and how it is cut into hours or days.
import {
  type FieldFault,
  QUARTER_MS,
  STATS_EARLIEST,
  STATS_LATEST,
  STATS_POINTS_MAX,
  type StatsQuery,
} from "@linkfence/contracts";
import { parseDateTime } from "./date-time.ts";
import { DAY_MS, dayOf, findTimeZone, nextDay, nextHour, startOfDay, type TimeZone } from "./time-zone.ts";

export type Interval = "hour" | "day";
/** `edges` are the cuts in ms since 1970, rising, the first and the last of them the ends; whole quarters of an hour. */
export type Period = { zone: TimeZone; interval: Interval; edges: readonly number[] };
export type PeriodDecision = { ok: true; period: Period } | { ok: false; fault: FieldFault };

/** Of a period that does not say where it begins: what people mean by a month. */
const DAYS_DEFAULT = 30;
const EARLIEST_MS = Date.parse(STATS_EARLIEST);
const LATEST_MS = Date.parse(STATS_LATEST);
const DATE = /^\d{4}-(\d\d-\d\d)$/;

type Read<T> = { ok: true; value: T } | { ok: false; fault: FieldFault };

/**
 * Decides what a period means. Its ends are widened to whole quarters of an hour, which is the finest that is kept; nothing
 * else is guessed or clamped.
 * @param now ms since 1970
 */
export function decidePeriod(query: StatsQuery, now: number): PeriodDecision {
  const { from, to, interval = "day", timezone = "UTC" } = query;
  const zone = findTimeZone(timezone);
  if (!zone) return refuseZone();
  const ends = readEnds(zone, { from, to }, now);
  if (!ends.ok) return ends;
  const edges = cut(zone, interval, ends.value);
  if (edges) return { ok: true, period: { zone, interval, edges } };
  const detail = `must lie closer to the end of the period, which has more than ${STATS_POINTS_MAX} ${interval}s`;
  return refuse("from", "points", detail);
}

export type StartDecision = { ok: true; zone: TimeZone; from: number } | { ok: false; fault: FieldFault };

/**
 * Decides where counts begin that have no end and no points, so that there can be any number of hours in them.
 * @param now ms since 1970
 */
export function decideStart(query: Pick<StatsQuery, "from" | "timezone">, now: number): StartDecision {
  const { from, timezone = "UTC" } = query;
  const zone = findTimeZone(timezone);
  if (!zone) return refuseZone();
  const ends = readEnds(zone, { from, to: undefined }, now);
  if (ends.ok) return { ok: true, zone, from: ends.value.from };
  return ends.fault.rule === "order" ? refuse("from", "order", "must be before now") : ends;
}

type Ends = { from: number; to: number };

function readEnds(zone: TimeZone, given: { from: string | undefined; to: string | undefined }, now: number) {
  const to = readTime(zone, "to", given.to);
  if (!to.ok) return to;
  const from = readTime(zone, "from", given.from);
  if (!from.ok) return from;
  const end = to.value ?? now + 1;
  const start = from.value ?? monthBefore(zone, end);
  if (start >= end) return refuse("from", "order", "must be before the end of the period, `to` or now");
  const value: Ends = { from: floorQuarter(start), to: ceilQuarter(end) };
  return { ok: true, value } as const;
}

/** The days of a month up to that of the last instant. */
function monthBefore(zone: TimeZone, end: number): number {
  return Math.max(EARLIEST_MS, startOfDay(zone, dayOf(zone, end - 1) - (DAYS_DEFAULT - 1) * DAY_MS));
}

/** Undefined where there are more points than an answer may have. */
function cut(zone: TimeZone, interval: Interval, { from, to }: Ends): number[] | undefined {
  const next = interval === "hour" ? nextHour : nextDay;
  const edges = [from];
  for (let at = next(zone, from); at < to; at = next(zone, at)) {
    if (edges.length === STATS_POINTS_MAX) return undefined;
    edges.push(at);
  }
  return [...edges, to];
}

function readTime(zone: TimeZone, field: "from" | "to", text: string | undefined): Read<number | undefined> {
  if (text === undefined) return { ok: true, value: undefined };
  const value = DATE.test(text) ? readDate(zone, text) : readInstant(text);
  if (value === undefined)
    return refuse(field, "date-time", "must be a date, as 2026-01-31, or an RFC 3339 time; a + is written %2B");
  if (value < EARLIEST_MS || value > LATEST_MS)
    return refuse(field, "range", `must lie between ${STATS_EARLIEST} and ${STATS_LATEST}`);
  return { ok: true, value };
}

function readDate(zone: TimeZone, text: string): number | undefined {
  const time = parseDateTime(`${text}T00:00:00Z`);
  // A year that is out of the question anyway may be one that calendars write otherwise.
  if (!time || time.ms < EARLIEST_MS - DAY_MS || time.ms > LATEST_MS + DAY_MS) return time?.ms;
  return startOfDay(zone, time.ms);
}

function readInstant(text: string): number | undefined {
  const time = parseDateTime(text);
  return time && time.ms + Number(time.micros) / 1000;
}

function ceilQuarter(at: number): number {
  return Math.ceil(at / QUARTER_MS) * QUARTER_MS;
}

function floorQuarter(at: number): number {
  return Math.floor(at / QUARTER_MS) * QUARTER_MS;
}

function refuseZone() {
  return refuse("timezone", "timezone", "must be a name of the IANA time zone data base, as Europe/Berlin");
}

function refuse(field: string, rule: string, detail: string): { ok: false; fault: FieldFault } {
  return { ok: false, fault: { field, rule, detail } };
}
