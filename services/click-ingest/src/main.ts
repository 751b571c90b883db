import { createDatabase } from "@linkfence/db";
import {
  configOrExit,
  createLogger,
  createOpsHandler,
  listen,
  registerServerMetrics,
  runService,
} from "@linkfence/service-shell";
import { createApp } from "./app.ts";
import { readIngestConfig } from "./config.ts";
import { createClickRate } from "./exports/click-rate.ts";
import { openExports } from "./exports/open-exports.ts";
import { createAuthentication } from "./http/authenticate.ts";
import { createBodyReader } from "./http/batch-body.ts";
import { createIngestMetrics } from "./metrics.ts";
import { createDropReports } from "./queue/drop-reports.ts";
import { createIntake } from "./queue/intake.ts";
import { createLedger } from "./queue/ledger.ts";
import { createWriter } from "./queue/writer.ts";
import { createReadiness } from "./readiness.ts";
import { prepareColumns } from "./store/click-columns.ts";
import { createClickDays } from "./store/click-days.ts";
import { createClickStore } from "./store/clicks.ts";
import { createDayValues } from "./store/day-values.ts";
import { createDeadClicks } from "./store/dead-clicks.ts";
import { createDropStore } from "./store/drops.ts";
import { createIsolation } from "./store/isolation.ts";
import { createRefusals } from "./store/refusals.ts";
import { createStatsStore } from "./store/stats.ts";
import { createUpkeep } from "./upkeep.ts";

/** One connection stores; the other is there while a statement that got no answer is being cancelled. */
const WRITER_CONNECTIONS = 2;
/** One chore, one request's dead letters; and the one that is being cancelled. */
const KEEPER_CONNECTIONS = 3;
/** Requests whose dead letters wait at once, of up to 2 MiB each. */
const KEEPER_PENDING_MAX = 16;
/** Below the 15 s after which the server ends a request, and the 20 s of the role; a day's drop takes a few. */
const KEEPER_TIMEOUT_MS = 10_000;
/** Below the 200 ms that others wait for a lock: none of them fails for it. */
const ISOLATION_MS = 150;
/** Partitions are made eight days ahead: an hour is early enough, and often enough for what is no longer kept. */
const DAYS_EVERY_MS = 3_600_000;
/** An operator who has settled dead letters sees so within a scrape. */
const DEAD_EVERY_MS = 15_000;
/** One question of an owner, and the one that is being cancelled. */
const EXPORT_DESK_CONNECTIONS = 2;
/** What all workers have to tell is little, and comes once a second from each. */
const EXPORT_WORK_CONNECTIONS = 2;
/**
 * Clicks a second from which exports step back for good: redirects are at work on this machine, perhaps, and the database is.
 * Below, it takes a few per cent of either.
 */
const EXPORTS_REST_FROM = 500;
/** Statistics queries under way or waiting; a queue longer than this would only be answered after its deadline. */
const READS_PENDING_MAX = 100;
/** Redirect processes and write processes, with a few connections each. */
const CONNECTIONS_MAX = 512;
/** Whoever asks meanwhile reads hours, which say the same. */
const DAY_VALUES_EVERY_MS = 600_000;
/** Prometheus, an orchestrator's probes, and an operator. */
const OPS_CONNECTIONS_MAX = 32;

const config = configOrExit(() => readIngestConfig(process.env));
const logger = createLogger("click-ingest", config.LOG_LEVEL);

await runService(logger, async (onStop) => {
  const openPool = (purpose: string, max: number, maxPending: number, queryTimeoutMs = config.QUERY_TIMEOUT_MS) => {
    const database = createDatabase({
      url: config.STATS_DATABASE_URL,
      applicationName: `linkfence-click-ingest-${purpose}`,
      max,
      maxPending,
      queryTimeoutMs,
      onWarning: (message) => logger.warn(message, { pool: purpose }),
    });
    onStop(() => database.close());
    return database;
  };
  // Pools of their own, so that neither reading statistics nor keeping house can keep clicks from being stored.
  const writerPool = openPool("writer", WRITER_CONNECTIONS, READS_PENDING_MAX);
  const readerPool = openPool("reader", config.DATABASE_POOL_MAX, READS_PENDING_MAX);
  const keeperPool = openPool("keeper", KEEPER_CONNECTIONS, KEEPER_PENDING_MAX, KEEPER_TIMEOUT_MS);

  const days = createClickDays(keeperPool, {
    retentionDays: config.CLICK_RETENTION_DAYS,
    timeoutMs: config.QUERY_TIMEOUT_MS,
  });
  const clicks = createClickStore({ database: writerPool, days, valuesMax: config.DIMENSION_VALUES_MAX });
  const deadClicks = createDeadClicks(keeperPool, {
    rowsMax: config.DEAD_CLICKS_MAX,
    bytesMax: config.DEAD_CLICKS_MAX_BYTES,
    timeoutMs: config.QUERY_TIMEOUT_MS,
  });
  const intake = createIntake({
    maxClicks: config.INTAKE_MAX_CLICKS,
    maxBytes: config.INTAKE_MAX_BYTES,
    deadlineMs: config.WRITE_TIMEOUT_MS,
    prepare: prepareColumns,
  });
  const deskPool = openPool("exports", EXPORT_DESK_CONNECTIONS, READS_PENDING_MAX);
  const workPool = openPool("export-work", EXPORT_WORK_CONNECTIONS, READS_PENDING_MAX);
  const ledger = createLedger();
  const clicksAreMany = createClickRate(() => ledger.read().received, EXPORTS_REST_FROM);
  const exports = openExports({
    config,
    pools: { desk: deskPool, work: workPool },
    busy: () => intake.stats().clicks > 0 || bodies.stats().reading > 0 || clicksAreMany(),
    mayBegin: () => !days.isHeldUp(),
    logger,
  });
  const dayValues = createDayValues(keeperPool, Date.now);
  const upkeep = createUpkeep(
    [
      { name: "days", everyMs: DAYS_EVERY_MS, work: days.maintain },
      { name: "dead-clicks", everyMs: DEAD_EVERY_MS, work: deadClicks.measure },
      { name: "day-values", everyMs: DAY_VALUES_EVERY_MS, work: dayValues.maintain },
      ...(exports?.chores ?? []),
    ],
    logger,
  );
  const authentication = createAuthentication(config.CLICK_INGEST_SECRET);
  const bodies = createBodyReader();
  const isolate = createIsolation({
    database: writerPool,
    days,
    deadClicks,
    valuesMax: config.DIMENSION_VALUES_MAX,
    budgetMs: ISOLATION_MS,
    timeoutMs: config.QUERY_TIMEOUT_MS + ISOLATION_MS,
  });
  const writer = createWriter({ intake, insert: clicks.insert, isolate, batchMax: config.BATCH_MAX, logger });
  const drops = createDropReports({ note: createDropStore(readerPool).note, logger, now: Date.now });
  const pools = {
    writer: writerPool,
    reader: readerPool,
    keeper: keeperPool,
    exports: deskPool,
    "export-work": workPool,
  };
  const observed = {
    ledger,
    intake,
    writer,
    drops,
    dayValues,
    bodies,
    authentication,
    days,
    deadClicks,
    upkeep,
    exports,
    pools,
  };
  const metrics = createIngestMetrics(observed);

  const ops = await listen(createOpsHandler(metrics, createReadiness(intake, clicks)), {
    host: config.HOST,
    port: config.OPS_PORT,
    maxConnections: OPS_CONNECTIONS_MAX,
  });
  onStop(() => ops.close(1000));

  upkeep.start();
  onStop(() => upkeep.stop());
  writer.start();
  onStop(() => writer.stop());
  exports?.runner.start();
  onStop(() => exports?.runner.stop());

  const stats = createStatsStore(readerPool);
  const refusals = createRefusals(keeperPool);
  const desk = exports && { ...exports, wake: exports.runner.wake };
  const app = createApp({
    intake,
    deadClicks,
    refusals,
    ledger,
    stats,
    drops,
    exports: desk,
    logger,
    bodies,
    authentication,
  });
  const server = await listen(app, {
    host: config.HOST,
    port: config.PORT,
    maxConnections: CONNECTIONS_MAX,
    requireHost: false,
  });
  registerServerMetrics(metrics, server);
  onStop(() => {
    // Nothing new is taken in; what waits is answered by its deadline, and one second more lets the answers out.
    intake.close();
    return server.close(config.WRITE_TIMEOUT_MS + 1000);
  });
  logger.info("listening", { port: server.port, opsPort: ops.port });
});
