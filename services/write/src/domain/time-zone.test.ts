import { describe, expect, test } from "@jest/globals";
import { QUARTER_MS } from "@linkfence/contracts";
import fc from "fast-check";
import { DAY_MS, findTimeZone, formatLocal, nextDay, nextHour, startOfDay, type TimeZone } from "./time-zone.ts";

const HOUR_MS = 3_600_000;
const zone = (name: string) => findTimeZone(name) as TimeZone;
const utc = (text: string) => Date.parse(`${text}Z`);
const anyZone = fc.constantFrom(...Intl.supportedValuesOf("timeZone"), "UTC");
const anyQuarter = fc
  .integer({ min: utc("2020-01-02T00:00") / QUARTER_MS, max: utc("2039-12-31T00:00") / QUARTER_MS })
  .map((quarter) => quarter * QUARTER_MS);

describe("a time zone", () => {
  test.each(["UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "Asia/Kathmandu", "Etc/GMT+12", "EST5EDT"])(
    "is found by its name: %s",
    (name) => expect(findTimeZone(name)?.name).toBe(name),
  );

  test.each([
    ...["", " ", "Europe", "Europe/Nowhere", "+01:00", "-0330", "01:00", "Z", "Europe/Berlin ", "Europe\\Berlin"],
    ...["../etc/passwd", "Europe/Berlin\0", "\ud800", "__proto__", "Europe/Berlin/x/y/z", "E".repeat(65), "null"],
  ])("is not found by %j", (name) => expect(findTimeZone(name)).toBeUndefined());

  test("keeps to quarters of an hour in all the years that can be asked for, whatever its name", () => {
    const odd: string[] = [];
    for (const name of Intl.supportedValuesOf("timeZone"))
      for (let at = utc("2020-01-01T00:00"); at < utc("2030-01-01T00:00"); at += 91 * DAY_MS)
        if (zone(name).offsetMs(at) % QUARTER_MS !== 0) odd.push(name);
    expect(odd).toEqual([]);
  });

  test("says the time of its clocks with their offset", () => {
    expect(formatLocal(zone("Europe/Berlin"), utc("2026-07-01T10:15"))).toBe("2026-07-01T12:15:00+02:00");
    expect(formatLocal(zone("America/St_Johns"), utc("2026-01-01T00:00"))).toBe("2025-12-31T20:30:00-03:30");
    expect(formatLocal(zone("UTC"), utc("2026-01-01T00:00"))).toBe("2026-01-01T00:00:00Z");
  });

  test("says it so that everybody reads the same instant", () => {
    fc.assert(
      fc.property(anyZone, anyQuarter, (name, at) => {
        expect(Date.parse(formatLocal(zone(name), at))).toBe(at);
      }),
    );
  });
});

describe("a day", () => {
  test.each([
    ["Europe/Berlin", "2026-03-29", 23],
    ["Europe/Berlin", "2026-10-25", 25],
    ["Europe/Berlin", "2026-06-01", 24],
    ["Australia/Lord_Howe", "2026-04-05", 24.5],
    ["Australia/Lord_Howe", "2026-10-04", 23.5],
    ["Antarctica/Troll", "2026-03-29", 22],
    ["Africa/Cairo", "2026-04-24", 23],
    ["America/Havana", "2026-11-01", 25],
    ["America/Santiago", "2026-04-04", 25],
    ["Asia/Kathmandu", "2026-01-01", 24],
  ])("in %s on %s has %d hours", (name, date, hours) => {
    const start = startOfDay(zone(name), utc(`${date}T00:00`));
    expect((nextDay(zone(name), start) - start) / HOUR_MS).toBe(hours);
  });

  test("begins at one o'clock where the clocks go forward at midnight", () => {
    const start = startOfDay(zone("Africa/Cairo"), utc("2026-04-24T00:00"));
    expect(formatLocal(zone("Africa/Cairo"), start)).toBe("2026-04-24T01:00:00+03:00");
  });

  test("that a zone skipped begins with the next one", () => {
    const apia = zone("Pacific/Apia");
    const days = ["2011-12-29", "2011-12-30", "2011-12-31"].map((date) => startOfDay(apia, utc(`${date}T00:00`)));
    expect(days.map((at) => formatLocal(apia, at))).toEqual([
      "2011-12-29T00:00:00-10:00",
      "2011-12-31T00:00:00+14:00",
      "2011-12-31T00:00:00+14:00",
    ]);
  });

  test("has every quarter of its date and no other, in any zone", () => {
    fc.assert(
      fc.property(anyZone, anyQuarter, (name, at) => {
        const dates = new Intl.DateTimeFormat("sv-SE", { timeZone: name, dateStyle: "short" });
        const start = nextDay(zone(name), at);
        const end = nextDay(zone(name), start);
        const before = dates.format(start - QUARTER_MS);
        const own = dates.format(start);
        expect([before < own, dates.format(end) > own]).toEqual([true, true]);
        for (let quarter = start; quarter < end; quarter += QUARTER_MS) expect(dates.format(quarter)).toBe(own);
      }),
    );
  });
});

describe("an hour", () => {
  const startsOf = (name: string, from: string, count: number) => {
    const starts = [utc(from)];
    while (starts.length < count) starts.push(nextHour(zone(name), starts.at(-1) ?? 0));
    return starts.map((at) => formatLocal(zone(name), at).slice(11));
  };

  test("that is shown twice is two", () => {
    expect(startsOf("Europe/Berlin", "2026-10-24T23:00", 4)).toEqual([
      "01:00:00+02:00",
      "02:00:00+02:00",
      "02:00:00+01:00",
      "03:00:00+01:00",
    ]);
  });

  test("around a change by half an hour has half an hour", () => {
    expect(startsOf("Australia/Lord_Howe", "2026-10-03T14:30", 4)).toEqual([
      "01:00:00+10:30",
      "02:30:00+11:00",
      "03:00:00+11:00",
      "04:00:00+11:00",
    ]);
  });

  test("begins with its zone's minute 0, wherever one starts", () => {
    expect(startsOf("Asia/Kathmandu", "2026-01-01T00:00", 3)).toEqual([
      "05:45:00+05:45",
      "06:00:00+05:45",
      "07:00:00+05:45",
    ]);
  });

  test("shows one hour of one offset, and the next shows another, in any zone", () => {
    fc.assert(
      fc.property(anyZone, anyQuarter, (name, at) => {
        const hourOf = (time: number) => formatLocal(zone(name), time).replace(/:\d\d:00/, "");
        const end = nextHour(zone(name), at);
        expect(end - at).toBeLessThanOrEqual(HOUR_MS);
        for (let quarter = at; quarter < end; quarter += QUARTER_MS) expect(hourOf(quarter)).toBe(hourOf(at));
        expect(hourOf(end)).not.toBe(hourOf(at));
      }),
    );
  });
});
