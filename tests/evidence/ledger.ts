// The ingest's account: each click is one row and is added up once, whatever is killed, locked, full or sent again.
import { setTimeout as pause } from "node:timers/promises";
import type { ClickBatchResult } from "@linkfence/contracts";
import {
  createTestDatabase,
  findRollupFaults,
  mapConcurrently,
  type TestDatabase,
  terminateConnections,
} from "@linkfence/testkit";
import { countClicks } from "./click-account.ts";
import { sendUntilCounted, someClicks, startMortalIngest, startSwallower } from "./click-senders.ts";
import { closingAfterwards } from "./closing.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { takeOut } from "./take-out.ts";

/** Of each kind, a few in each run: `pnpm evidence C5 --times 25` makes a hundred of them. */
const KILLS = 2;
const BATCH = 100;
/** Moments of kills go through this time, which a batch takes at the most. */
const MOMENTS_MS = 30;

const sumOf = (results: readonly ClickBatchResult[], field: "inserted" | "duplicate") =>
  results.reduce((sum, result) => sum + result[field], 0);

/** Sends batches, and has the ingest killed after its commit and before its answer is heard, for each of them once. */
async function killBetween(stats: TestDatabase, batches: readonly ReturnType<typeof someClicks>[]) {
  return closingAfterwards(async (later) => {
    const ingest = await startMortalIngest(stats.url);
    later(ingest.stop);
    const killed = new Set<string>();
    const relay = await startSwallower(
      () => ingest.url,
      async (id) => {
        if (killed.has(id)) return false;
        killed.add(id);
        await ingest.restart();
        return true;
      },
    );
    later(relay.close);
    const results: ClickBatchResult[] = [];
    for (const batch of batches) results.push(await sendUntilCounted(() => relay.url, batch));
    return results;
  });
}

/** Sends batches, and kills the ingest at moments that have nothing to do with them. */
async function killAnywhere(stats: TestDatabase, batches: readonly ReturnType<typeof someClicks>[]) {
  return closingAfterwards(async (later) => {
    const ingest = await startMortalIngest(stats.url);
    later(ingest.stop);
    const results: ClickBatchResult[] = [];
    for (const [n, batch] of batches.entries()) {
      const sent = sendUntilCounted(() => ingest.url, batch);
      await pause((n * 17) % MOMENTS_MS);
      await ingest.restart();
      results.push(await sent);
    }
    return results;
  });
}

export const c5: EvidenceCase = {
  id: "C5",
  shows:
    "an ingest that is killed with SIGKILL after the commit and before its answer is heard, and at any other moment, stores and adds up every click once",
  async run(report) {
    const stats = await createTestDatabase("stats");
    const batches = Array.from({ length: 2 * KILLS }, () => someClicks(BATCH));
    const [between, anywhere] = [batches.slice(0, KILLS), batches.slice(KILLS)];
    const told = await killBetween(stats, between);
    report.check("clicks told to be duplicates, all of them", sumOf(told, "duplicate"), KILLS * BATCH);
    const others = await killAnywhere(stats, anywhere);
    report.check("clicks told of", sumOf(others, "inserted") + sumOf(others, "duplicate"), KILLS * BATCH);
    const sent = batches.length * BATCH;
    report.check("rows and different ids", await countClicks(stats), { rows: sent, ids: sent });
    report.check("roll-ups that differ from the clicks", await findRollupFaults(stats), []);
    report.figure(`${2 * KILLS} kills: ${sent} clicks, as many rows`);
    await stats.drop();
  },
};

export const c5c: EvidenceCase = {
  id: "C5c",
  shows: "an ingest that does not look at ids counts what it stored before it was killed a second time",
  control: true,
  async run(report) {
    const stats = await createTestDatabase("stats");
    await stats.sql`ALTER TABLE click DROP CONSTRAINT click_pkey`;
    await killBetween(stats, [someClicks(BATCH)]);
    report.check("rows and different ids", await countClicks(stats), { rows: 2 * BATCH, ids: BATCH });
    report.check("roll-ups that differ from the clicks", (await findRollupFaults(stats)).length > 0, true);
    await stats.drop();
  },
};

const SENDERS = 4;
/** Each fault once. */
const ROUNDS = 6;

/** Breaks something of the statistics, a while after it was called. */
type Fault = { name: string; strike: () => Promise<unknown> };

async function runWithFaults(report: Report, stats: TestDatabase): Promise<number> {
  return closingAfterwards(async (later) => {
    const ingests = await Promise.all([1, 2].map(() => startMortalIngest(stats.url, { WRITE_TIMEOUT_MS: "1500" })));
    for (const { stop } of ingests) later(stop);
    const faults: Fault[] = [
      { name: "one ingest killed", strike: async () => ingests[0]?.restart() },
      { name: "the other one killed", strike: async () => ingests[1]?.restart() },
      { name: "connections ended", strike: () => terminateConnections(stats) },
      { name: "roll-ups locked", strike: () => whileLocked(stats, "click_hour") },
      { name: "days locked", strike: () => whileLocked(stats, "click_day") },
      { name: "clicks locked", strike: () => whileLocked(stats, "click") },
    ];
    const ids = new Set<string>();
    const struck = new Set<string>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const pool = someClicks(BATCH);
      for (const { id } of pool) ids.add(id);
      const fault = faults[round % faults.length];
      const strike = pause(Math.random() * MOMENTS_MS).then(() => fault?.strike());
      // Each sender has some of them, so that most are sent more than once, and each batch comes twice.
      await mapConcurrently(Array.from({ length: SENDERS }), SENDERS, async () => {
        const from = Math.floor(Math.random() * BATCH);
        const batch = [...pool.slice(from), ...pool.slice(0, BATCH / 2)];
        for (let times = 0; times < 2; times += 1) {
          const ingest = ingests[Math.floor(Math.random() * 2)];
          await sendUntilCounted(() => ingest?.url ?? "", batch);
        }
      });
      await sendUntilCounted(() => ingests[0]?.url ?? "", pool);
      await strike;
      struck.add(fault?.name ?? "");
    }
    report.note([...struck].join(", "));
    return ids.size;
  });
}

/** Longer than a writer waits for a lock, and shorter than a sender waits for its answer. */
const LOCKED_MS = 400;

async function whileLocked({ sql }: TestDatabase, table: string): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`LOCK TABLE ${tx(table)} IN ACCESS EXCLUSIVE MODE`;
    await pause(LOCKED_MS);
  });
}

export const c6: EvidenceCase = {
  id: "C6",
  shows:
    "after a run in which two ingests were killed, cut off and locked out while they stored the same clicks, every roll-up of every hour and dimension is the number of different click ids",
  async run(report) {
    const stats = await createTestDatabase("stats");
    const sent = await runWithFaults(report, stats);
    report.check("rows and different ids", await countClicks(stats), { rows: sent, ids: sent });
    report.check("roll-ups that differ from the clicks", await findRollupFaults(stats), []);
    report.check("dead letters", await countDead(stats), 0);
    await stats.drop();
  },
};

async function countDead({ sql }: TestDatabase): Promise<number> {
  const [row] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM dead_click`;
  return row?.n ?? -1;
}

export const c6c: EvidenceCase = {
  id: "C6c",
  shows: "roll-ups in a transaction of their own lack the clicks of an ingest that was killed between the two",
  control: true,
  async run(report) {
    const stats = await createTestDatabase("stats");
    // What the ingest stores is added up after its commit only: here never, as it is killed before it comes to that.
    await takeOut(stats, "store_counted_clicks", "PERFORM add_roll_ups(", "PERFORM no_roll_up(");
    const [row] = await stats.sql<{ args: string }[]>`
      SELECT pg_get_function_identity_arguments('add_roll_ups'::regproc) AS args`;
    await stats.sql.unsafe(`CREATE FUNCTION no_roll_up(${row?.args}) RETURNS void LANGUAGE sql AS ''`);
    const batches = [someClicks(BATCH), someClicks(BATCH)];
    const told = await killBetween(stats, batches);
    report.check("its successor meets duplicates only", sumOf(told, "inserted"), 0);
    report.check("roll-ups that differ from the clicks", (await findRollupFaults(stats)).length > 0, true);
    await stats.drop();
  },
};
