import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { QUARTER_MS } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, findRollupFaults, type TestDatabase, until } from "@linkfence/testkit";
import { type AppOptions, createApp } from "./app.ts";
import { createIntake, type Intake } from "./queue/intake.ts";
import { createLedger, type Ledger } from "./queue/ledger.ts";
import { createWriter, type Writer } from "./queue/writer.ts";
import { createRefusals } from "./store/refusals.ts";
import { createStatsStore } from "./store/stats.ts";
import { openClickStore, openDeadClicks, openIsolation } from "./test-support/open-store.ts";
import { createQuietLogger } from "./test-support/quiet-logger.ts";
import { refuseBanned } from "./test-support/refusing-table.ts";
import { postBatch } from "./test-support/resending-sender.ts";
import { SAMPLE_AT, sampleClick, sampleClicks } from "./test-support/sample-clicks.ts";

let database: TestDatabase;
let pool: Database;
let intake: Intake;
let ledger: Ledger;
let writer: Writer;
let server: Server;
let url: string;
/** What the writer asked of the store, and for how many clicks. */
const calls: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase("stats");
  await refuseBanned(database);
  pool = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 2000 });
});
beforeEach(async () => {
  await database.sql`TRUNCATE click, dead_click, click_drop, refused_click`;
  await database.sql`TRUNCATE click_day, click_hour, owner_hour`;
  await open();
});
afterEach(async () => {
  await writer.stop();
  server.close();
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

/** Opens all of it anew, with these bounds of dead letters. */
async function open(bounds: Parameters<typeof openDeadClicks>[1] = {}): Promise<void> {
  ledger = createLedger();
  intake = createIntake({ maxClicks: 20_000, maxBytes: 100_000_000, deadlineMs: 10_000 });
  calls.length = 0;
  const deadClicks = openDeadClicks(pool, bounds);
  const [{ insert }, isolate] = [openClickStore(pool), openIsolation(pool, { deadClicks })];
  writer = createWriter({
    intake,
    insert(clicks) {
      calls.push(`insert ${clicks.length}`);
      return insert(clicks);
    },
    isolate(sender, suspects) {
      calls.push(`isolate ${suspects.length}`);
      return isolate(sender, suspects);
    },
    batchMax: 10_000,
    logger: createQuietLogger(),
  });
  ({ server, url } = await serve({ intake, deadClicks }));
}

async function serve(parts: Pick<AppOptions, "intake" | "deadClicks">) {
  const stats = createStatsStore(pool);
  const app = createApp({
    ...parts,
    refusals: createRefusals(pool),
    ledger,
    stats,
    drops,
    logger: createQuietLogger(),
  });
  const started = createServer(app);
  await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
  return { server: started, url: `http://127.0.0.1:${(started.address() as AddressInfo).port}` };
}

const drops = { take: () => {}, store: async () => {} };
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
    ["NUL in its owner", { owner: "a\0b" }, { reason: "owner", sqlstate: null }],
    ["a lone surrogate in its owner", { owner: "a\ud800b" }, { reason: "owner", sqlstate: null }],
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
    writer.start();
    const clicks = [...sampleClicks(99), sampleClick({ code: "banned" })];
    expect(await postBatch(url, clicks)).toMatchObject({ received: 100, inserted: 99, duplicate: 0, deadLettered: 1 });
    expect(ledger.read()).toMatchObject({ inserted: 99, inFlight: 0, deadLettered: { unstorable: 1 } });
  });

  test("is answered before anything is looked for in another sender's 2,000 clicks that the database refuses", async () => {
    const bad = [1, 2].map(() => postBatch(url, sampleClicks(1000, { code: "banned" }), "bad"));
    await until(() => intake.stats().clicks === 2000);
    const good = postBatch(url, sampleClicks(100), "good");
    await until(() => intake.stats().clicks === 2100);
    writer.start();
    expect(await good).toMatchObject({ inserted: 100 });
    expect(calls.slice(0, 3)).toEqual(["insert 2100", "insert 2000", "insert 100"]);
    const account = { received: 1000, inserted: 0, duplicate: 0, deadLettered: 1000, refused: 0 };
    expect(await Promise.all(bad)).toEqual([account, account]);
    expect(calls.slice(3)).toEqual(Array(8).fill("isolate 250"));
    const letters =
      await database.sql`SELECT attempts, count(DISTINCT click_id)::int AS ids FROM dead_click GROUP BY 1`;
    expect(letters).toEqual([{ attempts: 1, ids: 2000 }]);
    expect(ledger.read()).toMatchObject({
      received: 2100,
      inserted: 100,
      inFlight: 0,
      deadLettered: { unstorable: 2000 },
    });
    expect([await countRows(), await findRollupFaults(database)]).toEqual([100, []]);
  });

  test("of clicks that are refused and for which there is no room counts them as dropped, once, on their day", async () => {
    server.close();
    await open({ rowsMax: 2 });
    writer.start();
    const day = (days: number) => SAMPLE_AT - days * 86_400_000;
    const clicks = [
      ...sampleClicks(3, { at: day(500) }),
      ...sampleClicks(3, { code: "banned", at: day(3) }),
      ...[1, 2, 3],
      sampleClick({ owner: "a\0", at: day(3) }),
    ];
    for (let time = 0; time < 2; time += 1)
      expect(await postBatch(url, clicks)).toMatchObject({ received: 10, inserted: 0, deadLettered: 2, refused: 8 });
    const dropped = async (days: number) => {
      const request = {
        edges: [-1, 1].map((hours) => Math.floor((day(days) + hours * 3_600_000) / QUARTER_MS)),
        stepped: false,
      };
      return (await createStatsStore(pool).readLink("sample", { ...request, top: 0 })).dropped;
    };
    expect(await dropped(500)).toEqual([{ reason: "late", total: 3 }]);
    expect(await dropped(3)).toEqual([{ reason: "dead-letters-full", total: 2 }]);
    expect(await dropped(4)).toEqual([]);
    const sums = await database.sql`SELECT reason, sum(dropped)::int AS n FROM click_drop GROUP BY 1 ORDER BY 1`;
    expect(sums).toEqual([
      { reason: "dead-letters-full", n: 5 },
      { reason: "late", n: 3 },
    ]);
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
      deadClicks: openDeadClicks(pool),
      intake: {
        offer: async (clicks, gone, origin) => {
          void intake.offer(clicks, gone, origin);
          return { kind: "stored", inserted: clicks.length, duplicate: 0, buried: 0, late: [], noRoom: [] };
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
