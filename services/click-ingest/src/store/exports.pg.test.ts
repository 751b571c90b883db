import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { ExportOrder } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import { createExportWork } from "./export-work.ts";
import { createExportStore, type ExportStore } from "./exports.ts";

const BOUNDS = { ownerMax: 3, totalMax: 5 };
const KEEPING = { keptSeconds: 3600 };
const ORDER: ExportOrder = {
  owner: "ann",
  orderedBy: "key1",
  idempotencyKey: null,
  digest: "0".repeat(64),
  codes: ["bbb", "aaa"],
  from: null,
  to: 1_790_000_000_000,
  format: "csv",
  gzip: false,
};

let database: TestDatabase;
let pool: Database;
let exports: ExportStore;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
  exports = createExportStore(pool, BOUNDS, KEEPING);
});
beforeEach(async () => {
  await database.sql`TRUNCATE export_job`;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

/** Takes an order that is known to fit. */
async function ordered(order: Partial<ExportOrder> = {}) {
  const taken = await exports.order({ ...ORDER, ...order });
  if (!("job" in taken)) throw new Error(`not taken: ${taken.outcome}`);
  return taken.job;
}

describe("an order", () => {
  test("waits, with all that was ordered", async () => {
    const job = await ordered();
    expect(job).toMatchObject({ owner: "ann", orderedBy: "key1", codes: ["aaa", "bbb"], from: null, to: ORDER.to });
    expect(job).toMatchObject({ state: "PENDING", attempts: 0, rows: 0, rowsEstimated: null, error: null, file: null });
    expect(job.expiresAt).toBeNull();
    expect(await exports.find("ann", job.id)).toEqual(job);
  });

  test("under the same key is the same job, also at the same time, and another order under it is refused", async () => {
    const keyed = { ...ORDER, idempotencyKey: "k1" };
    const taken = await Promise.all(Array.from({ length: 5 }, () => exports.order(keyed)));
    expect(taken.map(({ outcome }) => outcome).sort()).toEqual(["created", ...Array(4).fill("replayed")]);
    // The end of a period that was not named is another moment each time, and still the same order.
    expect(await exports.order({ ...keyed, to: ORDER.to + 1 })).toMatchObject({
      outcome: "replayed",
      job: { to: ORDER.to },
    });
    expect(await exports.order({ ...keyed, digest: "1".repeat(64) })).toEqual({ outcome: "reused" });
    expect(await exports.order({ ...keyed, owner: "bob" })).toMatchObject({ outcome: "created" });
  });

  test("is refused where as many wait as may, of one owner or of all, also at the same time", async () => {
    const mine = await Promise.all(Array.from({ length: 6 }, () => exports.order(ORDER)));
    expect(mine.map(({ outcome }) => outcome).sort()).toEqual([
      ...Array(BOUNDS.ownerMax).fill("created"),
      ...Array(3).fill("owner-full"),
    ]);
    await ordered({ owner: "bob" });
    await ordered({ owner: "cat" });
    expect(await exports.order({ ...ORDER, owner: "dan" })).toEqual({ outcome: "full" });
  });

  test("cannot be changed by any statement", async () => {
    const { id } = await ordered();
    for (const change of ["codes = NULL", "owner = 'bob'", "to_ms = 1", "format = 'jsonl'", "gzip = true"])
      await expect(database.sql.unsafe(`UPDATE export_job SET ${change} WHERE id = '${id}'`)).rejects.toMatchObject({
        code: "23001",
      });
  });
});

describe("jobs", () => {
  test("are seen and cancelled by their owner alone", async () => {
    const { id } = await ordered();
    expect(await exports.find("bob", id)).toBeUndefined();
    expect(await exports.cancel("bob", id)).toBeUndefined();
    expect(await exports.list("bob", { limit: 10, before: null })).toEqual([]);
    expect(await exports.cancel("ann", id)).toMatchObject({ outcome: "cancelled", job: { id, state: "CANCELLED" } });
    expect(await exports.cancel("ann", id)).toMatchObject({ outcome: "already-cancelled", job: { id } });
  });

  test.each(["", "x", "../../etc/passwd", "%2e%2e", "\0", "00000000-0000-0000-0000-000000000000"])(
    "are not looked for under %j",
    async (id) => {
      expect(await exports.find("ann", id)).toBeUndefined();
      expect(await exports.cancel("ann", id)).toBeUndefined();
    },
  );

  test("are listed newest first, page by page", async () => {
    const numbers = [await ordered(), await ordered(), await ordered()].map(({ number }) => number).reverse();
    const page = await exports.list("ann", { limit: 2, before: null });
    expect(page.map(({ number }) => number)).toEqual(numbers.slice(0, 2));
    const rest = await exports.list("ann", { limit: 2, before: page[1]?.number ?? 0 });
    expect(rest.map(({ number }) => number)).toEqual(numbers.slice(2));
  });

  test("that have ended never change again", async () => {
    const { id } = await ordered();
    await exports.cancel("ann", id);
    const back = database.sql`UPDATE export_job SET state = 'PENDING', finished_at = NULL WHERE id = ${id}`;
    await expect(back).rejects.toMatchObject({ code: "23001" });
  });
});

describe("a worker", () => {
  const FILES = ["a".repeat(32), "b".repeat(32)] as const;

  /** A job that a worker holds whose lease is over, and that another one has taken up. */
  async function overtaken() {
    const { id, owner } = await ordered();
    const late = await createExportWork(pool, { ...KEEPING, leaseMs: 1 }).claim("late", FILES[0]);
    await until(
      async () => (await database.sql`SELECT 1 FROM export_job WHERE lease_until < clock_timestamp()`).length > 0,
    );
    const work = createExportWork(pool, { ...KEEPING, leaseMs: 60_000 });
    const next = await work.claim("next", FILES[1]);
    if (!late || !next) throw new Error("there was nothing to claim");
    return { work, late, next, find: () => exports.find(owner, id) };
  }

  test("whose claim a failover has lost tells nothing of a job that has got the same number since", async () => {
    const { work, late, next, find } = await overtaken();
    const lost = { ...late, token: next.token };
    expect([
      await work.extend(lost, { rows: 1, bytes: 1, estimated: null }),
      await work.finish(lost, { rows: 1, bytes: 1 }),
      await work.fail(lost, "database", "away", null),
      await work.release(lost),
    ]).toEqual([false, false, false, false]);
    expect(await find()).toMatchObject({ state: "RUNNING", rows: 0 });
    expect(await work.finish(next, { rows: 3, bytes: 30 })).toBe(true);
    expect(await find()).toMatchObject({ state: "SUCCEEDED", rows: 3, rowsEstimated: 3 });
  });

  test("whose job another one has taken up can tell nothing of it any more", async () => {
    const { work, late, next, find } = await overtaken();
    const before = await find();
    expect(await work.extend(late, { rows: 7, bytes: 7, estimated: 7 })).toBe(false);
    expect(await work.finish(late, { rows: 7, bytes: 7 })).toBe(false);
    expect(await work.fail(late, "internal", "late", null)).toBe(false);
    expect(await work.release(late)).toBe(false);
    expect(await find()).toEqual(before);
    expect(await work.finish(next, { rows: 9, bytes: 99 })).toBe(true);
    expect(await find()).toMatchObject({ state: "SUCCEEDED", rows: 9, bytes: 99, file: { bytes: 99 } });
    expect(await work.finish(next, { rows: 1, bytes: 1 })).toBe(false);
  });

  test("that knew a token that was never given out could end it (what tokens are for)", async () => {
    const { work, late, next, find } = await overtaken();
    expect(await work.finish({ ...late, token: next.token, file: next.file }, { rows: 7, bytes: 7 })).toBe(true);
    expect(await find()).toMatchObject({ state: "SUCCEEDED", rows: 7 });
  });

  test("has one job of an owner at a time, takes owners in turns, and each owner's oldest first", async () => {
    const work = createExportWork(pool, { ...KEEPING, leaseMs: 60_000 });
    const names = new Map<string, string>();
    for (const [name, owner] of [
      ["a1", "ann"],
      ["a2", "ann"],
      ["a3", "ann"],
      ["b1", "bob"],
      ["c1", "cat"],
    ] as const)
      names.set((await ordered({ owner })).id, name);
    const claim = async () => {
      const job = await work.claim("one", randomBytes(16).toString("hex"));
      return job && { job, name: names.get(job.id) };
    };
    const [first, second, third] = [await claim(), await claim(), await claim()];
    expect([first?.name, second?.name, third?.name]).toEqual(["a1", "b1", "c1"]);
    expect(await claim()).toBeUndefined();
    if (first) await work.finish(first.job, { rows: 0, bytes: 0 });
    names.set((await ordered({ owner: "bob" })).id, "b2");
    if (second) await work.finish(second.job, { rows: 0, bytes: 0 });
    expect((await claim())?.name).toBe("a2");
    expect((await claim())?.name).toBe("b2");
    expect(await claim()).toBeUndefined();
  });

  test("gets no job that is to wait, and is told so", async () => {
    const work = createExportWork(pool, { ...KEEPING, leaseMs: 60_000 });
    await ordered();
    const job = await work.claim("one", FILES[0]);
    if (!job) throw new Error("there was nothing to claim");
    expect(await work.fail(job, "database", "away", 60_000)).toBe(true);
    expect(await exports.find("ann", job.id)).toMatchObject({
      state: "PENDING",
      attempts: 1,
      error: { code: "database" },
    });
    expect(await work.claim("one", FILES[0])).toBeUndefined();
  });
});
