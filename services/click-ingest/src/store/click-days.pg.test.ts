import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { dayOf, idTimeMs } from "../domain/click.ts";
import { openClickStore } from "../test-support/open-store.ts";
import { newClickId, sampleClick, sampleClicks } from "../test-support/sample-clicks.ts";

const DAY_MS = 86_400_000;
const TODAY = dayOf(Date.now());
/** A UTC day from today, and a time within it. */
const at = (days: number, ms = 0) => (TODAY + days) * DAY_MS + ms;

let database: TestDatabase;
let pool: Database;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 5000 });
});
beforeEach(async () => {
  for (const name of await partitions()) await database.sql.unsafe(`DROP TABLE ${name}`);
  await database.sql`UPDATE click_retention SET oldest_day = '1970-01-01'`;
  await database.sql`TRUNCATE click_day, click_hour, owner_hour`;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

async function partitions(): Promise<string[]> {
  const rows = await database.sql<{ name: string }[]>`
    SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'click'::regclass ORDER BY 1`;
  return rows.map(({ name }) => name);
}
const nameOf = (days: number) => `click_${new Date(at(days)).toISOString().slice(0, 10).replaceAll("-", "")}`;
const countRows = async () => (await database.sql`SELECT count(*)::int AS n FROM click`)[0]?.n;
const open = (retentionDays = 400) => openClickStore(pool, { retentionDays });

describe("days of clicks", () => {
  test("have bounds that are the ids of their first and last millisecond", async () => {
    const day = fc.integer({ min: 0, max: 80_000 });
    await fc.assert(
      fc.asyncProperty(day, fc.integer({ min: 0, max: DAY_MS - 1 }), async (n, ms) => {
        const id = newClickId(n * DAY_MS + ms);
        const [row] = await database.sql`
          SELECT ${id}::uuid >= first_click_id(date '1970-01-01' + ${n}::int) AS after,
                 ${id}::uuid < first_click_id(date '1970-01-01' + ${n}::int + 1) AS before,
                 day_of_click(${id}) - date '1970-01-01' AS day`;
        expect(row).toEqual({ after: true, before: true, day: n });
        expect(dayOf(idTimeMs(id))).toBe(n);
      }),
      { numRuns: 30 },
    );
  });

  test("are made from yesterday to eight days ahead, and an older one when its first click comes", async () => {
    const store = open();
    await store.days.maintain();
    expect(await partitions()).toEqual(Array.from({ length: 10 }, (_, n) => nameOf(n - 1)));
    expect((await store.insert([sampleClick({ at: at(-30) })])).fresh.size).toBe(1);
    expect(await partitions()).toContain(nameOf(-30));
  });

  test("are made by several services at once, each day once", async () => {
    const stores = Array.from({ length: 4 }, () => open());
    const clicks = [-5, -3, -1, 0].flatMap((day) => sampleClicks(5, { at: at(day) }));
    const results = await Promise.all(stores.map(({ insert }) => insert(clicks)));
    expect(results.reduce((sum, { fresh }) => sum + fresh.size, 0)).toBe(20);
    expect(await countRows()).toBe(20);
  });

  test("are made while others store, who are not held up", async () => {
    const store = open();
    await store.insert(sampleClicks(1, { at: at(0) }));
    await database.sql.begin(async (sql) => {
      await sql`LOCK TABLE click IN ROW EXCLUSIVE MODE`;
      expect((await store.insert(sampleClicks(3, { at: at(-9) }))).fresh.size).toBe(3);
    });
  });
});

describe("a day that is no longer kept", () => {
  test("is dropped, its roll-ups stay, and its clicks are late from then on", async () => {
    const generous = open(400);
    const old = sampleClicks(4, { at: at(-10, 5) });
    const kept = sampleClicks(2, { at: at(-9, 5) });
    await generous.insert([...old, ...kept]);
    const strict = open(9);
    await strict.days.maintain();
    expect(await countRows()).toBe(2);
    expect((await database.sql`SELECT sum(people_q0)::int AS people FROM click_hour`)[0]?.people).toBe(6);
    expect(strict.days.stats().dropped).toBe(1);
    const again = await strict.insert([...old, ...kept, sampleClick({ at: at(0) })]);
    expect([again.fresh.size, again.late]).toEqual([1, new Set(old.map(({ id }) => id))]);
    const guards = await database.sql`SELECT day - date '1970-01-01' AS day FROM click_day ORDER BY day`;
    expect(guards).toEqual([{ day: TODAY - 9 }, { day: TODAY }]);
  });

  test("is not made again by a service that would keep it for longer, as its clicks would be counted twice", async () => {
    const generous = open(400);
    const old = sampleClicks(4, { at: at(-10) });
    await generous.insert(old);
    await open(9).days.maintain();
    // It still takes the day for open, is told otherwise by the database, and asks anew.
    await expect(generous.insert(old)).rejects.toMatchObject({ code: "CK001" });
    expect((await generous.insert(old)).late.size).toBe(4);
    expect((await open(400).insert(old)).late.size).toBe(4);
    expect(await countRows()).toBe(0);
  });

  test("made again all the same, as a control, counts the clicks that are sent once more a second time", async () => {
    const old = sampleClicks(4, { at: at(-10) });
    await open(400).insert(old);
    await open(9).days.maintain();
    await database.sql`UPDATE click_retention SET oldest_day = '1970-01-01'`;
    expect((await open(400).insert(old)).fresh.size).toBe(4);
    expect((await database.sql`SELECT sum(people_q0)::int AS people FROM click_hour`)[0]?.people).toBe(8);
  });

  test("is not dropped while somebody reads of it, and nobody who stores gives up because of that", async () => {
    const generous = open(400);
    const { days } = open(9);
    await generous.insert(sampleClicks(1, { at: at(-10) }));
    expect(days.isHeldUp()).toBe(false);
    await database.sql.begin(async (sql) => {
      await sql`SELECT count(*) FROM click`;
      await expect(days.maintain()).rejects.toMatchObject({ code: "55P03" });
      expect(days.isHeldUp()).toBe(true);
      expect((await generous.insert(sampleClicks(1, { at: at(0) }))).fresh.size).toBe(1);
    });
    await days.maintain();
    expect(days.isHeldUp()).toBe(false);
    expect(await countRows()).toBe(1);
  });

  test("is refused from the first click on where it never was", async () => {
    const click = sampleClick({ at: at(-401) });
    expect(await open(400).insert([click])).toEqual({ fresh: new Set(), late: new Set([click.id]) });
    expect(await partitions()).not.toContain(nameOf(-401));
  });
});

describe("a day further ahead than days are made", () => {
  test("is the click's fault, and its neighbours can be stored without it", async () => {
    const clicks = [sampleClick({ at: at(0) }), sampleClick({ at: at(9) })];
    await expect(open().insert(clicks)).rejects.toMatchObject({ code: "22008" });
    expect((await open().insert(clicks.slice(0, 1))).fresh.size).toBe(1);
  });
});

describe("the same clicks again", () => {
  test("change nothing across midnight and the ends of months, in whatever parts they come", async () => {
    const store = open();
    // The last and first milliseconds of each of the last forty days: a month ends among them, at least once.
    const clicks = Array.from({ length: 40 }, (_, n) => [at(-n), at(-n, 1), at(1 - n, -1)]).flat();
    const all = clicks.map((time) => sampleClick({ at: time }));
    expect((await store.insert(all)).fresh.size).toBe(120);
    const shuffled = all.toSorted((a, b) => a.id.slice(-4).localeCompare(b.id.slice(-4)));
    expect((await store.insert(shuffled.slice(0, 70))).fresh.size).toBe(0);
    expect((await open().insert(shuffled.slice(50))).fresh.size).toBe(0);
    expect(await countRows()).toBe(120);
    const [row] = await database.sql`SELECT sum(people_q0 + people_q3)::int AS people FROM click_hour`;
    expect(row?.people).toBe(120);
  });

  test("in partitions by the time they say, as a control, are stored twice when a sender says another", async () => {
    await database.sql.unsafe(`
      CREATE TABLE by_time (click_id uuid, clicked_at timestamptz, PRIMARY KEY (click_id, clicked_at))
        PARTITION BY RANGE (clicked_at);
      CREATE TABLE by_time_all PARTITION OF by_time DEFAULT;`);
    const id = newClickId();
    for (const time of ["2026-03-31T23:59:59.999Z", "2026-04-01T00:00:00Z"])
      await database.sql`INSERT INTO by_time VALUES (${id}, ${time}) ON CONFLICT DO NOTHING`;
    expect(await database.sql`SELECT * FROM by_time`).toHaveLength(2);
    await database.sql`DROP TABLE by_time`;
  });
});
