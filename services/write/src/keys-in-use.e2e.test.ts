// Creations whose Idempotency-Key another process has: how long they wait, and what that costs everybody else.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createHttpClient, readMetric, until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { createKeyedPost } from "./idempotency.fixture.ts";

/** Far above what a call takes on a busy machine: one that misses it is answered 503, which is not the point here. */
const QUERY_TIMEOUT_MS = 5000;
/** As main.ts computes it. */
const WAIT_MS = QUERY_TIMEOUT_MS + 3000;

let world: ApiWorld;
let post: ReturnType<typeof createKeyedPost>;
const http = createHttpClient(64);
let keys = 0;
let key: string;
beforeAll(async () => {
  world = await startApiWorld({ QUERY_TIMEOUT_MS: `${QUERY_TIMEOUT_MS}` });
  post = createKeyedPost(http, world.write.url, world.adminKey);
});
beforeEach(() => {
  key = `key-${keys++}`;
});
afterAll(async () => {
  http.close();
  await world.stop();
});

const problem = (body: string) => JSON.parse(body) as { code: string };

describe("a key in use elsewhere", () => {
  const awaited = (where: "lock" | "memory") =>
    readMetric(world.write, `linkfence_idempotency_keys_awaited{where="${where}"}`);

  /** Holds keys as a transaction of another process does that has not ended yet. */
  async function holding(names: readonly string[], work: () => Promise<void>): Promise<void> {
    await world.database.sql.begin(async (sql) => {
      for (const name of names)
        await sql`SELECT * FROM take_idempotency_key('admin', 'POST /v1/links', ${name}, ${Buffer.alloc(32)}, 0)`;
      await work();
    });
  }

  test("is waited for, and then refused with 409 that says when to try again; nobody else has to wait", async () => {
    const held = Array.from({ length: 8 }, (_, n) => `${key}-held-${n}`);
    await holding(held, async () => {
      let over = false;
      const startedAt = performance.now();
      const waiting = Promise.all(held.flatMap((name) => [post(name), post(name), post(name)])).finally(() => {
        over = true;
      });
      const locks: number[] = [];
      let others = 0;
      while (!over) {
        locks.push(await awaited("lock"));
        expect(await post(`${key}-${others++}`)).toMatchObject({ status: 201, replayed: undefined });
      }
      for (const answer of await waiting) {
        const { status, retryAfter, body } = answer;
        expect([status, problem(body).code, retryAfter]).toEqual([409, "idempotency-key-in-use", "2"]);
      }
      // The wait, and the deadline of a query before and after it.
      expect(performance.now() - startedAt).toBeLessThan(WAIT_MS + 2 * QUERY_TIMEOUT_MS);
      // Two of the ten connections wait for locks; the others serve everybody else.
      expect(Math.max(...locks)).toBe(2);
      expect(others).toBeGreaterThan(1);
    });
    expect(await awaited("memory")).toBe(0);
    for (const name of held) expect((await post(name)).status).toBe(201);
  });

  test("is waited for, and taken when it was given back unused", async () => {
    const isWaiting = async () => {
      const [row] = await world.database.sql<{ n: number }[]>`
        SELECT count(*)::int AS n FROM pg_locks l JOIN pg_database d ON d.oid = l.database
         WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()`;
      return row?.n === 1;
    };
    let answer: ReturnType<typeof post> | undefined;
    await holding([key], async () => {
      answer = post(key);
      await until(() => isWaiting());
    });
    expect(await answer).toMatchObject({ status: 201, replayed: undefined });
  });
});
