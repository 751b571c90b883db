import { randomBytes } from "node:crypto";
import { createDatabase } from "@linkfence/db";
import {
  configOrExit,
  createLogger,
  createMetrics,
  createOpsHandler,
  listen,
  runService,
} from "@linkfence/service-shell";
import { createApp } from "./app.ts";
import { readWriteConfig } from "./config.ts";
import { createCounts } from "./counts.ts";
import { generateCode } from "./domain/code.ts";
import { ownHostOf } from "./domain/target.ts";
import { createBodyBudget } from "./http/body-budget.ts";
import { toDatabaseProblem } from "./http/database-problem.ts";
import { createImporter } from "./imports/importer.ts";
import { createImports } from "./imports/imports.ts";
import { registerMetrics } from "./metrics.ts";
import { checkReadiness } from "./readiness.ts";
import { createStatistics } from "./statistics.ts";
import { createKeyStore } from "./store/api-keys.ts";
import { createIdempotency } from "./store/idempotency.ts";
import { createImportBatches } from "./store/import-batches.ts";
import { createImportLocks } from "./store/import-lock.ts";
import { createImportStore } from "./store/imports.ts";
import { createKeyedLinkStore } from "./store/keyed-links.ts";
import { createLinkStore } from "./store/links.ts";
import { createLinkListing } from "./store/listing.ts";
import { createSweeper } from "./sweeper.ts";

/** Six batches of the greatest size, or hundreds of usual ones; at work each takes several times its size. */
const BATCH_BYTES = 64 * 1024 * 1024;
/** Far more than a pool of ten connections can serve; beyond it waiting would only grow. */
const MAX_CONNECTIONS = 1000;
/** Probes and a scraper or two. */
const MAX_OPS_CONNECTIONS = 50;
/** A caller waits this long for statistics before it is told that there are none. */
const STATISTICS_TIMEOUT_MS = 2000;
/** Longer than any creation takes that goes well, shorter than a caller's patience. */
const KEY_WAIT_MS = 1000;
/** Of the pool, what may wait for keys that are in use; the rest goes on working. */
const KEY_WAITERS_SHARE = 0.25;
/** Expired answers are out of use at once, so that removing them has time. */
const SWEEP = { intervalMs: 60_000, batch: 500, maxBatches: 100 };
/** Each takes one of two processors for some of the time; a third would take what other requests need. */
const IMPORT_PLACES = 2;
/** A batch takes some ten milliseconds; only a database in trouble takes this long, and its client waits for it. */
const IMPORT_BATCH_TIMEOUT_MS = 10_000;
/** Requests end within their database deadlines; the process must be gone before an orchestrator kills it. */
const DRAIN_MS = 12_000;

const config = configOrExit(() => readWriteConfig(process.env));
const logger = createLogger("write", config.LOG_LEVEL);

await runService(logger, async (onStop) => {
  const db = createDatabase({
    url: config.DATABASE_URL,
    applicationName: "linkfence-write",
    max: config.DATABASE_POOL_MAX,
    queryTimeoutMs: config.QUERY_TIMEOUT_MS,
    onWarning: (message) => logger.warn(message),
  });
  onStop(() => db.close());

  // Connections of their own, two for each import: whatever they do, those of all other calls stay free.
  const importDb = createDatabase({
    url: config.DATABASE_URL,
    applicationName: "linkfence-write-import",
    max: IMPORT_PLACES * 2,
    queryTimeoutMs: config.QUERY_TIMEOUT_MS,
    onWarning: (message) => logger.warn(message),
  });
  onStop(() => importDb.close());

  const counts = createCounts();
  const budget = createBodyBudget(BATCH_BYTES);
  const newCode = (length: number) => generateCode(length, randomBytes);
  const idempotency = createIdempotency({
    db,
    counts,
    waitMs: KEY_WAIT_MS,
    maxWaiting: Math.max(1, Math.floor(config.DATABASE_POOL_MAX * KEY_WAITERS_SHARE)),
    queryTimeoutMs: config.QUERY_TIMEOUT_MS,
  });
  const shortUrlBase = new URL("/", config.PUBLIC_BASE_URL).href;
  const statistics = createStatistics({
    baseUrl: config.CLICK_INGEST_URL,
    timeoutMs: STATISTICS_TIMEOUT_MS,
    onChange: (error) =>
      error === undefined
        ? logger.info("statistics can be read again")
        : logger.warn("statistics cannot be read", { error }),
  });
  const importStore = createImportStore(db);
  const imports = createImports({
    importer: createImporter({
      store: createImportStore(importDb),
      batches: createImportBatches({ db: importDb, newCode, counts, timeoutMs: IMPORT_BATCH_TIMEOUT_MS }),
      locks: createImportLocks(importDb, config.QUERY_TIMEOUT_MS),
      rules: { ownHosts: [ownHostOf(config.PUBLIC_BASE_URL)], privateHosts: config.TARGET_PRIVATE_HOSTS },
      now: Date.now,
      counts,
    }),
    ...{ counts, places: IMPORT_PLACES, maxBytes: config.IMPORT_MAX_BYTES, toProblem: toDatabaseProblem },
  });
  const metrics = createMetrics();
  registerMetrics(metrics, { counts, statistics, budget, idempotency, db, imports });
  const opsHandler = createOpsHandler(metrics, () => checkReadiness(db));
  const opsListen = { port: config.OPS_PORT, host: config.HOST, maxConnections: MAX_OPS_CONNECTIONS };
  const ops = await listen(opsHandler, opsListen);
  onStop(() => ops.close(1000));

  const sweeper = createSweeper({
    ...SWEEP,
    sweep: idempotency.sweep,
    counts: counts.sweeps,
    onFailure: (error) => logger.warn("expired idempotency records could not be removed", { error }),
  });
  sweeper.start();
  onStop(() => sweeper.stop());

  const app = createApp({
    listing: createLinkListing(db, counts),
    links: createLinkStore({ db, counts, newCode }),
    keyedLinks: createKeyedLinkStore({ db, idempotency, counts, newCode, shortUrlBase }),
    keys: createKeyStore(db),
    imports,
    importStore,
    statistics,
    budget,
    counts,
    logger,
    publicBaseUrl: config.PUBLIC_BASE_URL,
    privateHosts: config.TARGET_PRIVATE_HOSTS,
    now: Date.now,
  });
  const server = await listen(app, { port: config.PORT, host: config.HOST, maxConnections: MAX_CONNECTIONS });
  onStop(() => server.close(DRAIN_MS));
  onStop(() => imports.stop());
  logger.info("listening", { port: server.port, opsPort: ops.port });
});
