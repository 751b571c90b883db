// What clicks add to the statistics, counted before they are stored: the database then adds a line for each code and hour,
// where it would have to group every click. What is counted here is what the migrations' `roll_up_clicks` counts of the same
// clicks, to the letter, which a test compares.
import type { Click } from "@linkfence/contracts";
import type { Classes } from "./classify.ts";
import { cellValue } from "./value-name.ts";

/** People, bots and prefetches, each by the quarter of the hour. */
const KINDS = 12;
const QUARTERS = 4;
const HOURS = 24;
const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / QUARTERS;
/** What more people of one hour came from and with is added up at once, as a line for each value; bytes. */
const LINES_MAX = 4000;

/** People of one hour who had the same five values, by quarter. */
export type People = { referrer: string; classes: Classes; country: string; times: number[] };
/** Counters of one code's hour. `hour` is since 1970, UTC. */
export type HourCounts = { code: string; hour: number; owner: string | null; counts: number[]; people: People[] };
export type OwnerCounts = { owner: string; hour: number; counts: number[] };
export type Counted = { hours: HourCounts[]; owners: OwnerCounts[] };

/** So many are looked through one by one; more have an index, as a visitor can name any referrer. */
const LOOKED_THROUGH = 8;

/** Counts clicks. `classes` has one element for each of them. */
export function countClicks(clicks: readonly Click[], classes: readonly Classes[]): Counted {
  const counted: Counted = { hours: [], owners: [] };
  const hours = new Map<number, Map<string, HourCounts>>();
  const owners = new Map<number, Map<string, OwnerCounts>>();
  const indexes = new Map<HourCounts, Map<string, People>>();

  function hourOf(code: string, hour: number): HourCounts {
    const byCode = mapOf(hours, hour);
    const known = byCode.get(code);
    if (known) return known;
    const fresh = { code, hour, owner: null, counts: zeros(KINDS), people: [] };
    byCode.set(code, fresh);
    counted.hours.push(fresh);
    return fresh;
  }

  function ownerOf(owner: string, hour: number): OwnerCounts {
    const byName = mapOf(owners, hour);
    const known = byName.get(owner);
    if (known) return known;
    const fresh = { owner, hour, counts: zeros(KINDS) };
    byName.set(owner, fresh);
    counted.owners.push(fresh);
    return fresh;
  }

  /** Those who have the same classes are told from others by the object: it is remembered, and two that say the same do no harm. */
  function peopleOf(ofHour: HourCounts, referrer: string, its: Classes, country: string): People {
    const { people } = ofHour;
    if (people.length <= LOOKED_THROUGH) {
      const known = people.find((one) => one.classes === its && one.referrer === referrer && one.country === country);
      if (known) return known;
    }
    const fresh = { referrer, classes: its, country, times: zeros(QUARTERS) };
    if (people.length >= LOOKED_THROUGH) {
      const index = indexes.get(ofHour) ?? new Map(people.map((one) => [lineOf(one), one]));
      indexes.set(ofHour, index);
      const line = lineOf(fresh);
      const known = index.get(line);
      if (known) return known;
      index.set(line, fresh);
    }
    people.push(fresh);
    return fresh;
  }

  clicks.forEach((click, n) => {
    const { at, code, owner = null, prefetch = false, referrerHost, country } = click;
    const its = classes[n] as Classes;
    const hour = Math.floor(at / HOUR_MS);
    const quarter = Math.floor(at / QUARTER_MS) % QUARTERS;
    const kind = quarter + (its.bot ? QUARTERS : prefetch ? 2 * QUARTERS : 0);
    const ofHour = hourOf(code, hour);
    ofHour.owner = laterOwner(ofHour.owner, owner);
    bump(ofHour.counts, kind);
    if (owner !== null) bump(ownerOf(owner, hour).counts, kind);
    if (kind < QUARTERS) bump(peopleOf(ofHour, referrerHost ?? "", its, country ?? "").times, quarter);
  });
  return counted;
}

/** How many people of each code followed it on each UTC day, of whatever was counted. */
export function countDays({ hours }: Counted): { code: string; day: number; people: number }[] {
  const days = new Map<number, Map<string, { code: string; day: number; people: number }>>();
  for (const { code, hour, counts } of hours) {
    const day = Math.floor(hour / HOURS);
    const byCode = mapOf(days, day);
    const people = counts.slice(0, QUARTERS).reduce((sum, n) => sum + n, 0);
    const known = byCode.get(code);
    if (known) known.people += people;
    else byCode.set(code, { code, day, people });
  }
  return [...days.values()].flatMap((byCode) => [...byCode.values()]);
}

/**
 * What the people of an hour came from and with, as `click_hour` keeps it: `recent` has a line for each of them, with the
 * quarter and the five values; `cells` has one for each dimension and value, with its counters. Fields are parted by tabs.
 */
export function writePeople({ people }: HourCounts): { cells: string; recent: string } {
  const lines = people.map((one) => ({ line: `\t${lineOf(one)}\n`, times: one.times }));
  let bytes = 0;
  for (const { line, times } of lines) bytes += (1 + Buffer.byteLength(line)) * times.reduce((sum, n) => sum + n, 0);
  if (bytes > LINES_MAX) return { cells: writeCells(people), recent: "" };
  let recent = "";
  for (const { line, times } of lines)
    times.forEach((n, quarter) => {
      if (n > 0) recent += `${quarter}${line}`.repeat(n);
    });
  return { cells: "", recent };
}

function writeCells(people: readonly People[]): string {
  const sums = DIMENSIONS.map(() => new Map<string, number[]>());
  for (const one of people)
    DIMENSIONS.forEach((read, dimension) => {
      const byValue = sums[dimension] as Map<string, number[]>;
      const value = read(one);
      const counts = byValue.get(value) ?? zeros(QUARTERS);
      byValue.set(value, counts);
      for (const [quarter, n] of one.times.entries()) bump(counts, quarter, n);
    });
  let text = "";
  sums.forEach((byValue, dimension) => {
    for (const [value, counts] of byValue) text += `${dimension + 1}\t${counts.join("\t")}\t${cellValue(value)}\n`;
  });
  return text;
}

/** In the order of their numbers, which begin at 1. */
const DIMENSIONS: readonly ((people: People) => string)[] = [
  ({ referrer }) => referrer,
  ({ classes }) => classes.browser,
  ({ classes }) => classes.os,
  ({ classes }) => classes.device,
  ({ country }) => country,
];

/** What stands between the referrer and the country, of classes that are remembered. */
const middles = new WeakMap<Classes, string>();

function middleOf(classes: Classes): string {
  const known = middles.get(classes);
  if (known !== undefined) return known;
  const { browser, os, device } = classes;
  const text = `${cellValue(browser)}\t${cellValue(os)}\t${cellValue(device)}`;
  middles.set(classes, text);
  return text;
}

const lineOf = ({ referrer, classes, country }: People): string =>
  `${cellValue(referrer)}\t${middleOf(classes)}\t${cellValue(country)}`;

const zeros = (length: number): number[] => new Array<number>(length).fill(0);

function mapOf<K, T>(maps: Map<K, Map<string, T>>, key: K): Map<string, T> {
  const known = maps.get(key);
  if (known) return known;
  const fresh = new Map<string, T>();
  maps.set(key, fresh);
  return fresh;
}

/** A code has one owner; where clicks name several, any will do, and always the same. */
function laterOwner(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one > other ? one : other;
}

function bump(counts: number[], place: number, by = 1): void {
  counts[place] = (counts[place] ?? 0) + by;
}
