import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import { createApp } from "./app.ts";
import { createIntake, type Intake } from "./queue/intake.ts";
import { createLedger, type Ledger } from "./queue/ledger.ts";
import { createWriter, type Writer } from "./queue/writer.ts";
import { createStatsStore } from "./store/stats.ts";
import { openClickStore, openDeadClicks } from "./test-support/open-store.ts";
import { createQuietLogger } from "./test-support/quiet-logger.ts";
import { postBatch } from "./test-support/resending-sender.ts";
import { sampleClick, sampleClicks } from "./test-support/sample-clicks.ts";

let database: TestDatabase;
let pool: Database;
let intake: Intake;
let ledger: Ledger;
let writer: Writer;
let server: Server;
let url: string;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 2000 });
});
beforeEach(async () => {
  await database.sql`TRUNCATE click, dead_click`;
  ledger = createLedger();
  intake = createIntake({ maxClicks: 20_000, maxBytes: 100_000_000, deadlineMs: 10_000 });
  const logger = createQuietLogger();
  writer = createWriter({ intake, insert: openClickStore(pool).insert, batchMax: 1000, logger });
  ({ server, url } = await serve({ intake }));
});
afterEach(async () => {
  await writer.stop();
  server.close();
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

async function serve(parts: Pick<Parameters<typeof createApp>[0], "intake">) {
  const stats = createStatsStore(pool);
  const app = createApp({
    ...parts,
    deadClicks: openDeadClicks(pool),
    ledger,
    stats,
    drops,
    logger: createQuietLogger(),
  });
  const started = createServer(app);
  await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
  return { server: started, url: `http://127.0.0.1:${(started.address() as AddressInfo).port}` };
}

const drops = { take: () => {} };
const countRows = async () => (await database.sql`SELECT count(*)::int AS n FROM click`)[0]?.n;

describe("a batch", () => {
  test("is stored before it is answered; sent again, it is all duplicate and adds no row", async () => {
    writer.start();
    const clicks = sampleClicks(100);
    expect(await postBatch(url, clicks)).toEqual({
      received: 100,
      inserted: 100,
      duplicate: 0,
      deadLettered: 0,
      refused: 0,
    });
    expect(await countRows()).toBe(100);
    expect(await postBatch(url, clicks)).toEqual({
      received: 100,
      inserted: 0,
      duplicate: 100,
      deadLettered: 0,
      refused: 0,
    });
    expect(await countRows()).toBe(100);
  });

  test("with an id twice counts it once", async () => {
    writer.start();
    const click = sampleClick();
    expect(await postBatch(url, [click, click])).toEqual({
      received: 2,
      inserted: 1,
      duplicate: 1,
      deadLettered: 0,
      refused: 0,
    });
  });

  test.each([
    ["an invalid UUID", { id: "not-a-uuid" }, { reason: "id", sqlstate: null }],
    ["the year 300000", { at: 9_404_726_400_000_000 }, { reason: "at", sqlstate: null }],
    [
      "NUL in its owner, which only the database refuses",
      { owner: "a\0b" },
      { reason: "unstorable", sqlstate: "22021" },
    ],
  ])(
    "of 99 good clicks and one with %s adds up, and keeps that one as a dead letter",
    async (_case, changes, letter) => {
      writer.start();
      const bad = { ...sampleClick(), ...changes };
      const clicks = sampleClicks(99).toSpliced(33, 0, bad);
      const account = { received: 100, inserted: 99, duplicate: 0, deadLettered: 1, refused: 0 };
      expect(await postBatch(url, clicks)).toEqual(account);
      expect(await postBatch(url, clicks)).toEqual({ ...account, inserted: 0, duplicate: 99 });
      expect(await countRows()).toBe(99);
      const letters = await database.sql`SELECT reason, sqlstate, attempts, sender, click_id, payload FROM dead_click`;
      expect(letters).toMatchObject([{ ...letter, attempts: 2, sender: "test", click_id: bad.id }]);
      expect(JSON.parse(letters[0]?.payload)).toEqual(bad);
      expect(ledger.read()).toMatchObject({ inFlight: 0, deadLettered: { [letter.reason]: 2 } });
    },
  );

  test("with NUL in a user agent has it cleaned, and is stored whole", async () => {
    writer.start();
    const clicks = [...sampleClicks(99), sampleClick({ userAgent: "a\0b" })];
    expect(await postBatch(url, clicks)).toMatchObject({ received: 100, inserted: 100, deadLettered: 0 });
    expect(await countRows()).toBe(100);
  });

  test("with a click that only the database refuses has it set aside alone, and counted by its reason", async () => {
    await database.sql.unsafe(`
      CREATE FUNCTION refuse_banned() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.code = 'banned' THEN RAISE EXCEPTION 'banned'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse_banned BEFORE INSERT ON click FOR EACH ROW EXECUTE FUNCTION refuse_banned();`);
    writer.start();
    const clicks = [...sampleClicks(99), sampleClick({ code: "banned" })];
    expect(await postBatch(url, clicks)).toMatchObject({ received: 100, inserted: 99, duplicate: 0, deadLettered: 1 });
    expect(ledger.read()).toMatchObject({ inserted: 99, inFlight: 0, deadLettered: { unstorable: 1 } });
    await database.sql.unsafe("DROP FUNCTION refuse_banned CASCADE");
  });

  test("whose sender has gone leaves the queue and is counted as given back", async () => {
    const caller = new AbortController();
    const body = JSON.stringify({ sender: "test", clicks: sampleClicks(10) });
    const headers = { "Content-Type": "application/json" };
    const call = fetch(`${url}/v1/clicks`, { method: "POST", headers, body, signal: caller.signal });
    await until(() => intake.stats().clicks === 10);
    caller.abort();
    await expect(call).rejects.toThrow();
    await until(() => ledger.read().givenBack.abandoned === 10);
    expect([intake.stats().clicks, ledger.read().inFlight]).toEqual([0, 0]);
    writer.start();
    await postBatch(url, sampleClicks(1));
    expect(await countRows()).toBe(1);
  });

  test("that is answered before its commit, as a control, is lost when the process dies in between", async () => {
    const hasty = await serve({
      intake: {
        offer: async (clicks, gone) => {
          void intake.offer(clicks, gone);
          return { kind: "stored", inserted: clicks.length, duplicate: 0, late: 0, unstorable: [] };
        },
      },
    });
    // The writer never started: the same as a process that was killed before it came round to the batch.
    expect(await postBatch(hasty.url, sampleClicks(10))).toMatchObject({ inserted: 10 });
    expect(await countRows()).toBe(0);
    hasty.server.close();
  });
});

describe("statistics", () => {
  test("count the stored clicks of a code, letter by letter", async () => {
    writer.start();
    await postBatch(url, [...sampleClicks(3, { code: "Abc" }), ...sampleClicks(2, { code: "abc" })]);
    const read = async (code: string) => (await fetch(`${url}/v1/links/${code}/stats`)).json();
    expect(await read("Abc")).toMatchObject({ code: "Abc", total: 3 });
    expect(await read("abc")).toMatchObject({ code: "abc", total: 2 });
    expect(await read("unknown")).toMatchObject({ code: "unknown", total: 0 });
  });
});
