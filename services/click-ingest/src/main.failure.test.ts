import { EventEmitter, once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import {
  createTestDatabase,
  type RunningService,
  startFaultProxy,
  startService,
  type TestDatabase,
  terminateConnections,
  until,
} from "@linkfence/testkit";
import { postBatch, sendUntilAnswered } from "./test-support/resending-sender.ts";
import { sampleClicks } from "./test-support/sample-clicks.ts";
import { scrapeLedger } from "./test-support/scrape.ts";

let database: TestDatabase;
const services: RunningService[] = [];

beforeEach(async () => {
  database = await createTestDatabase("stats");
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.stop()));
  await database.drop();
});

async function start(env: Record<string, string> = {}): Promise<RunningService> {
  const service = await startService("click-ingest", { STATS_DATABASE_URL: database.url, ...env });
  services.push(service);
  return service;
}

async function storedIds(): Promise<string[]> {
  const rows = await database.sql<{ click_id: string }[]>`SELECT click_id FROM click ORDER BY click_id`;
  return rows.map(({ click_id }) => click_id);
}

const idsOf = (clicks: readonly Click[]) => clicks.map(({ id }) => id).sort();

describe("every connection terminated by the server", () => {
  test("while idle costs nothing: the next batch is stored", async () => {
    const service = await start();
    await postBatch(service.url, sampleClicks(3));
    await fetch(`${service.url}/v1/links/sample/stats`);
    expect(await terminateConnections(database)).toBeGreaterThanOrEqual(2);
    await service.logged(({ message }) => message === "a database connection was closed");
    expect(await postBatch(service.url, sampleClicks(3))).toMatchObject({ inserted: 3 });
    expect((await fetch(`${service.opsUrl}/readyz`)).status).toBe(200);
    expect(await storedIds()).toHaveLength(6);
  });

  test("under load leaves every click stored once, and the ledger without a gap", async () => {
    const service = await start();
    const batches = Array.from({ length: 120 }, () => sampleClicks(100));
    const queue = [...batches];
    const answers = new EventEmitter();
    let answered = 0;
    const sender = async () => {
      for (let batch = queue.shift(); batch; batch = queue.shift()) {
        const { inserted, duplicate } = await sendUntilAnswered(service.url, batch);
        expect(inserted + duplicate).toBe(100);
        answered += 1;
        answers.emit("answer");
      }
    };
    const senders = Promise.all([1, 2, 3, 4].map(sender));
    let terminated = 0;
    while (answered < batches.length - 8) {
      const next = once(answers, "answer");
      terminated += await terminateConnections(database);
      const { missing } = await scrapeLedger(service.opsUrl);
      expect(missing).toBe(0);
      await next;
    }
    await senders;
    expect(terminated).toBeGreaterThan(5);
    expect(await storedIds()).toEqual(idsOf(batches.flat()));
    const { missing, inFlight, received, inserted, duplicate } = await scrapeLedger(service.opsUrl);
    expect([missing, inFlight]).toEqual([0, 0]);
    expect(received).toBeGreaterThanOrEqual(12_000);
    expect(inserted + duplicate).toBeGreaterThanOrEqual(12_000);
  });
});

describe("the process killed between commit and answer", () => {
  test("counts nothing twice when the sender sends the batch to its successor", async () => {
    // Storing waits, inside its transaction, for a lock that the test holds; this trigger has no lock timeout.
    await database.sql.unsafe(`
      CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
      CREATE TRIGGER wait_for_test AFTER INSERT ON click FOR EACH STATEMENT EXECUTE FUNCTION wait_for_test();`);
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    const first = await start({ STATS_DATABASE_URL: proxy.through(database.url), QUERY_TIMEOUT_MS: "15000" });
    const clicks = sampleClicks(100);
    const lost = await database.sql.begin(async (sql) => {
      await sql`SELECT pg_advisory_xact_lock(1)`;
      const answer = postBatch(first.url, clicks);
      await until(async () => {
        const waiting = await database.sql`
          SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted`;
        return waiting.length === 1;
      });
      // The transaction will commit; the proxy keeps its answer from the process.
      proxy.set("hang");
      return { answer };
    });
    await until(async () => (await storedIds()).length === 100);
    first.kill("SIGKILL");
    expect(await lost.answer).toBeUndefined();
    expect(await first.exited).toEqual({ code: null, signal: "SIGKILL" });

    const second = await start();
    expect(await sendUntilAnswered(second.url, clicks)).toEqual({
      received: 100,
      inserted: 0,
      duplicate: 100,
      deadLettered: 0,
      refused: 0,
    });
    expect(await storedIds()).toEqual(idsOf(clicks));
    await proxy.close();
  });
});

describe("SIGTERM", () => {
  test("under load ends the process with 0, and every answered click is stored", async () => {
    const service = await start();
    const answered: Click[] = [];
    let stopping = false;
    let batches = 0;
    const sender = async () => {
      for (;;) {
        const clicks = sampleClicks(200);
        const result = await postBatch(service.url, clicks);
        if (result) answered.push(...clicks);
        else if (stopping) return;
        batches += 1;
      }
    };
    const senders = Promise.all([1, 2, 3, 4, 5, 6].map(sender));
    await until(async () => batches >= 30);
    stopping = true;
    service.kill("SIGTERM");
    expect(await service.exited).toEqual({ code: 0, signal: null });
    await senders;
    expect(answered.length).toBeGreaterThanOrEqual(30 * 200);
    const stored = new Set(await storedIds());
    expect(answered.filter(({ id }) => !stored.has(id))).toEqual([]);
    expect(service.records().some(({ message }) => message === "stopped")).toBe(true);
  });

  test("with the database away ends the process with 0 within the deadline of the waiting batch, answered 503", async () => {
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    const service = await start({ STATS_DATABASE_URL: proxy.through(database.url), WRITE_TIMEOUT_MS: "1000" });
    proxy.set("hang");
    const body = JSON.stringify({ sender: "test", clicks: sampleClicks(10) });
    const headers = { "Content-Type": "application/json" };
    const waiting = fetch(`${service.url}/v1/clicks`, { method: "POST", headers, body });
    await until(async () => (await scrapeLedger(service.opsUrl)).inFlight === 10);
    service.kill("SIGTERM");
    expect((await waiting).status).toBe(503);
    expect(await service.exited).toEqual({ code: 0, signal: null });
    await proxy.close();
  });
});

describe("a database that falls silent", () => {
  test("gives batches back at their deadline, and stores them once it answers again", async () => {
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    const env = { STATS_DATABASE_URL: proxy.through(database.url), WRITE_TIMEOUT_MS: "500", QUERY_TIMEOUT_MS: "300" };
    const service = await start(env);
    const clicks = sampleClicks(10);
    await sendUntilAnswered(service.url, sampleClicks(10));
    proxy.set("hang");
    expect(await postBatch(service.url, clicks)).toBeUndefined();
    expect((await fetch(`${service.url}/v1/links/sample/stats`)).status).toBe(503);
    proxy.set("pass");
    await sendUntilAnswered(service.url, clicks);
    expect(await storedIds()).toHaveLength(20);
    expect(await scrapeLedger(service.opsUrl)).toMatchObject({ missing: 0, inFlight: 0 });
    await proxy.close();
  });
});

describe("readers of statistics that all wait", () => {
  test("do not keep clicks from being stored", async () => {
    const service = await start({ DATABASE_POOL_MAX: "2", QUERY_TIMEOUT_MS: "3000" });
    // From here on it knows the day.
    await sendUntilAnswered(service.url, sampleClicks(1));
    // Storing goes round the locked table, so that the lock holds up the readers alone.
    const [storing] = await database.sql<{ args: string }[]>`
      SELECT pg_get_function_identity_arguments('store_counted_clicks'::regproc) AS args`;
    await database.sql.unsafe(`
      CREATE TABLE elsewhere (click_id uuid);
      CREATE OR REPLACE FUNCTION store_counted_clicks(${storing?.args})
      RETURNS uuid[] LANGUAGE sql AS $$ INSERT INTO elsewhere SELECT unnest(p_ids); SELECT '{}'::uuid[] $$`);
    await database.sql.begin(async (sql) => {
      await sql`LOCK TABLE click_hour IN ACCESS EXCLUSIVE MODE`;
      const readers = Array.from({ length: 150 }, () => fetch(`${service.url}/v1/links/sample/stats`));
      await until(async () => (await database.sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length === 2);
      expect(await postBatch(service.url, sampleClicks(10))).toMatchObject({ inserted: 10 });
      const statuses = (await Promise.all(readers)).map(({ status }) => status);
      expect(new Set(statuses)).toEqual(new Set([503]));
    });
    expect((await fetch(`${service.url}/v1/links/sample/stats`)).status).toBe(200);
  });
});
