import { randomBytes } from "node:crypto";
import { createDatabase } from "@linkfence/db";
import { createWake } from "@linkfence/link-feed";
import {
  configOrExit,
  createLogger,
  createMetrics,
  createOpsHandler,
  listen,
  registerServerMetrics,
  runService,
} from "@linkfence/service-shell";
import { createApp } from "./app.ts";
import { createChangeStreams } from "./changes/streams.ts";
import { readWriteConfig } from "./config.ts";
import { createCounts } from "./counts.ts";
import { generateCode } from "./domain/code.ts";
import { ownHostOf } from "./domain/target.ts";
import { createRegistryWatch } from "./effective/registry-watch.ts";
import { createBodyBudget } from "./http/body-budget.ts";
import { toDatabaseProblem } from "./http/database-problem.ts";
import { createRateLimits } from "./http/rate-limits.ts";
import { readSince } from "./http/stats-routes.ts";
import { createImporter } from "./imports/importer.ts";
import { createImports } from "./imports/imports.ts";
import { createKeyUsage } from "./key-usage.ts";
import { createLiveCounts } from "./live/live-counts.ts";
import { registerLimitMetrics, registerMetrics } from "./metrics.ts";
import { openExports } from "./open-exports.ts";
import { checkReadiness } from "./readiness.ts";
import { createStatistics } from "./statistics.ts";
import { createKeyStore } from "./store/api-keys.ts";
import { createChangeStore } from "./store/changes.ts";
import { createClickListing } from "./store/click-listing.ts";
import { createIdempotency } from "./store/idempotency.ts";
import { createImportBatches } from "./store/import-batches.ts";
import { createImportLocks } from "./store/import-lock.ts";
import { createImportStore } from "./store/imports.ts";
import { createKeyListing } from "./store/key-listing.ts";
import { createKeyManagement } from "./store/key-management.ts";
import { createKeyedLinkStore } from "./store/keyed-links.ts";
import { createLinkStore } from "./store/links.ts";
import { createLinkListing } from "./store/listing.ts";
import { createRegistryStore } from "./store/registry.ts";
import { createSweeper } from "./sweeper.ts";

/** Six batches of the greatest size, or hundreds of usual ones; at work each takes several times its size. */
const BATCH_BYTES = 64 * 1024 * 1024;
/** Far more than a pool of ten connections can serve; beyond it waiting would only grow. */
const MAX_CONNECTIONS = 1000;
/** Probes and a scraper or two. */
const MAX_OPS_CONNECTIONS = 50;
/** A caller waits this long for statistics before it is told that there are none. */
const STATISTICS_TIMEOUT_MS = 2000;
/**
 * Who waits for a key waits as long as the creation that has it may take, QUERY_TIMEOUT_MS, and so much longer: a process on
 * a busy machine may have hundreds of requests to read before it comes to the answer. With three database calls around the
 * wait, at their deadlines, that stays below DRAIN_MS, and below a caller's patience.
 */
const KEY_WAIT_EXTRA_MS = 3000;
/** Of the pool, what may wait for keys that are in use; the rest goes on working. A pool of less than four lends none. */
const KEY_WAITERS_SHARE = 0.25;
/**
 * A thousand links lie on thousands of pages, which a server that has just been started reads from its disk one after the
 * other: their revocation may take so many times as long as any other call.
 */
const BATCH_DEADLINES = 2;
/** Expired answers are out of use at once, so that removing them has time. */
const SWEEP = { intervalMs: 60_000, batch: 500, maxBatches: 100 };
/** Written one statement at a time: a thousand keys in use for the first time in five minutes are noted within a second. */
const KEY_USES = { pauseMs: 1000, maxPending: 1000 };
/** Nobody waits for it. Longer than its own wait for a lock, short enough to leave its connection to others soon. */
const TOUCH_TIMEOUT_MS = 500;
/**
 * Streams of changes. A log that is looked at four times a second is up to date for people, and costs nothing; a heartbeat
 * each 15 s is what the HTML standard advises, half of what a silent connection is given here and a quarter of what common
 * proxies give it. A place costs a socket and at most one page in memory.
 */
const STREAMS = {
  maxStreams: 100,
  maxPerOwner: 10,
  watchMs: 250,
  heartbeatMs: 15_000,
  drainMs: 10_000,
  retryMs: 2000,
};
/**
 * Streams of counts: as those of changes, but for the look. A look once a second is live for people; with a hundred streams
 * it asks click-ingest a hundred times, four at a time, and leaves the rest of what may be under way there to requests.
 */
const LIVE = { ...STREAMS, watchMs: 1000, maxReads: 4, readTimeoutMs: STATISTICS_TIMEOUT_MS };
/** Of the pool, what may read for streams; requests keep the rest. */
const STREAM_READS_SHARE = 0.25;
/** Each takes one of two processors for some of the time; a third would take what other requests need. */
const IMPORT_PLACES = 2;
/** A batch takes some ten milliseconds; only a database in trouble takes this long, and its client waits for it. */
const IMPORT_BATCH_TIMEOUT_MS = 10_000;
/**
 * The registry is looked at once a second for its upkeep, which has seconds; while somebody waits, often enough that a lost
 * wake-up is not noticed by a person.
 */
const WATCH = { everyMs: { awaited: 50, idle: 1000 } };
/** A trimmed log is a matter of disk space alone. */
const TRIM = { intervalMs: 60_000, batch: 1000, maxBatches: 100 };
const mono = () => performance.now();
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
  const limits = createRateLimits({
    keyPerMinute: config.RATE_LIMIT_KEY_PER_MINUTE,
    addressPerMinute: config.RATE_LIMIT_ADDRESS_PER_MINUTE,
    counts: counts.rateLimited,
    now: () => performance.now(),
  });
  const newCode = (length: number) => generateCode(length, randomBytes);
  const idempotency = createIdempotency({
    db,
    counts,
    waitMs: config.QUERY_TIMEOUT_MS + KEY_WAIT_EXTRA_MS,
    maxWaiting: Math.floor(config.DATABASE_POOL_MAX * KEY_WAITERS_SHARE),
    queryTimeoutMs: config.QUERY_TIMEOUT_MS,
  });
  const shortUrlBase = new URL("/", config.PUBLIC_BASE_URL).href;
  const statistics = createStatistics({
    baseUrl: config.CLICK_INGEST_URL,
    secret: config.CLICK_INGEST_SECRET,
    timeoutMs: STATISTICS_TIMEOUT_MS,
    onChange: (error) =>
      error === undefined
        ? logger.info("statistics can be read again")
        : logger.warn("statistics cannot be read", { error }),
  });
  const exporting = openExports({ config, db, timeoutMs: STATISTICS_TIMEOUT_MS, logger });
  const keys = createKeyStore(db, config.QUERY_TIMEOUT_MS);
  const keyUsage = createKeyUsage({
    ...KEY_USES,
    touch: (ids) => keys.touch(ids, TOUCH_TIMEOUT_MS),
    counts: counts.keyUses,
    onFailure: (error) => logger.warn("the last use of keys could not be written", { error }),
  });
  onStop(() => keyUsage.stop());
  const changes = createChangeStore(db);
  const streams = createChangeStreams({
    ...STREAMS,
    changes,
    counts: counts.changes,
    maxReads: Math.max(1, Math.floor(config.DATABASE_POOL_MAX * STREAM_READS_SHARE)),
    readTimeoutMs: config.QUERY_TIMEOUT_MS,
    onTrouble: (error) =>
      error === undefined
        ? logger.info("changes can be read again")
        : logger.warn("changes cannot be read; their streams wait", { error }),
  });
  const live = createLiveCounts({
    ...LIVE,
    glance: changes.glance,
    read: readSince(statistics),
    counts: counts.live,
    onTrouble: (error) =>
      error === undefined
        ? logger.info("keys of streams of counts can be read again")
        : logger.warn("keys of streams of counts cannot be read; the streams wait", { error }),
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
  const registry = createRegistryStore(db, mono);
  const watch = createRegistryWatch({
    ...WATCH,
    registry,
    now: mono,
    unseenTtlMs: config.CACHE_TTL_MS,
    counts: counts.effective,
    onUpkeep: (event) => logger.info("the registry was put in order", event),
    onTrouble: (error) =>
      error === undefined
        ? logger.info("the registry can be read again")
        : logger.warn("the registry cannot be read; revocations are not confirmed", { error }),
  });
  const wake = createWake({
    url: config.LISTEN_DATABASE_URL ?? config.DATABASE_URL,
    channels: ["instance_ack"],
    random: Math.random,
    onWake: () => watch.wake(),
    onState: (state, reason) => logger.debug("acknowledgements", { state, reason }),
  });
  onStop(() => wake.stop());
  const metrics = createMetrics();
  const database = { idempotency, keyUsage, watch, db };
  registerMetrics(metrics, { counts, statistics, budget, streams, live, imports, ...exporting, ...database });
  registerLimitMetrics(metrics, counts, limits);
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
  const trimmer = createSweeper({
    ...TRIM,
    sweep: (limit) => registry.trim(config.CHANGE_RETENTION_HOURS * 3_600_000, limit),
    counts: counts.trims,
    onFailure: (error) => logger.warn("old changes could not be removed", { error }),
  });
  trimmer.start();
  onStop(() => trimmer.stop());

  const app = createApp({
    listing: createLinkListing(db, counts),
    links: createLinkStore({
      ...{ db, counts, newCode, timeoutMs: config.QUERY_TIMEOUT_MS },
      batchTimeoutMs: BATCH_DEADLINES * config.QUERY_TIMEOUT_MS,
    }),
    keyedLinks: createKeyedLinkStore({ db, idempotency, counts, newCode, shortUrlBase }),
    keys,
    keyManagement: createKeyManagement(db, counts),
    keyListing: createKeyListing(db),
    keyUsage,
    changes,
    streams,
    watch,
    mono,
    imports,
    importStore,
    statistics,
    clickListing: createClickListing(db, statistics),
    ...exporting,
    live,
    budget,
    limits,
    trustedProxies: config.TRUST_PROXY ?? "",
    counts,
    logger,
    publicBaseUrl: config.PUBLIC_BASE_URL,
    privateHosts: config.TARGET_PRIVATE_HOSTS,
    now: Date.now,
  });
  const { HOST: host, PORT: port } = config;
  const server = await listen(app, {
    ...{ port, host, maxConnections: MAX_CONNECTIONS, requireHost: false },
    app,
  });
  registerServerMetrics(metrics, server);
  onStop(() => server.close(DRAIN_MS));
  // Undone first: what waits for a revocation, or a stream, would hold the drain for as long as it takes.
  onStop(() => streams.stop());
  onStop(() => live.stop());
  onStop(() => watch.stop());
  onStop(() => imports.stop());
  logger.info("listening", { port: server.port, opsPort: ops.port });
});
