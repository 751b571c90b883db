import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type ExportJob, type ExportOrder, hasEnded } from "@linkfence/contracts";
import { createDatabase } from "@linkfence/db";
import { type TestDatabase, waitFor } from "@linkfence/testkit";
import { createDirectoryFiles, type ExportFiles } from "../exports/export-files.ts";
import { createLeftovers } from "../exports/leftovers.ts";
import { createExportRunner, type ExportRunner } from "../exports/runner.ts";
import { createFileWriter, type WriterOptions } from "../exports/write-file.ts";
import { createExportWork, type ExportWork } from "../store/export-work.ts";
import { createExportStore } from "../store/exports.ts";
import { createQuietLogger } from "./quiet-logger.ts";

export type ExportWorld = Awaited<ReturnType<typeof openExportWorld>>;
type Changes = {
  /** Instead of those in the database. */
  work?: (work: ExportWork) => ExportWork;
  files?: (files: ExportFiles) => ExportFiles;
  writer?: Partial<WriterOptions>;
  workers?: number;
  mayBegin?: () => boolean;
};

export const ANYTHING: ExportOrder = {
  owner: "ann",
  orderedBy: "key1",
  idempotencyKey: null,
  digest: "0".repeat(64),
  codes: null,
  from: null,
  to: 4_000_000_000_000,
  format: "csv",
  gzip: false,
};

/** Exports on a database and a directory of their own, with as many workers as a test starts. */
export async function openExportWorld(database: TestDatabase, { leaseMs = 60_000 } = {}) {
  const root = await mkdtemp(join(tmpdir(), "linkfence-exports-"));
  const pool = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
  const keeping = { keptSeconds: 3600 };
  const store = createExportStore(pool, { ownerMax: 1000, totalMax: 10_000 }, keeping);
  const work = createExportWork(pool, { ...keeping, leaseMs });
  const files = createDirectoryFiles(root, work.directory);
  const runners: ExportRunner[] = [];

  /** Starts a process's worth of workers. */
  function start(changes: Changes = {}) {
    const logger = createQuietLogger();
    const usedWork = changes.work?.(work) ?? work;
    const usedFiles = changes.files?.(files) ?? files;
    const writer = createFileWriter({
      files: usedFiles,
      url: database.url,
      connectTimeoutMs: 10_000,
      timeoutMs: 60_000,
      rowsMax: 1_000_000,
      bytesMax: async () => 1e12,
      retentionDays: 400,
      giveWay: () => undefined,
      now: Date.now,
      ...changes.writer,
    });
    const runner = createExportRunner({
      work: usedWork,
      writer,
      workers: changes.workers ?? 1,
      ...(changes.mayBegin ? { mayBegin: changes.mayBegin } : {}),
      name: randomBytes(4).toString("hex"),
      logger,
      pause: () => 1,
    });
    runners.push(runner);
    runner.start();
    return { runner, logger };
  }

  async function order(changes: Partial<ExportOrder> = {}): Promise<ExportJob> {
    const ordered = await store.order({ ...ANYTHING, ...changes });
    if (!("job" in ordered)) throw new Error(`not taken: ${ordered.outcome}`);
    for (const runner of runners) runner.wake();
    return ordered.job;
  }

  async function find({ owner, id }: { owner: string; id: string }): Promise<ExportJob> {
    const job = await store.find(owner, id);
    if (!job) throw new Error("the job is gone");
    return job;
  }

  /** Stops the workers. */
  async function pause(): Promise<void> {
    await Promise.all(runners.splice(0).map((runner) => runner.stop()));
  }

  return {
    root,
    store,
    work,
    files,
    leftovers: createLeftovers(files, work),
    start,
    order,
    find,
    pause,
    /** A job once it has ended. */
    ended: ({ owner, id }: { owner: string; id: string }) =>
      waitFor("the end of the export", async () => {
        const job = await find({ owner, id });
        return hasEnded(job) && job;
      }),
    /** Text of a file. */
    async read({ file, gzip }: ExportJob): Promise<string> {
      const bytes = await readFile(join(root, file?.place ?? "none"));
      return (gzip ? gunzipSync(bytes) : bytes).toString("utf8");
    },
    /** Puts a file into the directory that nobody knows of. */
    async leave(name: string): Promise<void> {
      const directory = join(root, await work.directory());
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, name), "left");
    },
    /** All that lies in the directory. */
    async names(): Promise<string[]> {
      return readdir(join(root, await work.directory())).catch(() => []);
    },
    async close(): Promise<void> {
      await pause();
      await pool.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
