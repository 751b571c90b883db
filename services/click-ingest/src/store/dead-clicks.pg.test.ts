import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, findRollupFaults, type TestDatabase } from "@linkfence/testkit";
import { writeDeadLetter } from "../domain/dead-letter.ts";
import { openDeadClicks } from "../test-support/open-store.ts";
import { refuseBanned } from "../test-support/refusing-table.ts";
import { newClickId, SAMPLE_AT, sampleClick } from "../test-support/sample-clicks.ts";
import { createDeadClickDesk } from "./dead-click-desk.ts";

let database: TestDatabase;
let pool: Database;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  await refuseBanned(database);
  pool = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 5000 });
});
beforeEach(() => database.sql`TRUNCATE click, click_day, click_hour, owner_hour, dead_click`);
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const letter = (raw: unknown) => writeDeadLetter(raw, { reason: "unstorable", sqlstate: "22021", detail: "made up" });
const openDesk = () => createDeadClickDesk({ database: pool, retentionDays: 400, valuesMax: 100, timeoutMs: 5000 });
const countClicks = async () => (await database.sql`SELECT count(*)::int AS n FROM click`)[0]?.n;

async function buryOne(raw: unknown): Promise<number> {
  await openDeadClicks(pool).bury("test", [letter(raw)]);
  const [row] = await database.sql<{ id: string }[]>`SELECT max(id) AS id FROM dead_click`;
  return Number(row?.id);
}

describe("dead letters", () => {
  test("are kept in their order, as they came, and one that comes again is counted as another attempt", async () => {
    const dead = openDeadClicks(pool);
    const raws = ["a\0b", { id: 'x,"y\\' }, null, [1, "\ud800"]];
    expect(await dead.bury("one", raws.map(letter))).toEqual([true, true, true, true]);
    expect(await dead.bury("two", [letter("a\0b"), letter("new")])).toEqual([true, true]);
    const rows =
      await database.sql`SELECT payload, attempts, sender, first_at < last_at AS later FROM dead_click ORDER BY id`;
    expect(rows.map(({ payload }) => JSON.parse(payload))).toEqual([...raws, "new"]);
    expect(rows.map(({ attempts, sender, later }) => [attempts, sender, later])).toEqual([
      [2, "two", true],
      ...Array(3).fill([1, "one", false]),
      [1, "two", false],
    ]);
    expect(dead.stats()).toMatchObject({ rows: 5, bytes: rows.reduce((sum, { payload }) => sum + payload.length, 0) });
  });

  test("are bounded in number: what is there is kept and may come again, what is new is refused", async () => {
    const dead = openDeadClicks(pool, { rowsMax: 2 });
    expect(await dead.bury("test", [letter(1), letter(2), letter(3)])).toEqual([true, true, false]);
    expect(await dead.bury("test", [letter(4), letter(1)])).toEqual([false, true]);
    expect(dead.stats()).toMatchObject({ rows: 2, rowsMax: 2 });
  });

  test("are bounded in bytes, and a smaller one may still fit", async () => {
    const dead = openDeadClicks(pool, { bytesMax: 20 });
    expect(await dead.bury("test", [letter("x".repeat(10)), letter("y".repeat(10)), letter("z")])).toEqual([
      true,
      false,
      true,
    ]);
    expect(dead.stats()).toMatchObject({ rows: 2, bytes: 15 });
  });

  test("stay within their bounds when several processes keep some at once", async () => {
    const all = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        openDeadClicks(pool, { rowsMax: 10 }).bury(
          "test",
          [0, 1, 2, 3].map((m) => letter(`${n}-${m}`)),
        ),
      ),
    );
    expect(all.flat().filter((kept) => kept)).toHaveLength(10);
    expect(await database.sql`SELECT FROM dead_click`).toHaveLength(10);
  });
});

describe("a dead letter that is stored after all", () => {
  test("is a click, added up, and no letter any more; doing so again changes nothing", async () => {
    const click = sampleClick({ owner: "ann" });
    const id = await buryOne(click);
    const desk = openDesk();
    expect(await desk.replay(id)).toBe("stored");
    expect(await desk.replay(id)).toBe("unknown");
    expect(await desk.replay(await buryOne(click))).toBe("duplicate");
    expect([await countClicks(), await desk.list({ after: 0, limit: 10 })]).toEqual([1, []]);
    expect(await findRollupFaults(database)).toEqual([]);
  });

  test("by several operators at once is counted once", async () => {
    const id = await buryOne(sampleClick());
    const outcomes = await Promise.all([1, 2, 3].map(() => openDesk().replay(id)));
    expect(outcomes.sort()).toEqual(["stored", "unknown", "unknown"]);
    expect(await countClicks()).toBe(1);
    expect(await findRollupFaults(database)).toEqual([]);
  });

  test.each([
    ["wrong", { ...sampleClick(), code: "no" }],
    ["wrong", "no click"],
    ["late", sampleClick({ at: SAMPLE_AT - 500 * 86_400_000 })],
    ["refused", sampleClick({ code: "banned" })],
  ])("stays one where it is still %s", async (outcome, raw) => {
    const id = await buryOne(raw);
    expect(await openDesk().replay(id)).toBe(outcome);
    const kept = await openDesk().show(id);
    expect(kept).toMatchObject({ id, attempts: outcome === "refused" ? 2 : 1, payload: JSON.stringify(raw) });
    expect(await countClicks()).toBe(0);
  });
});

test("dead letters are listed by age, in pages, and thrown away by number", async () => {
  const ids = [];
  for (const raw of [1, 2, 3]) ids.push(await buryOne({ id: newClickId(), raw }));
  const desk = openDesk();
  const [first = 0, second = 0, third = 0] = ids;
  expect((await desk.list({ after: 0, limit: 2 })).map(({ id }) => id)).toEqual([first, second]);
  expect((await desk.list({ after: second, limit: 2 })).map(({ id }) => id)).toEqual([third]);
  expect(await desk.discard([second, 999_999])).toEqual([second]);
  expect((await desk.list({ after: 0, limit: 9 })).map(({ id }) => id)).toEqual([first, third]);
});
