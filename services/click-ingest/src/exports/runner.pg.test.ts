// How jobs are done: one after another for each owner, in turns between owners, again where that may help, never by two.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type TestDatabase, until, waitFor } from "@linkfence/testkit";
import { fillClicks, openClickDatabase } from "../test-support/export-clicks.ts";
import { createGate } from "../test-support/gate.ts";
import { openLateCount } from "../test-support/late-count.ts";
import { type ExportWorld, openExportWorld } from "../test-support/open-exports.ts";

const APPLICATION = "linkfence-click-ingest-export";
/** More than sockets and buffers hold: an attempt that waits has not read all of it. */
const MANY = 60_000;

let database: TestDatabase;
let world: ExportWorld;

beforeAll(async () => {
  database = await openClickDatabase();
});
beforeEach(async () => {
  await database.sql`TRUNCATE click, export_job`;
  world = await openExportWorld(database);
});
afterEach(async () => {
  await world.close();
  // Whatever came of the jobs: nobody holds a look at the clicks afterwards.
  await until(async () => (await readers()).length === 0);
});
afterAll(() => database.drop());

/** Clicks that were ever put there: no id comes twice. */
let filled = 0;

/** Puts further clicks into the table. */
async function fill(count: number) {
  await fillClicks(database, { count, from: filled });
  filled += count;
}

/** Connections that read for files. */
const readers = () =>
  database.sql<{ pid: number }[]>`
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = ${APPLICATION}`;

async function terminateReaders(): Promise<number> {
  const found = await readers();
  for (const { pid } of found) await database.sql`SELECT pg_terminate_backend(${pid}, 10000)`;
  return found.length;
}

describe("an attempt", () => {
  test("reads what was there when it began, and tells how far it is", async () => {
    await fill(MANY);
    const gate = createGate();
    world.start({ writer: { giveWay: gate.pass } });
    const job = await world.order();
    await gate.reached;
    await fill(10);
    const running = await waitFor("its progress", async () => {
      const found = await world.find(job);
      return found.rowsEstimated !== null && found.rows > 0 && found;
    });
    expect(running).toMatchObject({ state: "RUNNING", attempts: 1, file: null, finishedAt: null });
    expect(running.rows).toBeGreaterThan(0);
    expect(running.rows).toBeLessThan(MANY);
    gate.open();
    const ended = await world.ended(job);
    expect(ended).toMatchObject({ state: "SUCCEEDED", rows: MANY });
    expect((await world.read(ended)).split("\r\n")).toHaveLength(MANY + 2);
  });

  test("whose database connection is terminated is made again, with the whole of the file, three times at the most", async () => {
    await fill(MANY);
    const { logger } = world.start({ writer: { giveWay: () => (lost > 0 ? terminated() : undefined) } });
    let lost = 1;
    const terminated = async () => {
      lost -= await terminateReaders();
    };
    const twice = await world.ended(await world.order());
    expect(twice).toMatchObject({ state: "SUCCEEDED", rows: MANY, attempts: 2, error: { code: "database" } });
    expect((await world.read(twice)).split("\r\n")).toHaveLength(MANY + 2);
    expect(logger.entries.map(({ message }) => message)).toContain("an attempt to export failed");
    lost = 3;
    const never = await world.ended(await world.order());
    expect(never).toMatchObject({ state: "FAILED", attempts: 3, file: null, error: { code: "database" } });
    expect(JSON.stringify(never.error)).not.toMatch(/\d+\.\d+\.\d+|\//);
    expect(await world.names()).toHaveLength(1);
  });

  test("is repeated, too, where the database is lost before it has read anything", async () => {
    await fill(3);
    let lost = 1;
    const bytesMax = async () => {
      if (lost-- > 0) await database.sql`SELECT pg_terminate_backend(pg_backend_pid())`;
      return 1e12;
    };
    world.start({ writer: { bytesMax } });
    const job = await world.ended(await world.order());
    expect(job).toMatchObject({ state: "SUCCEEDED", rows: 3, attempts: 2, error: { code: "database" } });
  });

  test("whose rows are counted by the server a while after the last of them is whole", async () => {
    await fill(100);
    const line = await openLateCount(database.url);
    world.start({ writer: { url: line.url } });
    expect(await world.ended(await world.order())).toMatchObject({ state: "SUCCEEDED", rows: 100, attempts: 1 });
    expect(line.heldBack()).toBe(1);
    await line.close();
  });

  test("does not begin while days of clicks wait to be dropped, as it would keep them", async () => {
    await fill(3);
    let [asked, due] = [0, true];
    const mayBegin = () => {
      asked += 1;
      return !due;
    };
    const { runner } = world.start({ mayBegin });
    const job = await world.order();
    await until(() => asked > 1);
    expect([runner.stats().claimed, (await world.find(job)).state]).toEqual([0, "PENDING"]);
    due = false;
    runner.wake();
    expect(await world.ended(job)).toMatchObject({ state: "SUCCEEDED", rows: 3 });
  });

  test("that takes longer than its deadline ends, also at the server", async () => {
    await fill(MANY);
    const gate = createGate();
    world.start({ writer: { timeoutMs: 2000, giveWay: gate.pass } });
    const job = await world.ended(await world.order());
    expect(job).toMatchObject({ state: "FAILED", attempts: 3, error: { code: "deadline" }, file: null });
    expect(await world.names()).toEqual([]);
  });

  test("for whose file there is no room leaves nothing behind", async () => {
    await fill(MANY);
    world.start({ writer: { bytesMax: async () => 1_000_000 } });
    const job = await world.ended(await world.order());
    expect(job).toMatchObject({ state: "FAILED", attempts: 3, error: { code: "storage-full" }, file: null });
    expect(await world.names()).toEqual([]);
  });

  test("of a job that is cancelled ends, and leaves nothing behind", async () => {
    await fill(MANY);
    const gate = createGate();
    const { runner } = world.start({ writer: { giveWay: gate.pass } });
    const job = await world.order();
    await gate.reached;
    expect(await world.store.cancel(job.owner, job.id)).toMatchObject({ outcome: "cancelled" });
    await until(() => runner.stats().lost === 1);
    gate.open();
    expect(await world.find(job)).toMatchObject({ state: "CANCELLED", file: null, error: null });
    expect(await world.names()).toEqual([]);
  });

  test("under way at a stop is given back, does not count, and is made by the next process", async () => {
    await fill(MANY);
    const gate = createGate();
    world.start({ writer: { giveWay: gate.pass } });
    const job = await world.order();
    await gate.reached;
    await world.pause();
    expect(await world.find(job)).toMatchObject({ state: "PENDING", attempts: 0, file: null });
    expect(await world.names()).toEqual([]);
    world.start();
    expect(await world.ended(job)).toMatchObject({ state: "SUCCEEDED", rows: MANY, attempts: 1 });
  });
});

describe("a job whose worker is not heard of any more", () => {
  test("is done by the next one, with an attempt less, until none is left", async () => {
    const dead = await openExportWorld(database, { leaseMs: 1 });
    await fill(3);
    const job = await world.order();
    for (const attempt of [1, 2]) {
      expect(await dead.work.claim("dead", "a".repeat(31) + attempt)).toMatchObject({ id: job.id, attempts: attempt });
      await world.leave(`${"a".repeat(31)}${attempt}.part`);
      await until(async () => (await database.sql`SELECT 1 FROM export_job WHERE lease_until < now()`).length > 0);
    }
    world.start();
    expect(await world.ended(job)).toMatchObject({
      state: "SUCCEEDED",
      attempts: 3,
      rows: 3,
      error: { code: "worker-lost" },
    });
    await world.leftovers.tidy();
    expect(await world.names()).toHaveLength(1);
    await dead.close();
  });

  test("fails where that was its last attempt", async () => {
    const dead = await openExportWorld(database, { leaseMs: 1 });
    const job = await world.order();
    for (const attempt of [1, 2, 3]) {
      expect(await dead.work.claim("dead", "a".repeat(31) + attempt)).toMatchObject({ attempts: attempt });
      await until(async () => (await database.sql`SELECT 1 FROM export_job WHERE lease_until < now()`).length > 0);
    }
    world.start();
    expect(await world.ended(job)).toMatchObject({ state: "FAILED", attempts: 3, error: { code: "worker-lost" } });
    await dead.close();
  });
});

test("a database that fails again and again is left alone for a while, and then tried by one", async () => {
  await fill(3);
  const job = await world.order();
  await database.sql`ALTER TABLE export_job RENAME TO hidden`;
  const { runner, logger } = world.start({ workers: 3 });
  try {
    await until(() => runner.stats().open);
    expect(runner.stats().opened).toBe(1);
    expect(logger.entries.map(({ message }) => message)).toContain(
      "no exports for a while: the database fails again and again",
    );
  } finally {
    await database.sql`ALTER TABLE hidden RENAME TO export_job`;
  }
  expect(await world.ended(job)).toMatchObject({ state: "SUCCEEDED", rows: 3, attempts: 1 });
  await until(() => !runner.stats().open);
});

describe("what is no longer wanted", () => {
  test("is removed, and nothing else: files of nobody, and those of jobs that are kept no longer", async () => {
    world.start();
    const kept = await world.ended(await world.order());
    const old = await world.ended(await world.order());
    await world.leave("f".repeat(32));
    await database.sql.unsafe(`
      ALTER TABLE export_job DISABLE TRIGGER guard_export_job;
      UPDATE export_job SET finished_at = finished_at - interval '1 day' WHERE id = '${old.id}';
      ALTER TABLE export_job ENABLE TRIGGER guard_export_job`);
    expect(await world.names()).toHaveLength(3);
    await world.leftovers.tidy();
    expect(await world.store.find("ann", old.id)).toBeUndefined();
    expect((await world.names()).map((name) => `/${name}`)).toEqual([kept.file?.place.slice(-33)]);
    expect(await world.read(await world.find(kept))).toMatch(/^id,/);
  });
});
