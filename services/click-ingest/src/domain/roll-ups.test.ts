import { describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import fc from "fast-check";
import { SAMPLE_AT, sampleClick } from "../test-support/sample-clicks.ts";
import { type Classes, classify } from "./classify.ts";
import { type Counted, countClicks, countDays, writePeople } from "./roll-ups.ts";

const HOUR_MS = 3_600_000;
/** The beginning of an hour. */
const AT = Math.floor(SAMPLE_AT / HOUR_MS) * HOUR_MS;
const BOT = "Googlebot/2.1 (+http://www.google.com/bot.html)";

const count = (clicks: readonly Click[]): Counted => countClicks(clicks, clicks.map(classify));

const click = fc
  .record({
    code: fc.constantFrom("one", "two"),
    at: fc.integer({ min: AT, max: AT + 30 * HOUR_MS }),
    owner: fc.constantFrom(undefined, "ann", "bob"),
    referrerHost: fc.constantFrom(null, "news.example", "other", "~other", "a\tb", "a\\b"),
    userAgent: fc.constantFrom(null, BOT, "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0"),
    prefetch: fc.boolean(),
  })
  .map(({ owner, ...rest }) => sampleClick({ ...rest, ...(owner === undefined ? {} : { owner }) }));
const sum = (counts: readonly number[]) => counts.reduce((all, n) => all + n, 0);

describe("what clicks add up to", () => {
  test("is by code, hour and quarter, parted into people, bots and what was only fetched ahead", () => {
    const clicks = [
      sampleClick({ at: AT }),
      sampleClick({ at: AT + HOUR_MS / 4 - 1 }),
      sampleClick({ at: AT + HOUR_MS / 4 }),
      sampleClick({ at: AT + HOUR_MS - 1, userAgent: BOT, prefetch: true }),
      sampleClick({ at: AT + HOUR_MS / 2, prefetch: true }),
      sampleClick({ at: AT + HOUR_MS, owner: "ann" }),
    ];
    const { hours, owners } = count(clicks);
    expect(hours).toMatchObject([
      { code: "sample", hour: AT / HOUR_MS, owner: null, counts: [2, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0] },
      { code: "sample", hour: AT / HOUR_MS + 1, owner: "ann", counts: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
    ]);
    expect(owners).toEqual([{ owner: "ann", hour: AT / HOUR_MS + 1, counts: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }]);
  });

  test("is each click once, in its hour and for its owner, whatever they are", () => {
    fc.assert(
      fc.property(fc.array(click), (clicks) => {
        const counted = count(clicks);
        const { hours, owners } = counted;
        expect(sum(hours.map(({ counts }) => sum(counts)))).toBe(clicks.length);
        const owned = clicks.filter(({ owner }) => owner !== undefined).length;
        expect(sum(owners.map(({ counts }) => sum(counts)))).toBe(owned);
        const people = clicks.filter((each) => !classify(each).bot && each.prefetch !== true).length;
        expect(sum(countDays(counted).map((day) => day.people))).toBe(people);
      }),
    );
  });
});

describe("what people came from and with", () => {
  const written = (clicks: readonly Click[]) => count(clicks).hours.map(writePeople);
  const DESKTOP: Classes = { browser: "Firefox", os: "Linux", device: "desktop", bot: false };

  test("is a line for each of them while these are few", () => {
    const clicks = [sampleClick({ at: AT }), sampleClick({ at: AT + HOUR_MS / 2, referrerHost: "a\tb\\c" })];
    const { hours } = countClicks(clicks, [DESKTOP, DESKTOP]);
    expect(hours.map(writePeople)).toEqual([
      { cells: "", recent: "0\tnews.example\tFirefox\tLinux\tdesktop\t\n2\ta\\tb\\bc\tFirefox\tLinux\tdesktop\t\n" },
    ]);
  });

  test("is a line for each dimension and value when they are many", () => {
    const clicks = Array.from({ length: 1000 }, () => sampleClick({ at: AT, country: "AT" }));
    const { hours } = countClicks(
      clicks,
      clicks.map(() => DESKTOP),
    );
    const line = (dimension: number, value: string) => `${dimension}\t1000\t0\t0\t0\t${value}\n`;
    const cells = line(1, "news.example") + line(2, "Firefox") + line(3, "Linux") + line(4, "desktop") + line(5, "AT");
    expect(hours.map(writePeople)).toEqual([{ cells, recent: "" }]);
  });

  test("is told apart by each of the five, however many there are", () => {
    const hosts = Array.from({ length: 40 }, (_, n) => `${n}.example`);
    const clicks = [...hosts, ...hosts].map((referrerHost) => sampleClick({ at: AT, referrerHost }));
    const twins = clicks.map((_, n) => (n % 2 === 0 ? DESKTOP : { ...DESKTOP }));
    const [hour] = countClicks(clicks, twins).hours;
    expect(hour?.people.map(({ referrer, times }) => [referrer, times[0]])).toEqual(hosts.map((host) => [host, 2]));
  });

  test("says nothing of bots, and of what was only fetched ahead", () => {
    expect(written([sampleClick({ userAgent: BOT }), sampleClick({ prefetch: true })])).toEqual([
      { cells: "", recent: "" },
    ]);
  });

  test("that are the word for the rest, or that with tildes, have one tilde more", () => {
    const [first] = written([
      sampleClick({ at: AT, referrerHost: "~other" }),
      sampleClick({ at: AT, referrerHost: "other" }),
    ]);
    expect(first?.recent).toMatch(/^0\t~~other\t[^\n]*\n0\t~other\t[^\n]*\n$/);
  });
});
