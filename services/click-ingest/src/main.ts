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
import { createBodyReader } from "./http/batch-body.ts";
import { createIngestMetrics } from "./metrics.ts";
import { createDropReports } from "./queue/drop-reports.ts";
import { createIntake } from "./queue/intake.ts";
import { createLedger } from "./queue/ledger.ts";
import { createWriter } from "./queue/writer.ts";
import { createReadiness } from "./readiness.ts";
import { createClickStore } from "./store/clicks.ts";
import { createDayValues } from "./store/day-values.ts";
import { createDropStore } from "./store/drops.ts";
import { createStatsStore } from "./store/stats.ts";

/** One connection stores; the other is there while a statement that got no answer is being cancelled. */
const WRITER_CONNECTIONS = 2;
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
  const openPool = (purpose: string, max: number, maxPending: number) => {
    const database = createDatabase({
      url: config.STATS_DATABASE_URL,
      applicationName: `linkfence-click-ingest-${purpose}`,
      max,
      maxPending,
      queryTimeoutMs: config.QUERY_TIMEOUT_MS,
      onWarning: (message) => logger.warn(message, { pool: purpose }),
    });
    onStop(() => database.close());
    return database;
  };
  // Two pools, so that reading statistics can never keep clicks from being stored.
  const writerPool = openPool("writer", WRITER_CONNECTIONS, READS_PENDING_MAX);
  const readerPool = openPool("reader", config.DATABASE_POOL_MAX, READS_PENDING_MAX);

  const clicks = createClickStore(writerPool);
  const ledger = createLedger();
  const bodies = createBodyReader();
  const intake = createIntake({
    maxClicks: config.INTAKE_MAX_CLICKS,
    maxBytes: config.INTAKE_MAX_BYTES,
    deadlineMs: config.WRITE_TIMEOUT_MS,
  });
  const writer = createWriter({ intake, insert: clicks.insert, batchMax: config.BATCH_MAX, logger });
  const dayValues = createDayValues(readerPool, Date.now);
  const addUp = () =>
    dayValues.maintain().catch((error: unknown) => logger.warn("days could not be added up", { error }));
  const adding = setInterval(addUp, DAY_VALUES_EVERY_MS);
  onStop(() => clearInterval(adding));
  const drops = createDropReports({ note: createDropStore(readerPool).note, logger, now: Date.now });
  const pools = { writer: writerPool, reader: readerPool };
  const metrics = createIngestMetrics({ ledger, intake, writer, drops, dayValues, bodies, pools });

  const ops = await listen(createOpsHandler(metrics, createReadiness(intake, clicks)), {
    host: config.HOST,
    port: config.OPS_PORT,
    maxConnections: OPS_CONNECTIONS_MAX,
  });
  onStop(() => ops.close(1000));

  writer.start();
  onStop(() => writer.stop());

  const app = createApp({ intake, ledger, stats: createStatsStore(readerPool), drops, logger, bodies });
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
