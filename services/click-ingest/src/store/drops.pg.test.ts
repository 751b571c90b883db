import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { QUARTER_MS } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { createDropStore, type DropStore } from "./drops.ts";
import { createStatsStore } from "./stats.ts";

let database: TestDatabase;
let pool: Database;
let drops: DropStore;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  pool = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
  drops = createDropStore(pool);
});
beforeEach(async () => {
  await database.sql`TRUNCATE click_drop, click_drop_report`;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const SINCE = Date.now();
const report = (incarnation: string, totals: Record<string, number>, since = SINCE) => ({
  incarnation,
  since,
  totals: Object.entries(totals).map(([reason, total]) => ({ reason, total })),
});
const quarterOf = (at: number) => Math.floor(at / QUARTER_MS);

/** What is told of a period around now, or of another one. */
async function told(from = Date.now() - 3_600_000, to = Date.now() + 3_600_000) {
  const edges = [quarterOf(from), quarterOf(to)];
  const { dropped } = await createStatsStore(pool).readLink("sample", { edges, top: 0, stepped: true });
  return Object.fromEntries(dropped.map(({ reason, total }) => [reason, total]));
}

describe("reports of dropped clicks", () => {
  test("add up over processes, and each counts what is new in it", async () => {
    await drops.note(report("one", { "ring-full": 3 }));
    await drops.note(report("two", { "ring-full": 4, stopped: 1 }));
    await drops.note(report("one", { "ring-full": 10 }));
    expect(await told()).toEqual({ "ring-full": 14, stopped: 1 });
  });

  test("of more reasons than an answer may have are told with the smallest summed up", async () => {
    for (let part = 0; part < 10; part += 1) {
      const totals = Array.from({ length: 16 }, (_, n) => [`reason-${part}-${n}`, 100 - part]);
      await drops.note(report("many", Object.fromEntries(totals)));
    }
    const sums = await told();
    expect(Object.keys(sums)).toHaveLength(100);
    expect(sums).toMatchObject({ "reason-0-0": 100, "reason-5-15": 95 });
    expect(Object.values(sums).reduce((sum, total) => sum + total, 0)).toBe(16 * (1000 - 45));
    expect(sums.other).toBe(16 * (1000 - 45) - 16 * (600 - 15) - 3 * 94);
  });

  test("count once however often and in whatever order they come, also at the same time", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { minLength: 1, maxLength: 12 }), async (totals) => {
        await database.sql`TRUNCATE click_drop, click_drop_report`;
        const notes = totals.map((total) => drops.note(report("one", { "ring-full": total })));
        await Promise.all(notes);
        const most = Math.max(...totals);
        expect(await told()).toEqual(most === 0 ? {} : { "ring-full": most });
      }),
      { numRuns: 20 },
    );
  });

  test("that say nothing of a drop leave nothing", async () => {
    await drops.note(report("one", {}));
    await drops.note(report("one", { "ring-full": 0 }));
    expect(await told()).toEqual({});
  });

  test("belong to every hour in which the drops may have been, and to no other", async () => {
    const hours = (count: number) => Date.now() - count * 3_600_000;
    await drops.note(report("away", { "ring-full": 5 }, hours(5)));
    expect(await told(hours(4), hours(3))).toEqual({ "ring-full": 5 });
    expect(await told(hours(9), hours(8))).toEqual({});
    expect(await told(Date.now() + 7_200_000, Date.now() + 10_800_000)).toEqual({});
  });

  test("from a clock that is ahead begin now at the latest", async () => {
    await drops.note(report("ahead", { "ring-full": 5 }, Date.now() + 86_400_000));
    expect(await told()).toEqual({ "ring-full": 5 });
  });

  test("of processes that ended long ago are forgotten when another one comes; their drops are not", async () => {
    await drops.note(report("old", { stopped: 2 }));
    await database.sql`UPDATE click_drop_report SET reported_at = now() - interval '13 months'`;
    await drops.note(report("new", {}));
    expect(await database.sql`SELECT incarnation FROM click_drop_report`).toEqual([{ incarnation: "new" }]);
    expect(await told()).toEqual({ stopped: 2 });
  });
});
