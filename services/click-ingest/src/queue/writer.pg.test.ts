import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Click } from "@linkfence/contracts";
import { createDatabase, errorCode } from "@linkfence/db";
import { createTestDatabase, startFaultProxy, type TestDatabase, until } from "@linkfence/testkit";
import { judgeFailure } from "../domain/failure.ts";
import { openClickStore } from "../test-support/open-store.ts";
import { createQuietLogger } from "../test-support/quiet-logger.ts";
import { sampleClick, sampleClicks } from "../test-support/sample-clicks.ts";
import { createIntake } from "./intake.ts";
import { createWriter } from "./writer.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase("stats");
});
beforeEach(async () => {
  await database.sql`TRUNCATE click`;
});
afterAll(() => database.drop());

/** A writer on the test's database that already works. */
function openWriter(url = database.url) {
  const pool = createDatabase({ url, applicationName: "test", max: 2, queryTimeoutMs: 2000 });
  const intake = createIntake({ maxClicks: 20_000, maxBytes: 100_000_000, deadlineMs: 50_000 });
  const logger = createQuietLogger();
  const writer = createWriter({ intake, insert: openClickStore(pool).insert, batchMax: 1000, logger });
  const offer = (clicks: readonly Click[]) => intake.offer(clicks, new AbortController().signal);
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
    ["NUL in the owner", { owner: "a\0b" }, "22021"],
    ["an invalid UUID", { id: "not-a-uuid" }, "22P02"],
    ["the year 300000", { at: 9_404_726_400_000_000 }, "22008"],
  ])("for %s is set aside alone; 99 are stored", async (_case, changes, sqlstate) => {
    const { writer, offer, stop, logger } = openWriter();
    writer.start();
    const bad = { ...sampleClick(), ...changes };
    const clicks = sampleClicks(99).toSpliced(57, 0, bad);
    const unstorable = [{ click: bad, sqlstate, detail: expect.any(String) }];
    expect(await offer(clicks)).toEqual({ kind: "stored", inserted: 99, duplicate: 0, late: 0, unstorable });
    expect(await offer(clicks)).toEqual({ kind: "stored", inserted: 0, duplicate: 99, late: 0, unstorable });
    expect(await countRows()).toEqual({ rows: 99, ids: 99 });
    expect(logger.entries.map(({ fields }) => fields.sqlstate)).toEqual([sqlstate, sqlstate]);
    await stop();
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
      expect(outcome).toEqual({ kind: "stored", inserted: 1000, duplicate: 0, late: 0, unstorable: [] });
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
      { kind: "stored", inserted: 11, duplicate: 0, late: 0, unstorable: [] },
      { kind: "stored", inserted: 5, duplicate: 1, late: 0, unstorable: [] },
      { kind: "stored", inserted: 1, duplicate: 2, late: 0, unstorable: [] },
    ]);
    expect(writer.stats().batches).toBe(1);
    expect(await countRows()).toEqual({ rows: 17, ids: 17 });
    await stop();
  });
});
