// Requests that wait for one another's key: who of them asks the database, and what the others are told.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import { createCounts } from "../counts.ts";
import { createIdempotency, type KeyedRow } from "./idempotency.ts";

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

/** Far more than any wait here takes that comes to its end. */
const LONG_MS = 30_000;
const start = (over: { waitMs?: number; maxWaiting?: number } = {}) =>
  createIdempotency({ db, counts: createCounts(), waitMs: LONG_MS, maxWaiting: 2, queryTimeoutMs: 10_000, ...over });
const request = (key: string, fill = 1) => ({
  ...{ owner: "ann", call: "POST /v1/links" as const, key },
  digest: new Uint8Array(32).fill(fill),
});

describe("of two hundred requests with one key", () => {
  const MANY = 200;
  /** Sends them all to one store; `attempt` says what becomes of each time that the database is asked. */
  function race(attempt: (n: number) => Promise<KeyedRow | undefined>, digests = (_n: number) => 1) {
    let asked = 0;
    const idempotency = start();
    const all = Array.from({ length: MANY }, (_, n) =>
      idempotency.once(request("raced", digests(n)), () => attempt(asked++)),
    );
    return Promise.allSettled(all).then((ends) => ({ ends, asked }));
  }
  const created: KeyedRow = { outcome: "created", status: 201, location: null, body: "{}" };

  test("one asks the database where that goes well", async () => {
    const { ends, asked } = await race(async () => created);
    const values = ends.map((end) => (end.status === "fulfilled" ? end.value?.replayed : end.reason));
    expect([values, asked]).toEqual([[false, ...Array(MANY - 1).fill(true)], 1]);
  });

  test("each failure is one caller's, and the next one tries", async () => {
    const { ends, asked } = await race(async (n) => {
      if (n < 3) throw new Error(`lost ${n}`);
      return created;
    });
    expect(ends.slice(0, 3).map((end) => end.status === "rejected" && end.reason.message)).toEqual([
      "lost 0",
      "lost 1",
      "lost 2",
    ]);
    expect([ends.filter(({ status }) => status === "fulfilled").length, asked]).toEqual([MANY - 3, 4]);
  });

  test("those with another body are refused by what the first one kept, and are asked for nothing", async () => {
    const { ends, asked } = await race(
      async () => created,
      (n) => n % 2,
    );
    const refused = ends.filter((end) => end.status === "rejected" && end.reason.code === "idempotency-key-reused");
    expect([refused.length, asked]).toEqual([MANY / 2, 1]);
  });

  test("each tries for itself where nothing was kept", async () => {
    const { ends, asked } = await race(async () => undefined);
    expect([new Set(ends.map((end) => end.status === "fulfilled" && end.value)), asked]).toEqual([
      new Set([undefined]),
      MANY,
    ]);
  });
});

/** Holds keys as a transaction of another process does that has not ended yet. */
async function holding<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
  let result: T | undefined;
  await database.sql.begin(async (sql) => {
    for (const key of keys)
      await sql`SELECT * FROM take_idempotency_key('ann', 'POST /v1/links', ${key}, ${Buffer.alloc(32)}, 0)`;
    result = await work();
  });
  return result as T;
}

describe("a key in use by another process", () => {
  test("is taken soon after it came free, also where no connection may wait", async () => {
    const { find, stats } = start({ maxWaiting: 0 });
    const { waiting } = await holding(["freed"], async () => {
      const found = find(request("freed"));
      await until(() => stats().memory !== 0);
      return { waiting: found };
    });
    expect(await waiting).toBeUndefined();
  });

  test("is taken soon after it came free, also behind others that stay locked", async () => {
    const { find, stats } = start({ maxWaiting: 1, waitMs: 10_000 });
    await holding(["stuck-1", "stuck-2"], async () => {
      const stuck = Promise.allSettled([find(request("stuck-1")), find(request("stuck-2"))]);
      await until(() => stats().lock !== 0);
      const waiting = await holding(["freed-2"], async () => {
        const found = find(request("freed-2"));
        await until(() => stats().memory >= 2);
        return { found };
      });
      expect(await waiting.found).toBeUndefined();
      // The others were waiting all the time.
      expect(stats()).toEqual({ lock: 1, memory: 1 });
      const ends = await stuck;
      const codes = ends.map((end) => end.status === "rejected" && end.reason.code);
      expect(codes).toEqual(["idempotency-key-in-use", "idempotency-key-in-use"]);
    });
    expect(stats()).toEqual({ lock: 0, memory: 0 });
  });
});
