import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, findRollupFaults, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { openClickStore } from "../test-support/open-store.ts";
import { SAMPLE_AT, sampleClick, sampleClicks } from "../test-support/sample-clicks.ts";
import { toColumns } from "./click-columns.ts";

const VALUES_MAX = 4;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let database: TestDatabase;
let pool: Database;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 5000 });
});
beforeEach(() => database.sql`TRUNCATE click, click_day, click_hour, owner_hour`);
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const open = () => openClickStore(pool, { valuesMax: VALUES_MAX });

/** Tries again where it waited for another one for longer than a statement may, as the writer does. That is no deadlock. */
function insertPatiently(clicks: Click[]): ReturnType<ReturnType<typeof open>["insert"]> {
  return open()
    .insert(clicks)
    .catch((error: { code?: string }) => {
      if (error.code !== "55P03") throw error;
      return insertPatiently(clicks);
    });
}

const faults = () => findRollupFaults(database, VALUES_MAX);

async function referrers(code = "sample"): Promise<Record<string, number>> {
  const rows = await database.sql<{ value: string; n: number }[]>`
    SELECT value, sum(q0 + q1 + q2 + q3)::int AS n FROM click_hour_value
     WHERE code = ${code} AND dimension = 1 GROUP BY value ORDER BY value`;
  return Object.fromEntries(rows.map(({ value, n }) => [value, n]));
}

describe("a click", () => {
  test("is added to its quarter of its hour, once, as a person's or a prefetch", async () => {
    const times = [0, 14, 15, 30, 59].map((minute) => SAMPLE_AT + minute * MINUTE_MS);
    const clicks = times.map((at) => sampleClick({ at, owner: "ann" }));
    const ahead = sampleClick({ at: SAMPLE_AT, owner: "ann", prefetch: true });
    await open().insert([...clicks, ahead]);
    await open().insert([...clicks, ahead]);
    const people = { people_q0: 2, people_q1: 1, people_q2: 1, people_q3: 1, prefetches_q0: 1, bots_q0: 0 };
    expect(await database.sql`SELECT * FROM click_hour`).toMatchObject([{ code: "sample", owner: "ann", ...people }]);
    expect(await database.sql`SELECT * FROM owner_hour`).toMatchObject([{ owner: "ann", ...people }]);
    expect(await referrers()).toEqual({ "news.example": 5 });
    expect(await faults()).toEqual([]);
  });

  test("twice in one batch is added as it came first", async () => {
    const first = sampleClick({ referrerHost: "first.example" });
    await open().insert([first, { ...first, referrerHost: "second.example" }, sampleClick({ referrerHost: null })]);
    expect(await referrers()).toEqual({ "": 1, "first.example": 1 });
    expect(await faults()).toEqual([]);
  });

  test("that is stored is added up, or neither: a roll-up that fails takes the click with it", async () => {
    await database.sql.unsafe("ALTER TABLE owner_hour ADD CONSTRAINT never CHECK (owner <> 'never')");
    await expect(open().insert([sampleClick({ owner: "never" })])).rejects.toMatchObject({ code: "23514" });
    for (const table of ["click", "click_hour", "click_day"])
      expect(await database.sql.unsafe(`SELECT FROM ${table}`)).toHaveLength(0);
    await database.sql.unsafe("ALTER TABLE owner_hour DROP CONSTRAINT never");
  });
});

describe("what is counted before clicks are stored", () => {
  const TABLES = {
    click_day: "day, code",
    click_hour: "code, hour",
    owner_hour: "owner, hour",
    click_hour_value: "code, hour, dimension, value",
  };
  const readAll = async () => {
    const rows: Record<string, unknown> = {};
    for (const [table, key] of Object.entries(TABLES)) {
      const columns = table === "click_hour" ? "code, hour, owner, to_jsonb(h) - 'cells' - 'recent'" : "*";
      rows[table] = await database.sql.unsafe(`SELECT ${columns} FROM ${table} h ORDER BY ${key}`);
    }
    return rows;
  };
  const empty = () => database.sql`TRUNCATE click, click_day, click_hour, owner_hour`;
  const host = fc.constantFrom(
    null,
    "news.example",
    "other",
    "~other",
    "brother",
    "a\tb",
    "a\\nb",
    "a\nb",
    "é".repeat(60),
  );
  const click = fc
    .record({
      code: fc.constantFrom("one", "two"),
      minute: fc.constantFrom(0, 15, 29, 59, 61),
      owner: fc.constantFrom(undefined, "ann", "Ömer"),
      referrerHost: host,
      userAgent: fc.constantFrom(
        null,
        "Googlebot/2.1",
        "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
      ),
      country: fc.constantFrom(undefined, "AT", "NZ"),
      prefetch: fc.boolean(),
      times: fc.constantFrom(1, 1, 2, 60),
    })
    .map(({ minute, owner, country, times, ...rest }) => {
      const optional = { ...(owner === undefined ? {} : { owner }), ...(country === undefined ? {} : { country }) };
      return sampleClicks(times, { ...rest, ...optional, at: SAMPLE_AT + minute * MINUTE_MS });
    });
  const batches = fc.array(
    fc.array(click, { minLength: 1, maxLength: 5 }).map((clicks) => clicks.flat()),
    { minLength: 1, maxLength: 3 },
  );

  test("is what the database counts of the same clicks", async () => {
    await fc.assert(
      fc
        .asyncProperty(batches, async (lists) => {
          for (const clicks of lists) await open().insert(clicks);
          const counted = await readAll();
          await empty();
          for (const clicks of lists) {
            const c = toColumns(clicks);
            await pool.run(
              (sql) => sql`
                SELECT store_clicks(${c.ids}, ${c.versions}, ${c.times}, ${c.codes}, ${c.owners}, ${c.referrers},
                                    ${c.browsers}, ${c.systems}, ${c.devices}, ${c.countries}, ${c.bots},
                                    ${c.prefetches}, ${VALUES_MAX})`,
            );
          }
          expect(counted).toEqual(await readAll());
        })
        .afterEach(empty),
      { numRuns: 50 },
    );
  });

  test("counts for nothing where one of them is there already: what is new is counted again", async () => {
    const [known, ...others] = sampleClicks(3, { owner: "ann" });
    await open().insert([known as Click]);
    await open().insert([known as Click, ...others]);
    expect(await database.sql`SELECT people_q0 + people_q1 + people_q2 + people_q3 AS n FROM click_hour`).toEqual([
      { n: 3 },
    ]);
    expect(await faults()).toEqual([]);
  });
});

describe("different values of a day", () => {
  const withReferrers = (hosts: readonly string[], at = SAMPLE_AT): Click[] =>
    hosts.map((referrerHost) => sampleClick({ referrerHost, at }));

  test("beyond the limit count as `other`, and the sum stays", async () => {
    await open().insert(withReferrers(["a", "b", "c", "d", "e", "f", "a", "f"]));
    expect(await referrers()).toEqual({ a: 2, b: 1, c: 1, d: 1, other: 3 });
    await open().insert(withReferrers(["a", "e", "g"]));
    expect(await referrers()).toEqual({ a: 3, b: 1, c: 1, d: 1, other: 5 });
    expect(await faults()).toEqual([]);
  });

  test("are the same in all of its hours: one that is known goes on being named, a new one is not", async () => {
    await open().insert(withReferrers(["a", "b", "c", "d", "e"]));
    await open().insert(withReferrers(["d", "e", "f", "a"], SAMPLE_AT + HOUR_MS));
    expect(await referrers()).toEqual({ a: 2, b: 1, c: 1, d: 2, other: 3 });
    expect(await faults()).toEqual([]);
  });

  test("begin anew with the next day, and are each code's own", async () => {
    await open().insert(withReferrers(["a", "b", "c", "d", "e"]));
    await open().insert(withReferrers(["e", "f"], SAMPLE_AT - 24 * HOUR_MS));
    await open().insert([sampleClick({ code: "another", referrerHost: "e" })]);
    expect(await referrers()).toEqual({ a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, other: 1 });
    expect(await referrers("another")).toEqual({ e: 1 });
    expect(await faults()).toEqual([]);
  });

  test("that are the word `other` are not mistaken for the rest", async () => {
    await open().insert(withReferrers(["other", "~other", "a", "b", "c", "another"]));
    expect(await referrers()).toEqual({ a: 1, another: 1, b: 1, c: 1, other: 2 });
    await open().insert(withReferrers(["other", "~other", "brother"], SAMPLE_AT - 24 * HOUR_MS));
    expect(await referrers()).toMatchObject({ "~other": 1, "~~other": 1, brother: 1 });
    expect(await faults()).toEqual([]);
  });

  test("stay within the limit when writers of different hours of one day work at once", async () => {
    for (let round = 0; round < 10; round += 1) {
      await database.sql`TRUNCATE click, click_day, click_hour, owner_hour`;
      await Promise.all(
        [0, 1, 2].map((hour) =>
          open().insert(
            withReferrers(
              ["a", "b", "c"].map((name) => `${name}${hour}`),
              SAMPLE_AT + hour * HOUR_MS,
            ),
          ),
        ),
      );
      expect(await faults()).toEqual([]);
    }
  });
});

describe("writers at once", () => {
  test("with many clicks in common, in any order, add each up once and never deadlock", async () => {
    const hosts = fc.constantFrom("a", "b", "c", "d", "e", "f", "g", null);
    const aClick = fc.record({
      code: fc.constantFrom("one", "two", "three"),
      minutes: fc.integer({ min: -1500, max: 200 }),
      referrerHost: hosts,
      country: fc.option(fc.constantFrom("DE", "FR"), { nil: undefined }),
      owner: fc.option(fc.constantFrom("ann", "bob"), { nil: undefined }),
      prefetch: fc.boolean(),
    });
    const picks = fc.array(fc.nat({ max: 59 }), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(aClick, { minLength: 60, maxLength: 60 }),
        fc.array(picks, { minLength: 4, maxLength: 4 }),
        async (abouts, batches) => {
          await database.sql`TRUNCATE click, click_day, click_hour, owner_hour`;
          const clicks = abouts.map(({ minutes, country, owner, ...about }) =>
            sampleClick({
              ...about,
              at: SAMPLE_AT + minutes * MINUTE_MS,
              ...(country === undefined ? {} : { country }),
              ...(owner === undefined ? {} : { owner }),
            }),
          );
          const stored = await Promise.all(
            batches.map((indexes) => insertPatiently(indexes.flatMap((index) => clicks[index] ?? []))),
          );
          const sent = new Set(batches.flat().map((index) => clicks[index]?.id));
          expect(stored.reduce((sum, { fresh }) => sum + fresh.size, 0)).toBe(sent.size);
          expect(await faults()).toEqual([]);
        },
      ),
      { numRuns: 25 },
    );
  });

  test("each of a whole batch on one code, all come through", async () => {
    const batches = Array.from({ length: 6 }, () => sampleClicks(2000));
    for (const { fresh } of await Promise.all(batches.map(insertPatiently))) expect(fresh.size).toBe(2000);
    expect(await faults()).toEqual([]);
  });
});

describe("a roll-up of its own transaction, as a control", () => {
  test("misses what was stored when its process died in between", async () => {
    const [rolling] = await database.sql<{ args: string }[]>`
      SELECT pg_get_function_identity_arguments('add_roll_ups'::regproc) AS args`;
    await database.sql.unsafe(`
      ALTER FUNCTION add_roll_ups RENAME TO add_later;
      CREATE FUNCTION add_roll_ups(${rolling?.args}) RETURNS void LANGUAGE sql AS ''`);
    await open().insert(sampleClicks(10));
    // The process is killed here, before the second transaction; its successor meets nothing but duplicates.
    await database.sql.unsafe("DROP FUNCTION add_roll_ups; ALTER FUNCTION add_later RENAME TO add_roll_ups");
    expect(await faults()).not.toEqual([]);
  });
});
