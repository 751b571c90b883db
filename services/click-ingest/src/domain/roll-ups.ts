// What clicks add to the statistics, counted before they are stored: the database then adds a line for each code and hour,
// where it would have to group every click. What is counted here is what the migrations' `roll_up_clicks` counts of the same
// clicks, to the letter, which a test compares.
import type { Click } from "@linkfence/contracts";
import type { Classes } from "./classify.ts";
import { cellValue } from "./value-name.ts";

/** People, bots and prefetches, each by the quarter of the hour. */
const KINDS = 12;
const QUARTERS = 4;
const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / QUARTERS;
/** What more people of one hour came from and with is added up at once, as a line for each value; bytes. */
const LINES_MAX = 4000;

/** Counters of one code's hour. */
export type HourCounts = {
  code: string;
  /** Since 1970, UTC. */
  hour: number;
  owner: string | null;
  counts: number[];
  /** How many people of each quarter had the same five values, by these as one line of text. */
  people: Map<string, number[]>;
};
export type OwnerCounts = { owner: string; hour: number; counts: number[] };
/** By code and hour, and by owner and hour. */
export type Counted = { hours: Map<string, HourCounts>; owners: Map<string, OwnerCounts> };

/** Counts clicks. `classes` has one element for each of them. */
export function countClicks(clicks: readonly Click[], classes: readonly Classes[]): Counted {
  const counted: Counted = { hours: new Map(), owners: new Map() };
  clicks.forEach((click, n) => {
    const { at, code, owner = null, prefetch = false } = click;
    const { bot } = classes[n] as Classes;
    const hour = Math.floor(at / HOUR_MS);
    const quarter = Math.floor(at / QUARTER_MS) % QUARTERS;
    const kind = quarter + (bot ? QUARTERS : prefetch ? 2 * QUARTERS : 0);
    const ofHour = hourOf(counted, code, hour);
    ofHour.owner = laterOwner(ofHour.owner, owner);
    bump(ofHour.counts, kind, 1);
    if (owner !== null) bump(ownerOf(counted, owner, hour).counts, kind, 1);
    if (kind < QUARTERS) bump(peopleOf(ofHour, valuesOf(click, classes[n] as Classes)), quarter, 1);
  });
  return counted;
}

/** Adds up what was counted of several lists of clicks. Changes none of them. */
export function mergeCounted(parts: readonly Counted[]): Counted {
  const merged: Counted = { hours: new Map(), owners: new Map() };
  for (const { hours, owners } of parts) {
    for (const { code, hour, owner, counts, people } of hours.values()) {
      const ofHour = hourOf(merged, code, hour);
      ofHour.owner = laterOwner(ofHour.owner, owner);
      addTo(ofHour.counts, counts);
      for (const [values, times] of people) addTo(peopleOf(ofHour, values), times);
    }
    for (const { owner, hour, counts } of owners.values()) addTo(ownerOf(merged, owner, hour).counts, counts);
  }
  return merged;
}

/** How many people of each code followed it on each UTC day, of whatever was counted. */
export function countDays({ hours }: Counted): { code: string; day: number; people: number }[] {
  const days = new Map<string, { code: string; day: number; people: number }>();
  for (const { code, hour, counts } of hours.values()) {
    const day = Math.floor(hour / 24);
    const key = `${code} ${day}`;
    const known = days.get(key);
    const people = counts.slice(0, QUARTERS).reduce((sum, n) => sum + n, 0);
    if (known) known.people += people;
    else days.set(key, { code, day, people });
  }
  return [...days.values()];
}

/**
 * What the people of an hour came from and with, as `click_hour` keeps it: `recent` has a line for each of them, with the
 * quarter and the five values; `cells` has one for each dimension and value, with its counters. Fields are parted by tabs.
 */
export function writePeople({ people }: HourCounts): { cells: string; recent: string } {
  let bytes = 0;
  for (const [values, times] of people)
    bytes += (Buffer.byteLength(values) + "0\t\n".length) * times.reduce((sum, n) => sum + n, 0);
  if (bytes > LINES_MAX) return { cells: writeCells(people), recent: "" };
  let recent = "";
  for (const [values, times] of people)
    times.forEach((n, quarter) => {
      recent += `${quarter}\t${values}\n`.repeat(n);
    });
  return { cells: "", recent };
}

function writeCells(people: ReadonlyMap<string, number[]>): string {
  const sums = new Map<string, { dimension: number; value: string; counts: number[] }>();
  for (const [values, times] of people)
    values.split("\t").forEach((value, n) => {
      const key = `${n} ${value}`;
      const known = sums.get(key);
      if (known) addTo(known.counts, times);
      else sums.set(key, { dimension: n + 1, value, counts: [...times] });
    });
  let text = "";
  for (const { dimension, value, counts } of sums.values()) text += `${dimension}\t${counts.join("\t")}\t${value}\n`;
  return text;
}

const valuesOf = ({ referrerHost, country }: Click, { browser, os, device }: Classes): string =>
  `${cellValue(referrerHost ?? "")}\t${cellValue(browser)}\t${cellValue(os)}\t${cellValue(device)}\t${cellValue(country ?? "")}`;

function hourOf({ hours }: Counted, code: string, hour: number): HourCounts {
  const key = `${code} ${hour}`;
  const known = hours.get(key);
  if (known) return known;
  const fresh = { code, hour, owner: null, counts: new Array<number>(KINDS).fill(0), people: new Map() };
  hours.set(key, fresh);
  return fresh;
}

function ownerOf({ owners }: Counted, owner: string, hour: number): OwnerCounts {
  const key = `${hour} ${owner}`;
  const known = owners.get(key);
  if (known) return known;
  const fresh = { owner, hour, counts: new Array<number>(KINDS).fill(0) };
  owners.set(key, fresh);
  return fresh;
}

function peopleOf({ people }: HourCounts, values: string): number[] {
  const known = people.get(values);
  if (known) return known;
  const fresh = new Array<number>(QUARTERS).fill(0);
  people.set(values, fresh);
  return fresh;
}

/** A code has one owner; where clicks name several, any will do, and always the same. */
function laterOwner(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one > other ? one : other;
}

function bump(counts: number[], place: number, by: number): void {
  counts[place] = (counts[place] ?? 0) + by;
}

function addTo(counts: number[], others: readonly number[]): void {
  others.forEach((n, place) => {
    if (n > 0) bump(counts, place, n);
  });
}
