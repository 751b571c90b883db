// What patches/postgres@3.4.9.patch mends: each of these fails with the driver as it is published.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  createTestDatabase,
  startFaultProxy,
  type TestDatabase,
  terminateConnections,
  until,
} from "@linkfence/testkit";
import { createDatabase, type Database } from "./connect.ts";
import { classifyError } from "./errors.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase("empty");
  await database.sql`CREATE TABLE kept (n int)`;
});
afterAll(() => database.drop());

/** A pool of one connection, and a promise of the first one that it loses. */
function open(url = database.url): { db: Database; lost: Promise<void> } {
  let onWarning: () => void = () => {};
  const lost = new Promise<void>((resolve) => {
    onWarning = resolve;
  });
  const db = createDatabase({ url, applicationName: "test", max: 1, queryTimeoutMs: 5000, onWarning });
  return { db, lost };
}

const kept = async () => (await database.sql<{ n: number }[]>`SELECT n FROM kept ORDER BY n`).map(({ n }) => n);
/** Backends in the middle of a statement that waits. */
async function sleepers(): Promise<number[]> {
  const rows = await database.sql<{ pid: number }[]>`
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND query LIKE 'SELECT pg_sleep%'`;
  return rows.map(({ pid }) => pid);
}

/** A backend whose client is gone sleeps on. */
async function endSleepers(): Promise<void> {
  for (let left = await sleepers(); left.length > 0; left = await sleepers())
    await database.sql`SELECT pg_terminate_backend(pid) FROM unnest(${left}::int[]) pid`;
}

test("a transaction that lost its connection sends nothing more, on no connection, and ends nobody's process", async () => {
  const { db, lost } = open();
  const after: unknown[] = [];
  const work = db.transaction(async (sql) => {
    await sql`INSERT INTO kept VALUES (1)`;
    await terminateConnections(database);
    await lost;
    // At once the slot is empty; later it holds a new connection, which is somebody else's.
    after.push(await sql`INSERT INTO kept VALUES (2)`.catch(classifyError));
    await db.run((other) => other`SELECT 1`);
    after.push(await sql`INSERT INTO kept VALUES (3)`.catch(classifyError));
  });
  await expect(work).rejects.toMatchObject({ code: "CONNECTION_CLOSED" });
  expect(await db.run((sql) => sql`SELECT 1 AS one`)).toHaveLength(1);
  await until(() => after.length >= 2);
  expect(after).toEqual(["unavailable", "unavailable"]);
  expect(await kept()).toEqual([]);
  await db.close();
});

test("a connection that is reset under a transaction leaves nothing behind for the next one", async () => {
  const proxy = await startFaultProxy(Number(new URL(database.url).port));
  const { db } = open(proxy.through(database.url));
  for (let round = 0; round < 5; round += 1) {
    const work = db.transaction((sql) => sql`SELECT pg_sleep(4)`).catch(classifyError);
    await until(async () => (await sleepers()).length !== 0);
    proxy.reset();
    expect(await work).toBe("unavailable");
    const answers = await Promise.all(
      [1, 2, 3].map((n) => db.read((sql) => sql<{ n: number }[]>`SELECT ${n}::int AS n`)),
    );
    expect(answers.map(([row]) => row?.n)).toEqual([1, 2, 3]);
    await endSleepers();
  }
  expect(db.stats()).toMatchObject({ deadlines: 0, poolsReplaced: 0, pending: 0 });
  await db.close();
  await proxy.close();
});

test("rows that came before an error are not counted into the next result", async () => {
  const { db } = open();
  await expect(db.run((sql) => sql`SELECT 1 / (3 - n) FROM generate_series(1, 5) n`)).rejects.toMatchObject({
    code: "22012",
  });
  expect(await db.run((sql) => sql`SELECT 7 AS seven`)).toEqual([{ seven: 7 }]);
  await db.close();
});

test("a call that is given up behind another one on its connection leaves everybody else their own answer", async () => {
  const db = createDatabase({
    ...{ url: database.url, applicationName: "test", max: 1, queryTimeoutMs: 5000, pipelining: true },
  });
  const ask = (n: number, timeoutMs?: number) =>
    db.read((sql) => sql<{ n: number }[]>`SELECT ${n}::int AS n`, timeoutMs);
  await ask(0); // prepared on the one connection there is
  const first = db.run((sql) => sql`SELECT pg_sleep(0.3)`);
  const givenUp = ask(1, 50).catch(classifyError);
  const others = [2, 3, 4, 5].map((n) => ask(n));
  expect(await givenUp).toBe("unavailable");
  await first;
  expect((await Promise.all(others)).map(([row]) => row?.n)).toEqual([2, 3, 4, 5]);
  expect((await ask(6))[0]?.n).toBe(6);
  await db.close();
});
