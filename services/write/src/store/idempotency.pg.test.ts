// What keys leave in the database, who may touch it, and what happens without the lock.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, runRights, type TestDatabase, until } from "@linkfence/testkit";
import { createCounts } from "../counts.ts";
import { draftLink } from "../domain/link.ts";
import { createIdempotency, type KeyedCall } from "./idempotency.ts";
import { createKeyedLinkStore } from "./keyed-links.ts";

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "test", max: 10, queryTimeoutMs: 10_000 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

let codes = 0;
const newCode = () => `keyed-${codes++}`;
const author = { owner: "ann", keyId: "k" };
const draft = (alias: string | null = null) =>
  draftLink({ target: "https://example.com/", alias }, { ownHosts: [], privateHosts: "allow", now: 0 });
const request = (key: string, call: KeyedCall = "POST /v1/links", fill = 1) => ({
  ...{ owner: "ann", call, key },
  digest: new Uint8Array(32).fill(fill),
});

/** Far more than any wait here takes that comes to its end. */
const LONG_MS = 30_000;

function store(code = newCode, pool = db, waits = { waitMs: 200, maxWaiting: 2 }) {
  const counts = createCounts();
  const idempotency = createIdempotency({ db: pool, counts, ...waits, queryTimeoutMs: 10_000 });
  const shortUrlBase = "https://sho.example/";
  const links = createKeyedLinkStore({ db: pool, idempotency, newCode: code, counts, shortUrlBase });
  return { counts, idempotency, links };
}

const countLinks = async () =>
  (await database.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM link`)[0]?.n ?? Number.NaN;

describe("the control: who looks first and then creates,", () => {
  test("two hundred times at once with one key, makes two hundred links", async () => {
    const key = "looked-up-first";
    const look = () => db.run((sql) => sql`SELECT body FROM idempotency_record WHERE key = ${key}`);
    /** A key that conflicts is taken for a success. */
    const create = () =>
      db.transaction(async (sql) => {
        await sql`INSERT INTO link (code, target, owner, kind, created_by)
          VALUES (${newCode()}, 'https://example.com/', 'ann', 'RANDOM', 'k')`;
        await sql`
          INSERT INTO idempotency_record (owner, call, key, request_digest, status, body)
          VALUES ('ann', 'POST /v1/links', ${key}, ${new Uint8Array(32)}, 201, '{}') ON CONFLICT DO NOTHING`;
      });
    const before = await countLinks();
    // All have looked before the first one creates, as it happens where they come at once.
    const found = await Promise.all(Array.from({ length: 200 }, look));
    await Promise.all(found.map((kept) => (kept.length === 0 ? create() : undefined)));
    expect((await countLinks()) - before).toBe(200);
  });

  test("the product makes one, whatever the store is that each of the two hundred goes through", async () => {
    const before = await countLinks();
    // Five processes share the database, and none of them knows the others.
    const options = { url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 };
    const pools = Array.from({ length: 5 }, () => createDatabase(options));
    const processes = pools.map((pool) => store(newCode, pool, { waitMs: LONG_MS, maxWaiting: 1 }));
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => {
        const keyed = { author, request: request("one-for-all") };
        return processes[n % 5]?.links.create(draft(), keyed);
      }),
    );
    for (const pool of pools) await pool.close();
    expect((await countLinks()) - before).toBe(1);
    expect(new Set(answers.map((answer) => answer?.body)).size).toBe(1);
    expect(answers.filter((answer) => answer?.replayed === false)).toHaveLength(1);
  });
});

describe("the control: where the answer is kept after the commit of the link,", () => {
  test("a process that dies between the two leaves a link that nobody is told of, and a repetition makes another", async () => {
    const before = await countLinks();
    const keep = (code: string) => database.sql`
      INSERT INTO idempotency_record (owner, call, key, request_digest, status, body)
      VALUES ('ann', 'POST /v1/links', 'kept-apart', ${new Uint8Array(32)}, 201, ${code})`;
    const createThenKeep = async (dies: boolean) => {
      const [held] = await database.sql<{ body: string }[]>`
        SELECT body FROM take_idempotency_key('ann', 'POST /v1/links', 'kept-apart', ${new Uint8Array(32)}, 0)`;
      if (held) return held.body;
      const [link] = await database.sql<{ code: string }[]>`
        INSERT INTO link (code, target, owner, kind, created_by)
        VALUES (${newCode()}, 'https://example.com/', 'ann', 'RANDOM', 'k') RETURNING code`;
      if (dies) return undefined;
      await keep(link?.code ?? "");
      return link?.code;
    };
    expect(await createThenKeep(true)).toBeUndefined();
    const again = await createThenKeep(false);
    expect(await createThenKeep(false)).toBe(again);
    expect((await countLinks()) - before).toBe(2);
  });
});

test("random codes that are taken are drawn again under the same key; five in a row bind nothing", async () => {
  await store(() => "taken-code").links.create(draft(), { author, request: request("first") });
  const drawn = ["taken-code", "taken-code", "free-code"];
  const lucky = store(() => drawn.shift() ?? "none-left");
  const answer = await lucky.links.create(draft(), { author, request: request("lucky") });
  expect([answer.location, lucky.counts.collisions]).toEqual(["/v1/links/free-code", 2]);
  const keyed = { author, request: request("unlucky") };
  const unlucky = store(() => "taken-code").links.create(draft(), keyed);
  await expect(unlucky).rejects.toMatchObject({ code: "code-space-exhausted" });
  expect((await store().links.create(draft(), keyed)).replayed).toBe(false);
});

test("an alias that is created under a key is told to those who saw no such code, once", async () => {
  const heard: string[] = [];
  const { unlisten } = await database.sql.listen("link_created", (payload) => heard.push(payload));
  const keyed = { author, request: request("hinted") };
  await store().links.create(draft("hinted"), keyed);
  await store().links.create(draft("hinted"), keyed);
  await store().links.create(draft(), { author, request: request("not-hinted") });
  await database.sql`SELECT pg_notify('link_created', 'last')`;
  await until(() => heard.at(-1) === "last");
  await unlisten();
  expect(heard).toEqual(["", "last"]);
});

test("a batch that fails before its end leaves neither links nor an answer", async () => {
  const before = await countLinks();
  const keyed = { author, request: request("broken", "POST /v1/links:batch") };
  const fail = () => {
    throw new Error("the answer cannot be rendered");
  };
  await expect(store().links.createBatch([draft(), draft()], keyed, fail)).rejects.toThrow("cannot be rendered");
  expect(await countLinks()).toBe(before);
  expect((await store().links.createBatch([draft()], keyed, () => "{}")).replayed).toBe(false);
});

test("a record is kept for 24 hours by the database's clock, and not one microsecond longer than it says", async () => {
  const keyed = { author, request: request("day") };
  const first = await store().links.create(draft(), keyed);
  const [row] = await database.sql`
    SELECT extract(epoch FROM expires_at - clock_timestamp())::float AS left FROM idempotency_record WHERE key = 'day'`;
  expect(row?.left).toBeGreaterThan(86_400 - 60);
  expect(row?.left).toBeLessThanOrEqual(86_400);
  const set = (left: string) => database.sql`
    UPDATE idempotency_record SET expires_at = clock_timestamp() + ${left}::interval WHERE key = 'day'`;
  await set("1 minute");
  expect((await store().links.create(draft(), keyed)).location).toBe(first.location);
  await set("0");
  expect((await store().links.find(keyed.request))?.location).toBeUndefined();
  expect((await store().links.create(draft(), keyed)).location).not.toBe(first.location);
});

describe("the removal of expired records", () => {
  const insert = (prefix: string, count: number, age: string, owner = "bob") => database.sql`
    INSERT INTO idempotency_record (owner, call, key, request_digest, status, body, expires_at)
    SELECT ${owner}, 'POST /v1/links', ${prefix} || n, ${new Uint8Array(32)}, 201, '{}', clock_timestamp() + ${age}::interval
      FROM generate_series(1, ${count}::int) n`;
  const left = async () =>
    (await database.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM idempotency_record WHERE owner = 'bob'`)[0]?.n;

  test("takes as many as it may, the expired alone, and passes by what somebody else has locked", async () => {
    await insert("old-", 12, "-1 second");
    await insert("new-", 5, "1 hour");
    const { sweep } = store().idempotency;
    expect([await sweep(10), await left()]).toEqual([10, 7]);
    await database.sql.begin(async (sql) => {
      await sql`SELECT FROM idempotency_record WHERE owner = 'bob' AND expires_at < now() LIMIT 1 FOR UPDATE`;
      expect([await sweep(10), await left()]).toEqual([1, 6]);
    });
    expect([await sweep(10), await sweep(10), await left()]).toEqual([1, 0, 5]);
  });

  test("finds them by the index, however many there are", async () => {
    await insert("many-", 3000, "1 hour", "cat");
    await database.sql`ANALYZE idempotency_record`;
    const plan = await database.sql`
      EXPLAIN SELECT FROM idempotency_record WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT 500`;
    expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toContain("idempotency_record_expiry");
  });
});

describe("the role of the service", () => {
  test("creates, replays and sweeps, and may neither read nor change what is kept", async () => {
    const own = await createTestDatabase("main");
    try {
      await runRights(own.sql, "roles");
      await runRights(own.sql, "grants-main");
      const sql = await own.sql.reserve();
      await sql`SET ROLE linkfence_write`;
      const take = () =>
        sql`SELECT outcome FROM take_idempotency_key('ann', 'POST /v1/links', 'r', ${new Uint8Array(32)}, 10)`;
      expect(await take()).toHaveLength(0);
      await sql`INSERT INTO idempotency_record (owner, call, key, request_digest, status, location, body)
        VALUES ('ann', 'POST /v1/links', 'r', ${new Uint8Array(32)}, 201, NULL, '{}')`;
      expect(await take()).toEqual([{ outcome: "replayed" }]);
      await sql`SELECT sweep_idempotency_records(1)`;
      for (const forbidden of [
        "SELECT body FROM idempotency_record",
        "UPDATE idempotency_record SET body = '{}'",
        "DELETE FROM idempotency_record",
        "INSERT INTO idempotency_record (owner, call, key, request_digest, status, body, expires_at) VALUES ('ann', 'POST /v1/links', 'x', decode(repeat('00', 32), 'hex'), 201, '{}', 'infinity')",
      ])
        await expect(sql.unsafe(forbidden)).rejects.toMatchObject({ code: "42501" });
      await sql`RESET ROLE`;
      sql.release();
      const url = `${own.url}?options=${encodeURIComponent("-c role=linkfence_write")}`;
      const asService = createDatabase({ url, applicationName: "test", max: 2, queryTimeoutMs: 10_000 });
      try {
        const { links, idempotency } = store(newCode, asService);
        for (const replayed of [false, true]) {
          expect((await links.create(draft(), { author, request: request("one") })).replayed).toBe(replayed);
          const batch = { author, request: request("many", "POST /v1/links:batch") };
          expect((await links.createBatch([draft(), draft()], batch, () => "{}")).replayed).toBe(replayed);
        }
        expect(await idempotency.sweep(1)).toBe(0);
        const [row] = await asService.read((as) => as<{ role: string }[]>`SELECT current_user AS role`);
        expect(row?.role).toBe("linkfence_write");
      } finally {
        await asService.close();
      }
    } finally {
      await own.drop();
    }
  });
});

test("a wait for a key leaves the limits of the session as they were, whether it came to its end or not", async () => {
  await database.sql.begin(async (holder) => {
    await holder`SELECT * FROM take_idempotency_key('ann', 'POST /v1/links', 'limits', ${new Uint8Array(32)}, 0)`;
    await database.sql.begin(async (sql) => {
      await sql`SET LOCAL lock_timeout = '7s'`;
      const take = (key: string) =>
        sql`SELECT outcome FROM take_idempotency_key('ann', 'POST /v1/links', ${key}, ${new Uint8Array(32)}, 20)`;
      expect(await take("limits")).toEqual([{ outcome: "in-use" }]);
      expect(await take("other-limits")).toEqual([]);
      expect(await sql`SHOW lock_timeout`).toEqual([{ lock_timeout: "7s" }]);
    });
  });
});
