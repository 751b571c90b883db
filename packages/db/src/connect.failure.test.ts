import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createTestDatabase, startFaultProxy, type TestDatabase, until } from "@linkfence/testkit";
import { createDatabase } from "./connect.ts";
import { classifyError, DeadlineExceeded, PoolOverloaded } from "./errors.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase("empty");
});
afterAll(() => database.drop());

const open = (options: Partial<Parameters<typeof createDatabase>[0]> = {}) =>
  createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 300, ...options });

describe("a database call", () => {
  test("ends at its deadline, and the connection serves the next one", async () => {
    const db = open({ max: 1 });
    await expect(db.run((sql) => sql`SELECT pg_sleep(30)`)).rejects.toBeInstanceOf(DeadlineExceeded);
    // A statement may meet the cancel that was meant for the one before it: what changes nothing is then asked again.
    const [row] = await db.read((sql) => sql<{ one: number }[]>`SELECT 1 AS one`, 5000);
    expect(row?.one).toBe(1);
    expect(db.stats()).toMatchObject({ deadlines: 1, poolsReplaced: 0, pending: 0 });
    await db.close();
  });

  test("ends at its deadline when the peer falls silent; all its sockets are destroyed, and new ones serve", async () => {
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    let onWarning: (message: string) => void = () => {};
    const replaced = new Promise<void>((resolve) => {
      onWarning = (message) => (message.includes("replaced") ? resolve() : undefined);
    });
    const db = open({ url: proxy.through(database.url), onWarning });
    await Promise.all([1, 2].map(() => db.run((sql) => sql`SELECT pg_sleep(0.05)`, 5000)));
    const before = proxy.connections();
    proxy.set("hang");
    const calls = await Promise.allSettled([1, 2, 3].map(() => db.run((sql) => sql`SELECT 1`)));
    for (const call of calls) expect(call).toMatchObject({ reason: expect.any(DeadlineExceeded) });
    await replaced;
    await until(() => proxy.connections() === 0);
    proxy.set("pass");
    await db.run((sql) => sql`SELECT 1`, 5000);
    expect(before).toBe(2);
    expect(db.stats()).toMatchObject({ poolsReplaced: 1, deadlines: 3, pending: 0 });
    await db.close();
    await proxy.close();
  });

  test("that opens a connection slower than its deadline does not cost the pool that connection", async () => {
    const target = Number(new URL(database.url).port);
    // Between the deadline of the call (300 ms) and the driver's own for connecting (1 s).
    const slow = createServer((client) => {
      const server = connect(target, "127.0.0.1");
      for (const socket of [client, server]) socket.on("error", () => {});
      setTimeout(() => client.pipe(server).pipe(client), 600);
    });
    await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
    const url = new URL(database.url);
    url.port = String((slow.address() as AddressInfo).port);
    let onWarning: (message: string) => void = () => {};
    const replaced = new Promise<void>((resolve) => {
      onWarning = (message) => (message.includes("replaced") ? resolve() : undefined);
    });
    const db = open({ url: url.href, max: 1, onWarning });
    await expect(db.run((sql) => sql`SELECT 1`)).rejects.toBeInstanceOf(DeadlineExceeded);
    await replaced;
    const [row] = await db.run((sql) => sql<{ one: number }[]>`SELECT 1 AS one`, 10_000);
    expect(row?.one).toBe(1);
    await db.close();
    await new Promise((resolve) => slow.close(resolve));
  });

  test("is refused at once when too many are waiting", async () => {
    const db = open({ max: 1, maxPending: 2 });
    const slow = [1, 2].map(() => db.run((sql) => sql`SELECT pg_sleep(0.05)`, 5000));
    await expect(db.run((sql) => sql`SELECT 1`)).rejects.toBeInstanceOf(PoolOverloaded);
    await Promise.all(slow);
    expect(db.stats()).toMatchObject({ overloaded: 1, pending: 0 });
    await db.close();
  });

  test("rejects when its commit fails, although its rows had come back", async () => {
    await database.sql.unsafe(`
      CREATE TABLE late (n int);
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'too late'; END $$;
      CREATE CONSTRAINT TRIGGER late_check AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION refuse();`);
    const db = open();
    await expect(db.run((sql) => sql`INSERT INTO late VALUES (1) RETURNING n`)).rejects.toMatchObject({
      code: "P0001",
    });
    expect(await database.sql`SELECT * FROM late`).toHaveLength(0);
    await db.close();
  });

  test("fails as unavailable when its connection is killed; one that only reads is repeated", async () => {
    const own = await createTestDatabase("empty");
    const db = open({ url: own.url, queryTimeoutMs: 20_000 });
    const sleepers = async () => {
      const rows =
        await own.sql`SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'`;
      return rows.map((row) => row.pid as number);
    };
    const killSleeper = async () => {
      for (;;) {
        const [pid] = await sleepers();
        if (pid !== undefined) return own.sql`SELECT pg_terminate_backend(${pid})`;
      }
    };
    const written = db.run((sql) => sql`SELECT pg_sleep(15)`).catch(classifyError);
    await killSleeper();
    expect(await written).toBe("unavailable");
    // The next statement meets a driver that still holds the message of the lost connection.
    expect((await db.run((sql) => sql<{ one: number }[]>`SELECT 1 AS one`))[0]?.one).toBe(1);
    const read = db.read((sql) => sql<{ one: number }[]>`SELECT pg_sleep(2), 1 AS one`);
    await killSleeper();
    expect((await read)[0]?.one).toBe(1);
    await db.close();
    await own.drop();
  });

  test("in a transaction is rolled back when the work fails", async () => {
    const db = open({ queryTimeoutMs: 5000 });
    await db.run((sql) => sql`CREATE TABLE kept (n int)`);
    const work = db.transaction(async (sql) => {
      await sql`INSERT INTO kept VALUES (1)`;
      throw new Error("changed my mind");
    });
    await expect(work).rejects.toThrow("changed my mind");
    expect(await database.sql`SELECT * FROM kept`).toHaveLength(0);
    await db.close();
  });
});

describe("without a server", () => {
  test("the next attempt is never more than half a second away, however long the outage", async () => {
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    const db = open({ url: proxy.through(database.url), queryTimeoutMs: 5000 });
    proxy.set("refuse");
    // The driver's own wait is a second after five failures and twenty after eight.
    for (let failures = 0; failures < 12; failures += 1) {
      await expect(db.run((sql) => sql`SELECT 1`)).rejects.not.toBeInstanceOf(DeadlineExceeded);
    }
    proxy.set("pass");
    expect(await db.run((sql) => sql`SELECT 1`)).toHaveLength(1);
    expect(db.stats()).toMatchObject({ deadlines: 0, poolsReplaced: 0 });
    await db.close();
    await proxy.close();
  });

  test("a call fails as unavailable, within its deadline", async () => {
    const db = open({ url: "postgres://u:p@127.0.0.1:1/db" });
    const error = await db.run((sql) => sql`SELECT 1`).catch((reason: unknown) => reason);
    expect(classifyError(error)).toBe("unavailable");
    await db.close();
  });
});
