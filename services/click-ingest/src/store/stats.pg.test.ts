import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { QUARTER_MS } from "@linkfence/contracts";
import { createDatabase, type Database, DeadlineExceeded } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { type StoredClick, storeClicks } from "../test-support/stored-clicks.ts";
import { createStatsStore, type StatsStore } from "./stats.ts";

let database: TestDatabase;
let pool: Database;
let stats: StatsStore;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 10_000 });
  stats = createStatsStore(pool);
});
beforeEach(async () => {
  await database.sql`
    TRUNCATE click, click_hour, owner_hour, click_day, click_day_value, click_day_added, click_drop,
             click_drop_report`;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const START = Date.parse("2026-03-28T21:30:00Z");
const quarterOf = (at: number) => Math.floor(at / QUARTER_MS);
const HOUR = 3_600_000;
const day = [quarterOf(START), quarterOf(START) + 96];
const asked = (edges: readonly number[], top = 10) => ({ edges, top, stepped: true });
const EVER = { edges: [0, quarterOf(Date.parse("2100-01-01T00:00:00Z"))], top: 0, stepped: false };

describe("the sums of a code", () => {
  test("are 0 where there is no click, in every step", async () => {
    expect(await stats.readLink("never", asked([0, 4, 8]))).toEqual({
      code: "never",
      total: 0,
      bots: 0,
      prefetches: 0,
      series: [
        [0, 0, 0],
        [0, 0, 0],
      ],
      top: {
        referrer: { items: [], others: 0 },
        browser: { items: [], others: 0 },
        os: { items: [], others: 0 },
        device: { items: [], others: 0 },
        country: { items: [], others: 0 },
      },
      dropped: [],
    });
  });

  test("keep people, bots and prefetches apart, letter by letter", async () => {
    await storeClicks(database, [
      ...[{ at: START }, { at: START + 1, bot: true }, { at: START + 2, prefetch: true }],
      ...[
        { at: START + 3, bot: true, prefetch: true },
        { at: START + 4, code: "Sample" },
      ],
    ]);
    const { total, bots, prefetches, series } = await stats.readLink("sample", EVER);
    expect([total, bots, prefetches, series]).toEqual([1, 2, 1, []]);
  });

  test.each([false, true])(
    "of any steps are those of the clicks themselves, and so are the values; days added up: %p",
    async (addedUp) => {
      const anyClick = fc.record({
        at: fc.integer({ min: 0, max: 30 * HOUR - 1 }).map((ms) => START + ms),
        bot: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
        prefetch: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
        referrer: fc.constantFrom("", "a.example", "b.example"),
      });
      const clicks = fc.sample(anyClick, 3000);
      await storeClicks(database, clicks);
      if (addedUp) await database.sql`SELECT add_up_click_days('-infinity', 1, 1000)`;
      const anySteps = fc.uniqueArray(fc.integer({ min: -8, max: 130 }), { minLength: 2, maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(anySteps, async (offsets) => {
          const edges = offsets.sort((a, b) => a - b).map((offset) => quarterOf(START) + offset);
          const within = (from = 0, to = 0) => clicks.filter(({ at }) => quarterOf(at) >= from && quarterOf(at) < to);
          const people = (list: typeof clicks) => list.filter(({ bot, prefetch }) => !bot && !prefetch);
          const sums = await stats.readLink("sample", asked(edges));
          expect(sums.series).toEqual(
            edges.slice(1).map((to, index) => {
              const inside = within(edges[index], to);
              const bots = inside.filter(({ bot }) => bot).length;
              return [people(inside).length, bots, inside.length - bots - people(inside).length];
            }),
          );
          const all = people(within(edges[0], edges.at(-1)));
          expect(sums.total).toBe(all.length);
          const counted = sums.top?.referrer.items.map(({ value, total }) => [value ?? "", total] as const);
          for (const [value, total] of counted ?? [])
            expect(total).toBe(all.filter(({ referrer }) => referrer === value).length);
          expect(counted?.reduce((sum, [, total]) => sum + total, 0)).toBe(all.length);
        }),
        { numRuns: 30 },
      );
    },
  );

  test("name ten values of each kind, the greatest first, and count all others together", async () => {
    const many = Array.from({ length: 130 }, (_, n) => ({
      at: START + n,
      referrer: `r${String(n % 120).padStart(3, "0")}`,
    }));
    await storeClicks(database, many);
    const { total, top } = await stats.readLink("sample", asked(day));
    const { items = [], others } = top?.referrer ?? {};
    expect(items).toHaveLength(10);
    expect(items[0]).toEqual({ value: "r000", total: 2 });
    expect([total, others]).toEqual([130, 130 - items.reduce((sum, item) => sum + item.total, 0)]);
    expect(top?.country).toEqual({ items: [{ value: null, total: 130 }], others: 0 });
  });

  test("tell a referrer whose name is the word for the rest from the rest", async () => {
    await storeClicks(database, [
      { at: START, referrer: "other" },
      { at: START, referrer: "~other" },
    ]);
    const { top } = await stats.readLink("sample", asked(day));
    expect(top?.referrer).toEqual({
      items: [
        { value: "other", total: 1 },
        { value: "~other", total: 1 },
      ],
      others: 0,
    });
  });
});

describe("the sums of an owner", () => {
  test("are those of the owner's links, and the links come with theirs, the most followed first", async () => {
    const of = (code: string, count: number, more: Partial<StoredClick> = {}) =>
      Array.from({ length: count }, (_, n) => ({ at: START + n, code, owner: "ann", ...more }));
    await storeClicks(database, [
      ...of("few", 2),
      ...of("many", 5),
      ...of("bots", 7, { bot: true }),
      ...of("few", 3, { at: START + 30 * HOUR }),
      ...of("his", 4, { owner: "bob" }),
      ...of("nobody's", 1, { owner: null, code: "nobodys" }),
    ]);
    const { dropped: _none, ...sums } = await stats.readOwner("ann", asked(day));
    expect(sums).toEqual({
      total: 7,
      bots: 7,
      prefetches: 0,
      series: [[7, 7, 0]],
      links: [
        { code: "many", total: 5, bots: 0, prefetches: 0 },
        { code: "few", total: 2, bots: 0, prefetches: 0 },
        { code: "bots", total: 0, bots: 7, prefetches: 0 },
      ],
    });
    expect((await stats.readOwner("zoe", asked(day))).links).toEqual([]);
  });

  test("come without the links where those take too long", async () => {
    await storeClicks(database, [{ at: START, owner: "ann" }]);
    await database.sql.begin(async (sql) => {
      await sql`LOCK TABLE click_hour IN ACCESS EXCLUSIVE MODE`;
      expect(await stats.readOwner("ann", asked(day))).toMatchObject({ total: 1, links: null });
    });
  });
});

describe("single clicks", () => {
  test("come newest first, with what is not known as null, from any day", async () => {
    const ids = await storeClicks(database, [
      { at: START - 40 * HOUR, referrer: "a.example", country: "NL", bot: true },
      { at: START, browser: "", os: "", device: "" },
      { at: START + 40 * HOUR, prefetch: true },
      { at: START + 41 * HOUR, code: "another" },
    ]);
    const clicks = await stats.readClicks("sample", { limit: 10, before: null });
    expect(clicks.map(({ id }) => id)).toEqual([ids[2], ids[1], ids[0]]);
    expect(clicks[1]).toEqual({
      id: ids[1],
      clickedAt: "2026-03-28T21:30:00.000000Z",
      version: 1,
      referrer: null,
      browser: null,
      system: null,
      device: null,
      country: null,
      bot: false,
      prefetch: false,
    });
    expect(clicks[2]).toMatchObject({ referrer: "a.example", country: "NL", browser: "Firefox", bot: true });
    const next = await stats.readClicks("sample", { limit: 1, before: ids[2] ?? null });
    expect(next.map(({ id }) => id)).toEqual([ids[1]]);
  });
});

test("a locked table fails the reading at its deadline", async () => {
  const reader = createDatabase({ url: database.url, applicationName: "test", max: 1, queryTimeoutMs: 300 });
  await database.sql.begin(async (sql) => {
    await sql`LOCK TABLE click_hour IN ACCESS EXCLUSIVE MODE`;
    await expect(createStatsStore(reader).readLink("sample", EVER)).rejects.toBeInstanceOf(DeadlineExceeded);
  });
  expect((await createStatsStore(reader).readLink("sample", EVER)).total).toBe(0);
  await reader.close();
});
