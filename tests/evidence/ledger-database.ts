// What the statistics database can do to clicks: other days, locks, deadlocks, no room, slowness.

import { execFile } from "node:child_process";
import { chown, mkdtemp, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDatabase } from "@linkfence/db";
import {
  createTestDatabase,
  findRollupFaults,
  readMetric,
  startFaultProxy,
  type TestDatabase,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import { DATA_CLASSES, judgeFailure } from "../../services/click-ingest/src/domain/failure.ts";
import { createIntake } from "../../services/click-ingest/src/queue/intake.ts";
import { createWriter } from "../../services/click-ingest/src/queue/writer.ts";
import { createClickDays } from "../../services/click-ingest/src/store/click-days.ts";
import { createClickStore } from "../../services/click-ingest/src/store/clicks.ts";
import { createDeadClicks } from "../../services/click-ingest/src/store/dead-clicks.ts";
import { createIsolation } from "../../services/click-ingest/src/store/isolation.ts";
import { countClicks } from "./click-account.ts";
import { idAt, sendUntilCounted, someClicks, startMortalIngest, YESTERDAY } from "./click-senders.ts";
import { closingAfterwards } from "./closing.ts";
import { startOwnServer } from "./own-server.ts";
import type { EvidenceCase, Report } from "./report.ts";

const DAY_MS = 86_400_000;

export const c7: EvidenceCase = {
  id: "C7",
  shows: "clicks around midnight and the end of a month are stored once, sent as often and in such parts as one likes",
  async run(report) {
    await closingAfterwards(async (later) => {
      const stats = await createTestDatabase("stats");
      later(stats.drop);
      const ingest = await startMortalIngest(stats.url);
      later(ingest.stop);
      // Forty midnights: a month ends among them, at least once.
      const times = Array.from({ length: 40 }, (_, n) => YESTERDAY - n * DAY_MS).flatMap((day) => [
        day - 1,
        day,
        day + 1,
      ]);
      const clicks = times.flatMap((at) => someClicks(2, { at }));
      const send = (part: typeof clicks) => sendUntilCounted(() => ingest.url, part);
      for (const size of [7, 50, 240])
        for (let from = 0; from < clicks.length; from += size) await send(clicks.slice(from, from + size));
      report.check("rows and different ids", await countClicks(stats), { rows: 240, ids: 240 });
      report.check("roll-ups that differ from the clicks", await findRollupFaults(stats), []);
      const [row] = await stats.sql<{ days: number }[]>`SELECT count(DISTINCT tableoid)::int AS days FROM click`;
      report.check("days they lie in", row?.days, 41);
    });
  },
};

export const c7c: EvidenceCase = {
  id: "C7c",
  shows: "in partitions by the time of arrival a click that is sent again after midnight is stored twice",
  control: true,
  async run(report) {
    const { sql, drop } = await createTestDatabase("empty");
    await sql.unsafe(`
      CREATE TABLE by_time (click_id uuid, clicked_at timestamptz, PRIMARY KEY (click_id, clicked_at))
        PARTITION BY RANGE (clicked_at);
      CREATE TABLE by_time_any PARTITION OF by_time DEFAULT;`);
    const id = idAt(YESTERDAY - 1);
    for (const at of [YESTERDAY - 1, YESTERDAY])
      await sql`INSERT INTO by_time VALUES (${id}, ${new Date(at)}) ON CONFLICT (click_id, clicked_at) DO NOTHING`;
    report.check("rows of one click", (await sql`SELECT FROM by_time`).length, 2);
    await drop();
  },
};

/** Has the next statements that store clicks fail as one that lost a deadlock does. */
async function loseDeadlocks({ sql }: TestDatabase, times: number): Promise<void> {
  await sql.unsafe(`
    CREATE SEQUENCE deadlocks;
    CREATE FUNCTION lose_deadlock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('deadlocks') <= ${times} THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER lose_deadlock AFTER INSERT ON click FOR EACH STATEMENT EXECUTE FUNCTION lose_deadlock()`);
}

/** Stores a hundred clicks by the product's writer, which holds these classes of failures to be the clicks' fault. */
async function storeOverDeadlocks(stats: TestDatabase, dataClasses: ReadonlySet<string>) {
  const database = createDatabase({ url: stats.url, applicationName: "evidence", max: 2, queryTimeoutMs: 2000 });
  const days = createClickDays(database, { retentionDays: 400, timeoutMs: 2000 });
  const { insert } = createClickStore({ database, days, valuesMax: 100 });
  const deadClicks = createDeadClicks(database, { rowsMax: 100, bytesMax: 1_000_000, timeoutMs: 2000 });
  const part = { budgetMs: 1000, timeoutMs: 3000, dataClasses };
  const isolate = createIsolation({ database, days, deadClicks, valuesMax: 100, ...part });
  const judge = (code: string) => (dataClasses.has(code.slice(0, 2)) ? "poison" : judgeFailure(code));
  const intake = createIntake({ maxClicks: 1000, maxBytes: 10_000_000, deadlineMs: 20_000 });
  const quiet = () => {};
  const logger = { error: quiet, warn: quiet, info: quiet, debug: quiet };
  const writer = createWriter({ intake, insert, isolate, batchMax: 1000, logger, judge });
  writer.start();
  const origin = { sender: "evidence", payloadOf: (click: object) => JSON.stringify(click) };
  const outcome = await intake.offer(someClicks(100), new AbortController().signal, origin);
  await writer.stop();
  await database.close();
  return outcome.kind === "stored" ? { inserted: outcome.inserted, dead: outcome.buried } : outcome;
}

export const c8: EvidenceCase = {
  id: "C8",
  shows: "a deadlock is nobody's fault: the clicks of the transaction that lost it are stored by the next one",
  async run(report) {
    const stats = await createTestDatabase("stats");
    await loseDeadlocks(stats, 3);
    report.check("of 100 clicks", await storeOverDeadlocks(stats, DATA_CLASSES), { inserted: 100, dead: 0 });
    report.check("roll-ups that differ from the clicks", await findRollupFaults(stats), []);
    await stats.drop();
  },
};

export const c8c: EvidenceCase = {
  id: "C8c",
  shows: "a writer that takes a deadlock for the clicks' fault makes dead letters of good clicks",
  control: true,
  async run(report) {
    const stats = await createTestDatabase("stats");
    // All of them, a hundred, ten, and one alone.
    await loseDeadlocks(stats, 4);
    const outcome = await storeOverDeadlocks(stats, new Set([...DATA_CLASSES, "40"]));
    report.check("of 100 good clicks", outcome, { inserted: 99, dead: 1 });
    await stats.drop();
  },
};

const run = promisify(execFile);

/** A few of the database's pages more than the cluster's own: it is full after some thousand clicks. */
const SMALL_DISK = "2m";

export const c9: EvidenceCase = {
  id: "C9",
  shows:
    "with the disk of the statistics full, senders keep their batches and no click is blamed; with room made, each is stored and added up once",
  async missing() {
    const probe = await mkdtemp(join(tmpdir(), "linkfence-mount-"));
    const mounted = await run("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", probe]).then(
      () => true,
      () => false,
    );
    if (mounted) await run("umount", [probe]);
    await rm(probe, { recursive: true });
    return mounted ? null : "the right to mount a small file system";
  },
  async run(report) {
    await closingAfterwards(async (later) => {
      const server = await startOwnServer("stats");
      later(server.close);
      const disk = await mkdtemp(join(tmpdir(), "linkfence-disk-"));
      later(() => rm(disk, { recursive: true, force: true }));
      await run("mount", ["-t", "tmpfs", "-o", `size=${SMALL_DISK}`, "tmpfs", disk]);
      later(() => run("umount", [disk]));
      const { uid, gid } = await stat(join(server.directory, "cluster"));
      await chown(disk, uid, gid);
      // Only the clicks lie there: a log that cannot be written ends the server, which is another fault.
      await server.sql.unsafe(`CREATE TABLESPACE small LOCATION '${disk}'`);
      later(async () => {
        await server.sql`DROP TABLE click CASCADE`;
        await server.sql`DROP TABLESPACE small`;
      });
      await server.sql.unsafe(`SELECT make_click_days('{}', 1, 400)`);
      const [day] = await server.sql<{ name: string }[]>`
        SELECT 'click_' || to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD') AS name`;
      await server.sql.unsafe(`ALTER TABLE ${day?.name} SET TABLESPACE small`);
      const filler = join(disk, "filler");
      await writeFile(filler, Buffer.alloc(1_900_000));
      await fillAndFree(report, server, () => truncate(filler, 0));
    });
  },
};

async function fillAndFree(
  report: Report,
  server: Awaited<ReturnType<typeof startOwnServer>>,
  free: () => Promise<void>,
) {
  await closingAfterwards(async (later) => {
    const ingest = await startMortalIngest(server.url, { WRITE_TIMEOUT_MS: "1000" });
    later(ingest.stop);
    const batches = Array.from({ length: 4 }, () => someClicks(1000, { at: YESTERDAY + 1 }));
    const sent = Promise.all(batches.map((batch) => sendUntilCounted(() => ingest.url, batch)));
    const full = () =>
      readMetric(ingest.service(), 'linkfence_ingest_batches_failed_total{sqlstate="53100"}').catch(() => 0);
    await waitFor("the disk to be full", async () => (await full()) >= 2);
    const [half] = await server.sql<{ added: number; rows: number }[]>`
      SELECT (SELECT count(*)::int FROM click) AS rows,
             (SELECT coalesce(sum(people_q0 + bots_q0 + prefetches_q0), 0)::int FROM click_hour) AS added`;
    report.check("rows that were added up meanwhile, all of them", half?.added, half?.rows);
    await free();
    const results = await sent;
    report.check(
      "dead letters and refused",
      results.map(({ deadLettered, refused }) => [deadLettered, refused]),
      Array(4).fill([0, 0]),
    );
    report.check("rows and different ids", await countClicks(server), { rows: 4000, ids: 4000 });
    report.check("roll-ups that differ from the clicks", await findRollupFaults(server), []);
    report.figure(`${await full()} transactions failed with 53100 (disk full)`);
  });
}

/** H33's number: more than the protocol can count as parameters of their own. */
const BACKLOG = 20_000;

export const c10: EvidenceCase = {
  id: "C10",
  shows:
    "20,000 clicks that were queued while the database was stopped are stored in few transactions when it is back, and those that come while it is slow are too: none is blamed",
  async run(report) {
    await closingAfterwards(async (later) => {
      const server = await startOwnServer("stats");
      later(server.close);
      const proxy = await startFaultProxy(server.port);
      later(proxy.close);
      const env = { WRITE_TIMEOUT_MS: "15000" };
      const ingest = await startMortalIngest(proxy.through(server.url), env);
      later(ingest.stop);
      await waitUntilReady(ingest.service());
      await server.stop();
      const batches = Array.from({ length: BACKLOG / 1000 }, () => someClicks(1000));
      const sent = Promise.all(batches.map((batch) => sendUntilCounted(() => ingest.url, batch)));
      const queued = () => readMetric(ingest.service(), "linkfence_ingest_intake_clicks");
      await waitFor("the backlog to be queued", async () => (await queued()) === BACKLOG);
      await server.start();
      const results = await sent;
      report.check(
        "inserted",
        results.map(({ inserted }) => inserted),
        batches.map(() => 1000),
      );
      const transactions = await readMetric(ingest.service(), "linkfence_ingest_batches_stored_total");
      report.check(
        "more than one transaction, and fewer than batches",
        transactions > 1 && transactions < batches.length,
        true,
      );

      // A tenth of a second each way: what takes longer than a statement may is given back, not blamed.
      proxy.delay(100, 2_000_000);
      const slow = someClicks(1000);
      await sendUntilCounted(() => ingest.url, slow);
      proxy.delay(0);
      report.check("rows and different ids", await countClicks(server), { rows: BACKLOG + 1000, ids: BACKLOG + 1000 });
      report.check("roll-ups that differ from the clicks", await findRollupFaults(server), []);
      const [dead] = await server.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM dead_click`;
      report.check("dead letters", dead?.n, 0);
      report.figure(`${BACKLOG} clicks in ${transactions} transactions`);
    });
  },
};
