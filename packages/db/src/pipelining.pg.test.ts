// Who waits for a free connection waits for no lock but its own.
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { createDatabase } from "./connect.ts";

/** A thousand times what the calls take. Who is not answered by then waits for the lock. */
const PATIENCE_MS = 1000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase("empty");
});
afterAll(() => database.drop());

/**
 * One of two connections waits for a lock that is held until the end, and a few calls more come at once than the other
 * one can take. Returns how many of them were answered while the lock was held.
 */
async function countAnswered(pipelining: boolean): Promise<number> {
  const db = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 20_000, pipelining });
  let answered = 0;
  let before = 0;
  const calls: Promise<unknown>[] = [];
  await Promise.all([1, 2].map(() => db.run((sql) => sql`SELECT pg_sleep(0.05)`))); // both connections are open now
  await database.sql.begin(async (holder) => {
    await holder`SELECT pg_advisory_xact_lock(1)`;
    calls.push(db.run((sql) => sql`SELECT pg_advisory_xact_lock(1)`));
    for (let waiting = 0; waiting === 0; ) {
      const [row] = await holder<{ n: number }[]>`
        SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (
          SELECT oid FROM pg_database WHERE datname = current_database())`;
      waiting = row?.n ?? 0;
    }
    const quick = Array.from({ length: 6 }, () => db.run((sql) => sql`SELECT 1`).then(() => (answered += 1)));
    calls.push(...quick);
    await Promise.race([Promise.all(quick), pause(PATIENCE_MS)]);
    before = answered;
  });
  await Promise.all(calls);
  await db.close();
  return before;
}

test("without pipelining every call is answered while another one waits for a lock", async () => {
  expect(await countAnswered(false)).toBe(6);
});

test("control: with it, some of them wait for the lock as well", async () => {
  expect(await countAnswered(true)).toBeLessThan(6);
});
