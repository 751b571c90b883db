// Exports whose workers die, are stopped and come back, or have more to do than they can: what becomes of the files.
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ExportJob, type ExportOrder, hasEnded } from "@linkfence/contracts";
import {
  createTestDatabase,
  type RunningService,
  startFaultProxy,
  type TestDatabase,
  waitFor,
} from "@linkfence/testkit";
import { fillClicks } from "../../services/click-ingest/src/test-support/export-clicks.ts";
import { YESTERDAY } from "./click-senders.ts";
import { closingAfterwards } from "./closing.ts";
import { startExporter } from "./exporter.ts";
import { forgetPeak, readMemory } from "./process-memory.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { mountAllowed, mountSmallDisk } from "./spool-disk.ts";
import { takeOut } from "./take-out.ts";

/** At a quarter of a KiB each, far more than buffers hold. */
const CLICKS = 40_000;
/** Slow enough to be met in the middle. */
const BYTES_PER_SECOND = 5_000_000;
/** So slow that nobody who is met early is done before it can be stopped: a minute. */
const CRAWLING = 200_000;
const ORDER: ExportOrder = {
  owner: "ann",
  orderedBy: "evidence",
  idempotencyKey: null,
  digest: "0".repeat(64),
  codes: null,
  from: null,
  to: YESTERDAY + 86_400_000,
  format: "csv",
  gzip: false,
};

type World = Awaited<ReturnType<typeof openWorld>>;

/** A database with clicks, a slow way to it, and a directory for files. */
async function openWorld(later: (close: () => unknown) => void, clicks = CLICKS) {
  const stats = await createTestDatabase("stats");
  later(stats.drop);
  await fill(stats, "ann", clicks);
  const proxy = await startFaultProxy(Number(new URL(stats.url).port));
  later(proxy.close);
  const directory = await mkdtemp(join(tmpdir(), "linkfence-exports-"));
  later(() => rm(directory, { recursive: true, force: true }));
  const start = async (env: Record<string, string> = {}) => {
    const settings = { EXPORT_DIR: directory, EXPORT_LEASE_MS: "2000", EXPORT_WORKERS: "1", QUERY_TIMEOUT_MS: "10000" };
    const exporter = await startExporter(proxy.through(stats.url), { ...settings, ...env });
    later(() => exporter.service.kill("SIGCONT"));
    later(exporter.service.stop);
    return exporter;
  };
  return {
    stats,
    start,
    slow: (bytesPerSecond = BYTES_PER_SECOND) => proxy.delay(0, bytesPerSecond),
    fast: () => proxy.delay(0),
    async files(): Promise<string[]> {
      const [store] = await readdir(directory);
      return store === undefined ? [] : readdir(join(directory, store));
    },
    read: ({ file }: ExportJob) => readFile(join(directory, file?.place ?? "none"), "utf8"),
  };
}

/** Puts clicks of yesterday into the table. */
async function fill(stats: TestDatabase, owner: string, count: number, from = 0): Promise<void> {
  await stats.sql`SELECT attach_click_day((${new Date(YESTERDAY)}::timestamptz AT TIME ZONE 'UTC')::date)`;
  await fillClicks(stats, { owner, count, from, at: YESTERDAY });
}

const half = (job: ExportJob) => job.rows >= CLICKS / 2;

/** What stands in the file of a job: rows, and different ids. */
async function countRows({ read }: World, job: ExportJob) {
  const ids = (await read(job))
    .split("\r\n")
    .slice(1, -1)
    .map((row) => row.slice(0, 36));
  return { rows: ids.length, ids: new Set(ids).size };
}

async function kill(service: RunningService): Promise<void> {
  service.kill("SIGKILL");
  await service.exited;
}

export const x1: EvidenceCase = {
  id: "X1",
  shows:
    "an export whose worker is killed with SIGKILL halfway is begun anew by the next one and has every click once; one whose worker is killed at each of its three attempts has failed, and no file stays behind",
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later);
      world.slow();
      const first = await world.start();
      const { id } = await first.order(ORDER);
      await first.until(id, half);
      await kill(first.service);
      world.fast();
      const second = await world.start();
      const job = await second.until(id, hasEnded);
      report.check("its end and its attempts", [job.state, job.attempts], ["SUCCEEDED", 2]);
      report.check("rows and different ids", await countRows(world, job), { rows: CLICKS, ids: CLICKS });
      report.check("rows that the job tells", job.rows, CLICKS);

      world.slow();
      const doomed = await second.order(ORDER);
      let worker = second;
      for (const attempt of [1, 2, 3]) {
        await worker.until(doomed.id, ({ attempts, rows }) => attempts === attempt && rows > 0);
        await kill(worker.service);
        if (attempt === 3) world.fast();
        worker = await world.start();
      }
      const lost = await worker.until(doomed.id, hasEnded);
      report.check("of the other one", [lost.state, lost.attempts, lost.error?.code], ["FAILED", 3, "worker-lost"]);
      // The next process to start looks at what lies there.
      await kill(worker.service);
      await world.start();
      await waitFor("the files of dead workers to be removed", async () => (await world.files()).length === 1);
      report.check("files that are left", (await world.files()).length, 1);
      report.figure(`killed 4 times at ${CLICKS} clicks: one file, with all of them once`);
    });
  },
};

/**
 * One worker is stopped halfway, another one takes its job up and is halfway too when the first one goes on. Resolves with
 * the job as it is told when both have ended.
 */
async function overtake(world: World) {
  world.slow();
  const late = await world.start();
  const { id } = await late.order(ORDER);
  const { attempts: before } = await late.until(id, half);
  late.service.kill("SIGSTOP");
  world.slow(CRAWLING);
  // Its own lease is not to end while it is stopped, however long the late one takes to notice.
  const next = await world.start({ EXPORT_LEASE_MS: "60000" });
  await next.until(id, ({ attempts, rows }) => attempts > before && rows > 0 && rows < CLICKS / 2);
  next.service.kill("SIGSTOP");
  world.fast();
  late.service.kill("SIGCONT");
  const over = (record: { message: string }) =>
    record.message === "an export was left" || record.message === "export written";
  const { message } = await late.service.logged(over);
  const between = await late.until(id, () => true);
  const file = await world.read(between).then(
    (text) => `${text.length} characters`,
    ({ code }: NodeJS.ErrnoException) => code,
  );
  next.service.kill("SIGCONT");
  await next.service.logged(over);
  return { told: message, before, between, file, job: await next.until(id, hasEnded) };
}

export const x2: EvidenceCase = {
  id: "X2",
  shows:
    "a worker that was stopped beyond its lease and goes on writes nothing about the job that another one has taken up: the file is the newer one's, whole",
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later);
      const { told, before, between, job } = await overtake(world);
      report.check("the late worker", told, "an export was left");
      report.check("the job then", [between.state, between.attempts], ["RUNNING", before + 1]);
      report.check("its end", [job.state, job.attempts, job.rows], ["SUCCEEDED", before + 1, CLICKS]);
      report.check("rows and different ids", await countRows(world, job), { rows: CLICKS, ids: CLICKS });
    });
  },
};

export const x2c: EvidenceCase = {
  id: "X2c",
  shows:
    "without tokens the late worker ends the job that is no longer its own, while the file that it names is not there",
  control: true,
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later);
      const rule = "token = p_token AND file = p_file AND";
      for (const name of ["extend_export", "finish_export"]) await takeOut(world.stats, name, rule);
      const { told, between, file } = await overtake(world);
      report.check("the late worker", told, "export written");
      report.check("the job then", between.state, "SUCCEEDED");
      report.check("its file then", file, "ENOENT");
    });
  },
};

export const x6: EvidenceCase = {
  id: "X6",
  shows:
    "an export for which the disk has no room fails after three attempts, is told so, and leaves nothing; what fits is written",
  missing: mountAllowed,
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later);
      await fill(world.stats, "bob", 100, CLICKS);
      const disk = await mountSmallDisk();
      const exporter = await world.start({ EXPORT_DIR: disk.directory });
      later(async () => {
        await exporter.service.stop();
        await disk.unmount();
      });
      const job = await exporter.until((await exporter.order(ORDER)).id, hasEnded);
      report.check("the export", [job.state, job.attempts, job.error?.code], ["FAILED", 3, "storage-full"]);
      const files = async () =>
        (await readdir(disk.directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
      report.check("files that are left", (await files()).length, 0);
      const small = await exporter.until((await exporter.order({ ...ORDER, owner: "bob" })).id, hasEnded, "bob");
      report.check("another one, that fits", [small.state, small.rows], ["SUCCEEDED", 100]);
      report.check("files then", (await files()).length, 1);
    });
  },
};

/** More than a worker could keep: 70 MB of JSON Lines. */
const MANY = 180_000;
const MIB = 1024 ** 2;
const BOUND_MIB = 64;

export const x4: EvidenceCase = {
  id: "X4",
  shows: "a process that writes a large file has at no moment 64 MiB more in memory than before",
  missing: async () =>
    process.platform === "linux" ? null : "Linux, whose /proc tells the peak of a process's memory",
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later, MANY);
      const exporter = await world.start();
      // What every first file takes is not what a larger one takes.
      await exporter.until((await exporter.order({ ...ORDER, owner: "bob" })).id, hasEnded, "bob");
      const before = await readMemory(exporter.service.pid, "VmRSS");
      await forgetPeak(exporter.service.pid);
      const job = await exporter.until((await exporter.order({ ...ORDER, format: "jsonl" })).id, hasEnded);
      const more = (await readMemory(exporter.service.pid, "VmHWM")) - before;
      report.check("rows", job.rows, MANY);
      report.check("bytes of the file, at least", job.bytes > BOUND_MIB * MIB, true);
      report.check(`more memory than ${BOUND_MIB} MiB`, more > BOUND_MIB * MIB, false);
      report.figure(`${Math.round(job.bytes / MIB)} MiB of JSON Lines: ${Math.round(more / MIB)} MiB more at the peak`);
    });
  },
};

const HUNDRED = 100;

/** An owner orders a hundred exports, then another one one. Resolves with how many were begun before that one. */
async function overtakeHundred(world: World): Promise<number> {
  const desk = await world.start({ EXPORT_WORKERS: "0" });
  for (let count = 0; count < HUNDRED; count += 1) await desk.order(ORDER);
  const { id } = await desk.order({ ...ORDER, owner: "bob" });
  await world.start();
  await desk.until(id, hasEnded, "bob");
  const [row] = await world.stats.sql<{ before: number }[]>`
    SELECT count(*)::int AS before FROM export_job
     WHERE started_at < (SELECT started_at FROM export_job WHERE id = ${id})`;
  return row?.before ?? Number.NaN;
}

export const x5: EvidenceCase = {
  id: "X5",
  shows: "an owner's hundred exports do not keep another one's waiting: of those that wait it is the first or second",
  async run(report: Report) {
    await closingAfterwards(async (later) => {
      const before = await overtakeHundred(await openWorld(later, 10));
      report.check("at most one was begun before it", before <= 1, true);
      report.figure(`${before} of ${HUNDRED} began before it`);
    });
  },
};

export const x5c: EvidenceCase = {
  id: "X5c",
  shows: "in the order in which they came, another owner's export waits for all hundred",
  control: true,
  async run(report) {
    await closingAfterwards(async (later) => {
      const world = await openWorld(later, 10);
      const turns = "(SELECT max(s.started_at) FROM export_job s WHERE s.owner = next.owner) NULLS FIRST, ";
      await takeOut(world.stats, "claim_export", turns);
      report.check("begun before it", await overtakeHundred(world), HUNDRED);
    });
  },
};
