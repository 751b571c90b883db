import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import { createDatabase, type Database, errorCode } from "@linkfence/db";
import { createTestDatabase, findRollupFaults, startFaultProxy, type TestDatabase, until } from "@linkfence/testkit";
import { judgeFailure } from "../domain/failure.ts";
import { openClickStore, openDeadClicks, openIsolation } from "../test-support/open-store.ts";
import { createQuietLogger } from "../test-support/quiet-logger.ts";
import { refuseBanned } from "../test-support/refusing-table.ts";
import { sampleClick, sampleClicks, sampleOrigin } from "../test-support/sample-clicks.ts";
import { createIntake } from "./intake.ts";
import { createWriter } from "./writer.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  await refuseBanned(database);
});
beforeEach(async () => {
  await database.sql`TRUNCATE click, dead_click, click_day, click_hour, owner_hour`;
});
afterAll(() => database.drop());

type Isolate = Parameters<typeof createWriter>[0]["isolate"];

/** A writer on the test's database that already works. */
function openWriter(url = database.url, open: (pool: Database) => Isolate = openIsolation) {
  const pool = createDatabase({ url, applicationName: "test", max: 2, queryTimeoutMs: 2000 });
  const intake = createIntake({ maxClicks: 20_000, maxBytes: 100_000_000, deadlineMs: 50_000 });
  const logger = createQuietLogger();
  const { insert } = openClickStore(pool);
  const writer = createWriter({ intake, insert, isolate: open(pool), batchMax: 1000, logger });
  const offer = (clicks: readonly Click[], signal = new AbortController().signal) =>
    intake.offer(clicks, signal, sampleOrigin());
  const stop = async () => {
    await writer.stop();
    await pool.close();
  };
  return { writer, offer, stop, logger };
}

async function countRows(): Promise<{ rows: number; ids: number }> {
  const [row] = await database.sql<{ rows: number; ids: number }[]>`
    SELECT count(*)::int AS rows, count(DISTINCT click_id)::int AS ids FROM click`;
  return row ?? { rows: -1, ids: -1 };
}

describe("one click of a hundred that the database refuses", () => {
  test.each([
    ["a trigger's sake", { code: "banned" }, "P0001"],
    ["NUL in the owner, which cannot even be sent", { owner: "a\0b" }, "22021"],
    ["an invalid UUID", { id: "not-a-uuid" }, "22P02"],
    ["the year 300000", { at: 9_404_726_400_000_000 }, "22008"],
  ])("for %s is set aside alone; 99 are stored", async (_case, changes, sqlstate) => {
    const { writer, offer, stop, logger } = openWriter();
    writer.start();
    const bad = { ...sampleClick(), ...changes };
    const clicks = sampleClicks(99).toSpliced(57, 0, bad);
    const outcome = { kind: "stored", inserted: 99, duplicate: 0, buried: 1, late: [], noRoom: [] };
    expect(await offer(clicks)).toEqual(outcome);
    expect(await offer(clicks)).toEqual({ ...outcome, inserted: 0, duplicate: 99 });
    expect(await countRows()).toEqual({ rows: 99, ids: 99 });
    expect(await findRollupFaults(database)).toEqual([]);
    const [letter] = await database.sql`SELECT reason, sqlstate, attempts, click_id, payload, sender FROM dead_click`;
    expect(letter).toMatchObject({ reason: "unstorable", sqlstate, attempts: 2, click_id: bad.id, sender: "test" });
    expect(JSON.parse(letter?.payload)).toEqual(bad);
    expect(logger.entries.map(({ fields }) => fields.sqlstate)).toEqual([sqlstate]);
    await stop();
  });

  test("and comes twice, beside one that does and is good, is parted from it exactly", async () => {
    const { writer, offer, stop } = openWriter();
    writer.start();
    const [good = sampleClick(), bad = sampleClick()] = [sampleClick(), sampleClick({ code: "banned" })];
    const clicks = [good, bad, good, bad, ...sampleClicks(40), good];
    expect(await offer(clicks)).toMatchObject({ inserted: 41, duplicate: 2, buried: 2 });
    expect(await countRows()).toEqual({ rows: 41, ids: 41 });
    expect(await database.sql`SELECT attempts FROM dead_click`).toEqual([{ attempts: 2 }]);
    await stop();
  });
});

describe("clicks that the database refuses, of which a sender may wait for a few steps at a time", () => {
  /** Sends the same clicks seven times, and leaves after three steps. Returns how the last one ended. */
  async function sendSevenTimes(deadClicks: (pool: Database) => ReturnType<typeof openDeadClicks>) {
    let [caller, steps] = [new AbortController(), 0];
    const { writer, offer, stop } = openWriter(database.url, (pool) => {
      // One click a step.
      const isolate = openIsolation(pool, { deadClicks: deadClicks(pool), budgetMs: 0 });
      return async (...given) => {
        const isolated = await isolate(...given);
        steps += 1;
        if (steps % 3 === 0) caller.abort();
        return isolated;
      };
    });
    writer.start();
    const clicks = sampleClicks(20, { code: "banned" });
    for (let time = 0; time < 6; time += 1) {
      expect(await offer(clicks, caller.signal)).toEqual({ kind: "given-back", reason: "abandoned" });
      await until(() => writer.stats().suspects === 0);
      [caller, steps] = [new AbortController(), 0];
    }
    const outcome = await offer(clicks, caller.signal);
    await stop();
    const [{ letters = -1 } = {}] = await database.sql<{ letters: number }[]>`
      SELECT count(*)::int AS letters FROM dead_click`;
    return { kind: outcome.kind, letters };
  }

  test("are settled a few at each attempt, until all of them are", async () => {
    expect(await sendSevenTimes(openDeadClicks)).toEqual({ kind: "stored", letters: 20 });
  });

  test("without knowing them again, as a control, are never all settled", async () => {
    const forgetful = (pool: Database) => ({
      ...openDeadClicks(pool),
      buryAgain: async (_sender: string, payloads: readonly string[]) => payloads.map(() => false),
    });
    expect(await sendSevenTimes(forgetful)).toEqual({ kind: "given-back", letters: 3 });
  });
});

describe("20,000 clicks queued while the database is away", () => {
  test("are stored exactly once when it comes back, and one more is given back meanwhile", async () => {
    const proxy = await startFaultProxy(Number(new URL(database.url).port));
    const { writer, offer, stop } = openWriter(proxy.through(database.url));
    proxy.set("refuse");
    writer.start();
    const outcomes = Array.from({ length: 20 }, () => offer(sampleClicks(1000)));
    expect(await offer(sampleClicks(1))).toEqual({ kind: "given-back", reason: "full" });
    await until(() => writer.stats().retries >= 2);
    proxy.set("pass");
    for (const outcome of await Promise.all(outcomes)) {
      expect(outcome).toEqual({ kind: "stored", inserted: 1000, duplicate: 0, buried: 0, late: [], noRoom: [] });
    }
    expect(await countRows()).toEqual({ rows: 20_000, ids: 20_000 });
    expect(writer.stats().batches).toBe(20);
    await stop();
    await proxy.close();
  });

  test("in one statement with a parameter each, as a control, cannot be stored at all; no click is blamed", async () => {
    const rows = sampleClicks(20_000).map(({ id, code, at }) => ({
      click_id: id,
      code,
      link_version: 1,
      clicked_at: new Date(at),
    }));
    const error = await database.sql`INSERT INTO click ${database.sql(rows)}`.catch((reason: unknown) => reason);
    expect(errorCode(error)).toBe("MAX_PARAMETERS_EXCEEDED");
    expect(judgeFailure(errorCode(error))).toBe("transient");
  });
});

describe("requests that wait together", () => {
  test("share a transaction, and each gets its own counts, ids in common and repeated ids included", async () => {
    const { writer, offer, stop } = openWriter();
    const [shared, twice] = sampleClicks(2);
    if (!shared || !twice) throw new Error("no sample");
    const outcomes = [
      offer([...sampleClicks(10), shared]),
      offer([shared, ...sampleClicks(5)]),
      offer([twice, twice, twice]),
    ];
    writer.start();
    expect(await Promise.all(outcomes)).toEqual([
      { kind: "stored", inserted: 11, duplicate: 0, buried: 0, late: [], noRoom: [] },
      { kind: "stored", inserted: 5, duplicate: 1, buried: 0, late: [], noRoom: [] },
      { kind: "stored", inserted: 1, duplicate: 2, buried: 0, late: [], noRoom: [] },
    ]);
    expect(writer.stats().batches).toBe(1);
    expect(await countRows()).toEqual({ rows: 17, ids: 17 });
    await stop();
  });
});
