import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import { createDatabase, type Database, DeadlineExceeded } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { classify } from "../domain/classify.ts";
import { cleanText } from "../domain/click.ts";
import { openClickStore } from "../test-support/open-store.ts";
import { newClickId, SAMPLE_AT, sampleClick, sampleClicks } from "../test-support/sample-clicks.ts";

let database: TestDatabase;
let pool: Database;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  // Five times the lock timeout, so that what ends a wait for a lock is the lock timeout and nothing else.
  pool = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 1000 });
});
beforeEach(async () => {
  await database.sql`TRUNCATE click`;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const insert = async (clicks: readonly Click[]) => (await openClickStore(pool).insert(clicks)).fresh;
const countRows = async () => (await database.sql`SELECT count(*)::int AS n FROM click`)[0]?.n;

describe("storing clicks", () => {
  test("keeps every field, the time to the millisecond", async () => {
    const about = { version: Number.MAX_SAFE_INTEGER, referrerHost: "ü.example", owner: "NULL", country: "DE" };
    const full = sampleClick({ code: "NULL", ...about, prefetch: true });
    const bare = sampleClick({ at: SAMPLE_AT - 86_400_000, referrerHost: null, userAgent: null });
    expect(await insert([full, bare])).toEqual(new Set([full.id, bare.id]));
    const rows = await database.sql`
      SELECT click_id, code, link_version::text, clicked_at, referrer_host, owner, country, prefetch, bot, browser, os,
             device FROM click ORDER BY clicked_at`;
    const expected = [bare, full].map((click) => ({
      click_id: click.id,
      code: click.code,
      link_version: String(click.version),
      clicked_at: new Date(click.at),
      referrer_host: click.referrerHost ?? "",
      owner: click.owner ?? null,
      country: click.country ?? "",
      prefetch: click.prefetch ?? false,
      ...classify(click),
    }));
    expect([...rows]).toEqual(expected);
  });

  test("keeps any cleaned text as it is", async () => {
    const anyText = fc.string({
      unit: fc.integer({ min: 0, max: 0xffff }).map((n) => String.fromCharCode(n)),
      maxLength: 200,
    });
    const texts = fc.sample(anyText, 500).map(cleanText);
    const clicks = texts.map((referrerHost) => sampleClick({ referrerHost }));
    await insert(clicks);
    const rows = await database.sql`SELECT click_id, referrer_host FROM click`;
    const stored = new Map(rows.map((row) => [row.click_id, row.referrer_host]));
    expect(clicks.map(({ id }) => stored.get(id))).toEqual(texts);
  });

  test("again returns no id and adds no row", async () => {
    const clicks = sampleClicks(1000);
    expect((await insert(clicks)).size).toBe(1000);
    expect((await insert(clicks)).size).toBe(0);
    expect(await countRows()).toBe(1000);
  });

  test("with one id twice adds one row", async () => {
    const click = sampleClick();
    expect(await insert([click, sampleClick(), click])).toHaveProperty("size", 2);
    expect(await countRows()).toBe(2);
  });

  test("without the rule about ids, as a control, counts a repeated batch twice", async () => {
    await database.sql`CREATE TABLE naive (LIKE click INCLUDING DEFAULTS)`;
    const clicks = sampleClicks(10);
    const naiveInsert = () => database.sql`
      INSERT INTO naive (click_id, code, link_version, clicked_at)
      SELECT id, 'sample', 1, now() FROM unnest(${clicks.map(({ id }) => id)}::uuid[]) AS id`;
    await naiveInsert();
    await naiveInsert();
    expect(await database.sql`SELECT * FROM naive`).toHaveLength(20);
  });

  test.each([
    ["NUL in the referrer", { referrerHost: "a\0b" }, "22021"],
    ["an invalid UUID", { id: "not-a-uuid" }, "22P02"],
    ["an id with a comma, which must not shift its neighbours", { id: `${newClickId()},x` }, "22P02"],
    ["the year 300000", { at: 9_404_726_400_000_000 }, "22008"],
    ["a version beyond bigint", { version: 1e300 }, "22P02"],
    ["an empty code", { code: "" }, "23514"],
    ["a referrer that is too long", { referrerHost: "x".repeat(256) }, "23514"],
  ])("with %s fails whole, by an SQLSTATE that names the data", async (_case, changes, sqlstate) => {
    await expect(insert([sampleClick(), { ...sampleClick(), ...changes }])).rejects.toMatchObject({ code: sqlstate });
    expect(await countRows()).toBe(0);
  });
});

describe("a locked table", () => {
  /** Runs `work` while another session holds the strongest lock. */
  const whileLocked = (table: string, work: () => Promise<void>) =>
    database.sql.begin(async (sql) => {
      await sql`LOCK TABLE ${sql(table)} IN ACCESS EXCLUSIVE MODE`;
      await work();
    });

  test.each(["click", "click_day", "click_hour", "the day's partition"])(
    "named %s makes storing fail by lock timeout, before its deadline",
    async (name) => {
      const clicks = sampleClicks(3);
      await insert(clicks.slice(0, 1));
      const day = new Date(SAMPLE_AT).toISOString().slice(0, 10).replaceAll("-", "");
      const table = name.startsWith("click") ? name : `click_${day}`;
      await whileLocked(table, () => expect(insert(clicks)).rejects.toMatchObject({ code: "55P03" }));
      expect((await insert(clicks)).size).toBe(2);
    },
  );

  test("holds a statement without the lock timeout, as a control, until its deadline", async () => {
    const plain = () =>
      pool.run((sql) => sql`INSERT INTO click VALUES (${newClickId()}, 1, now()) ON CONFLICT DO NOTHING`);
    await whileLocked("click", () => expect(plain()).rejects.toBeInstanceOf(DeadlineExceeded));
  });
});

describe("two writers with the same clicks in opposite order", () => {
  test("never deadlock, and each click is one row", async () => {
    const store = openClickStore(pool);
    for (let round = 0; round < 20; round += 1) {
      const clicks = sampleClicks(200);
      const [one, other] = await Promise.all([store.insert(clicks), store.insert(clicks.toReversed())]);
      expect(one.fresh.size + other.fresh.size).toBe(200);
    }
    expect(await countRows()).toBe(4000);
  });
});

describe("the schema", () => {
  test("is found where it is, and missed where it is not", async () => {
    expect(await openClickStore(pool).hasSchema(1000)).toBe(true);
    const empty = await createTestDatabase("empty");
    const bare = createDatabase({ url: empty.url, applicationName: "test", max: 1, queryTimeoutMs: 1000 });
    expect(await openClickStore(bare).hasSchema(1000)).toBe(false);
    await bare.close();
    await empty.drop();
  });
});
