import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { QUARTER_MS } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { storeClicks } from "../test-support/stored-clicks.ts";
import { createDayValues } from "./day-values.ts";
import { createStatsStore } from "./stats.ts";

let database: TestDatabase;
let pool: Database;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 10_000 });
});
beforeEach(async () => {
  await database.sql`TRUNCATE click, click_hour, click_day, click_day_value, click_day_added`;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const BUSY = 250;
const day = (back: number) => TODAY - back * DAY_MS;

/** So many people on a day, from one of three places each. */
const crowd = (back: number, count = BUSY, code = "sample") =>
  Array.from({ length: count }, (_, n) => ({ at: day(back) + n * 60_000, code, referrer: `r${n % 3}.example` }));

async function referrers(from: number, to: number): Promise<Record<string, number>> {
  const edges = [from, to].map((at) => Math.floor(at / QUARTER_MS));
  const { top } = await createStatsStore(pool).readLink("sample", { edges, top: 10, stepped: true });
  return Object.fromEntries((top?.referrer.items ?? []).map(({ value, total }) => [value, total]));
}
const addedDays = async () =>
  (await database.sql`SELECT day::text, code FROM click_day_added ORDER BY day, code`).map(
    ({ day: date, code }) => `${code} ${date}`,
  );
const dateOf = (back: number) => new Date(day(back)).toISOString().slice(0, 10);

describe("days of values", () => {
  test("are added up when they are busy and over, and say the same as their hours", async () => {
    await storeClicks(database, [
      ...crowd(5),
      ...crowd(4, 20),
      ...crowd(3),
      ...crowd(1),
      ...crowd(0),
      ...crowd(3, BUSY, "more"),
    ]);
    const periods = [
      [day(9), day(-1)],
      [day(5), day(3)],
      [day(5) + 3 * QUARTER_MS, day(3) + 5 * QUARTER_MS],
      [day(4), day(2)],
    ] as const;
    const before = await Promise.all(periods.map(([from, to]) => referrers(from, to)));
    const days = createDayValues(pool, Date.now);
    await days.maintain();
    expect(await addedDays()).toEqual([`sample ${dateOf(5)}`, `more ${dateOf(3)}`, `sample ${dateOf(3)}`]);
    expect(await Promise.all(periods.map(([from, to]) => referrers(from, to)))).toEqual(before);
    await days.maintain();
    expect(days.stats()).toEqual({ added: 3 });
  });

  test("are really read: what stands there is told", async () => {
    await storeClicks(database, crowd(3));
    await createDayValues(pool, Date.now).maintain();
    await database.sql`UPDATE click_day_value SET value = 'seen.example' WHERE value = 'r0.example'`;
    expect(Object.keys(await referrers(day(4), day(2)))).toContain("seen.example");
  });

  test("give way to their hours while somebody has come late, until they are added up anew", async () => {
    await storeClicks(database, crowd(3));
    const days = createDayValues(pool, Date.now);
    await days.maintain();
    await storeClicks(database, [{ at: day(3) + 1, referrer: "late.example" }]);
    expect(await referrers(day(4), day(2))).toMatchObject({ "late.example": 1 });
    await days.maintain();
    expect(days.stats()).toEqual({ added: 2 });
    expect(await referrers(day(4), day(2))).toMatchObject({ "late.example": 1, "r0.example": 84 });
  });

  test("stay when single clicks leave, but for those that somebody was late for", async () => {
    await storeClicks(database, [...crowd(5), ...crowd(3)]);
    await createDayValues(pool, Date.now).maintain();
    await storeClicks(database, [{ at: day(5) + 1, referrer: "late.example" }]);
    const before = await referrers(day(9), day(2));
    await database.sql`DELETE FROM click_day`;
    expect(await addedDays()).toEqual([`sample ${dateOf(3)}`]);
    expect(await referrers(day(9), day(2))).toEqual(before);
  });

  test("that are being stored are left for the next time", async () => {
    await storeClicks(database, [...crowd(5), ...crowd(3)]);
    const days = createDayValues(pool, Date.now);
    await database.sql.begin(async (sql) => {
      await sql`SELECT FROM click_day WHERE day = ${dateOf(5)}::text::date FOR UPDATE`;
      await days.maintain();
    });
    expect(await addedDays()).toEqual([`sample ${dateOf(3)}`]);
    await days.maintain();
    expect(await addedDays()).toEqual([`sample ${dateOf(5)}`, `sample ${dateOf(3)}`]);
  });
});
