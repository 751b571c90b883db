// All that exports are made of, put together; nothing of it is there where no directory is given for the files.
import { hostname } from "node:os";
import type { Database } from "@linkfence/db";
import type { Logger } from "@linkfence/service-shell";
import type { IngestConfig } from "../config.ts";
import { createExportWork } from "../store/export-work.ts";
import { createExportStore } from "../store/exports.ts";
import type { Chore } from "../upkeep.ts";
import { createDirectoryFiles } from "./export-files.ts";
import { createGiveWay } from "./give-way.ts";
import { createLeftovers } from "./leftovers.ts";
import { createExportRunner } from "./runner.ts";
import { createFileWriter } from "./write-file.ts";

export type ExportParts = {
  config: IngestConfig;
  /** For what owners ask, and for what workers tell: so that no number of questions can cost a worker its lease. */
  pools: { desk: Database; work: Database };
  /** Whether clicks wait to be stored. */
  busy: () => boolean;
  /** Whether an export may begin: each holds a lock on the clicks for as long as it reads. */
  mayBegin: () => boolean;
  logger: Logger;
};
export type Exports = NonNullable<ReturnType<typeof openExports>>;

/** Leftovers of a dead worker, and what is no longer kept, lie about for so long at the most. */
const TIDY_EVERY_MS = 60_000;
/** Counting the jobs reads all of them. */
const MEASURE_EVERY_MS = 15_000;
const HOUR_SECONDS = 3600;

/** Creates all of it; the workers start with `runner.start`. */
export function openExports({ config, pools, busy, mayBegin, logger }: ExportParts) {
  const { EXPORT_DIR: root } = config;
  if (root === undefined) return undefined;
  const keptSeconds = config.EXPORT_RETENTION_HOURS * HOUR_SECONDS;
  const work = createExportWork(pools.work, { leaseMs: config.EXPORT_LEASE_MS, keptSeconds });
  const files = createDirectoryFiles(root, remembered(work.directory));
  const bounds = { ownerMax: config.EXPORT_QUEUE_OWNER_MAX, totalMax: config.EXPORT_QUEUE_MAX };
  const store = createExportStore(pools.desk, bounds, { keptSeconds });
  const leftovers = createLeftovers(files, work);
  const way = createGiveWay(busy);
  const writer = createFileWriter({
    files,
    url: config.STATS_DATABASE_URL,
    connectTimeoutMs: config.QUERY_TIMEOUT_MS,
    timeoutMs: config.EXPORT_TIMEOUT_MS,
    rowsMax: config.EXPORT_ROWS_MAX,
    bytesMax: async (id) => config.EXPORT_DISK_MAX_BYTES - (await work.bytesBeside(id)),
    retentionDays: config.CLICK_RETENTION_DAYS,
    giveWay: way.giveWay,
    now: Date.now,
  });
  const tidy = () => leftovers.tidy().catch((error: unknown) => logger.warn("exports cannot be tidied up", { error }));
  const runner = createExportRunner({
    work,
    writer,
    workers: config.EXPORT_WORKERS,
    mayBegin,
    name: `${hostname()}:${process.pid}`.slice(-100),
    logger,
    onLeftover: () => void tidy(),
  });
  let measured: Awaited<ReturnType<typeof work.measure>> = { jobs: {}, bytes: 0 };
  const chores: Chore[] = [
    { name: "exports", everyMs: TIDY_EVERY_MS, work: leftovers.tidy },
    {
      name: "export-jobs",
      everyMs: MEASURE_EVERY_MS,
      work: async () => {
        measured = await work.measure();
      },
    },
  ];
  const stats = () => ({
    ...measured,
    bytesMax: config.EXPORT_DISK_MAX_BYTES,
    ...bounds,
    ...runner.stats(),
    ...leftovers.stats(),
    ...way.stats(),
  });
  return { store, files, runner, chores, stats };
}

/** Asks once; and again where that failed. */
function remembered<T>(ask: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | undefined;
  return () => {
    known ??= ask().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
}
