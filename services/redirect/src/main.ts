// Composition root of the redirect service: the only file that reads the environment, opens sockets and timers, and
// decides in which order things start and stop.
import { randomFillSync, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { createDatabase, type Database } from "@linkfence/db";
import { createFollower, createWake, type Follower, readChanges, type Wake } from "@linkfence/link-feed";
import {
  configOrExit,
  createLogger,
  createMetrics,
  createOpsHandler,
  KEEP_ALIVE_MS,
  listen,
  type Readiness,
  registerServerMetrics,
  runService,
  type Undo,
} from "@linkfence/service-shell";
import { createApp } from "./app.ts";
import { createLinkCache } from "./cache/link-cache.ts";
import { createLinkLookup, type LinkLookup } from "./cache/link-lookup.ts";
import { createLoader } from "./cache/loader.ts";
import { createReadBatches } from "./cache/read-batches.ts";
import { createClickIds } from "./clicks/click-ids.ts";
import { type ClickPath, createClickPath } from "./clicks/click-path.ts";
import { type ClickRing, createClickRing } from "./clicks/click-ring.ts";
import { createUtilization } from "./clicks/give-way.ts";
import { createHeirs, type Heirs } from "./clicks/heirs.ts";
import { createIngestClient } from "./clicks/ingest-client.ts";
import { createLastDrops } from "./clicks/last-drops.ts";
import { readRedirectConfig } from "./config.ts";
import { createHotPath } from "./http/hot-path.ts";
import { createOriginReader } from "./http/origin.ts";
import { createPlainConnections } from "./http/plain-connections.ts";
import { registerMetrics } from "./metrics.ts";
import { createRareWarning } from "./rare-warning.ts";
import type { Start } from "./spool/account.ts";
import { realFileSystem } from "./spool/file-system.ts";
import { lockDirectory } from "./spool/lock.ts";
import { openSpool, type Spool } from "./spool/open-spool.ts";
import { findLeftPlaces, makePlace, placeDirectory } from "./spool/places.ts";
import { tellOfEarlier } from "./spool/tell-of-earlier.ts";
import { openCountries } from "./store/countries.ts";
import { deregisterInstance, registerInstance } from "./store/instance.ts";
import { createLinkReader, mayBeOfOneRow } from "./store/links.ts";
import { letConnectionsEnd, SILENT_MS } from "./workers/linger.ts";
import { joinPrimary } from "./workers/member.ts";
import { startPrimary } from "./workers/primary.ts";

/** Requests under way end within this time after a stop, its delay included; each is bounded by two queries. */
const DRAIN_MS = 8000;
/** Idle connections close at once; this bounds the ones that do not. */
const CLOSE_MS = 1000;
const OPS_CONNECTIONS = 100;

const config = configOrExit(() => readRedirectConfig(process.env));
const member = joinPrimary(process.env);
const logger = createLogger(member ? `redirect/${member.number}` : "redirect", config.LOG_LEVEL);
const now = () => ({ mono: performance.now(), wall: Date.now() });
const random = Math.random;
const ttlMs = config.CACHE_TTL_MS;
const followsFeed = config.LISTEN_ENABLED || config.POLL_INTERVAL_MS > 0;
const warn = createRareWarning(logger, () => performance.now());
const start = { incarnation: randomUUID(), at: Date.now() };

if (member) await runService(logger, serve, member);
else if (config.REDIRECT_WORKERS === 1) await runService(logger, serve);
else await runService(logger, supervise, { without: ["SIGHUP"] });

function supervise(onStop: (undo: Undo) => void): Promise<void> {
  const { REDIRECT_WORKERS: workers, HOST: host, OPS_PORT: opsPort, CLICK_SPOOL, CLICK_SPOOL_DIR = null } = config;
  return startPrimary(
    { workers, host, opsPort, directory: CLICK_SPOOL === "on" ? CLICK_SPOOL_DIR : null, logger },
    onStop,
  );
}

async function serve(onStop: (undo: Undo) => void): Promise<void> {
  onStop(() => member?.sayLast());
  const lookUp = config.CLICK_MMDB_FILE === undefined ? null : await openCountries(config.CLICK_MMDB_FILE);
  const spool = await openSpoolAsTold();
  const countryOf = lookUp ?? (() => undefined);
  const databases = openDatabases(onStop);
  const ring = createClickRing(config.CLICK_QUEUE_CAPACITY);
  const ownClicks = startClicks({ ring, spool, start, countryOf }, onStop);
  const heirs = startHeirs(countryOf, onStop);
  const clicks = heirs.beside(ownClicks);
  const cache = createLinkCache({ maxEntries: config.CACHE_MAX_ENTRIES, maxBytes: config.CACHE_MAX_BYTES });
  const reads = createReadBatches({
    readMany: createLinkReader(databases.links),
    mayBeOfOneRow,
    timeoutMs: config.QUERY_TIMEOUT_MS,
    maxStatements: config.DATABASE_POOL_MAX,
    now: () => performance.now(),
    after: (ms, act) => void setTimeout(act, ms),
  });
  const loader = createLoader({
    cache,
    readLink: reads.read,
    readBehind: reads.readBehind,
    hasten: reads.hasten,
    ttlMs,
    negativeTtlMs: config.NEGATIVE_TTL_MS,
    now,
    random,
  });
  const lookup = createLinkLookup({ cache, loader, ttlMs });
  const onLoadError = (error: unknown) => warn("a link could not be looked up", error);
  const { CLICK_COUNTRY_HEADER: countryHeader, CLICK_ADDRESS_HEADER: addressHeader } = config;
  const originOf = createOriginReader({ countryHeader, addressHeader, looksUp: lookUp !== null });
  const hotPath = createHotPath({ lookup, ring, now, debugEntryAge: config.DEBUG_ENTRY_AGE, onLoadError, originOf });
  const fields = [countryHeader, addressHeader].filter((name) => name !== undefined);
  const plain = createPlainConnections({ follow: hotPath.follow, fields, keepAliveMs: KEEP_ALIVE_MS });
  const app = createApp({ hotPath, onError: (error) => logger.error("a request failed", { error }) });

  const { HOST: host, PORT: port, MAX_CONNECTIONS: maxConnections } = config;
  const server = await listen(hotPath.handle(app), {
    ...{ port, host, maxConnections, requireHost: false, isShared: member !== null, owner: plain },
  });
  const address = `${hostname()}:${server.port}`;
  const follower = startFollower(databases.feed, lookup, member ? `${address} worker ${member.number}` : address);
  onStop(async () => {
    await follower.stop();
    await deregisterInstance(databases.feed, follower.instance());
  });
  const wake = config.LISTEN_ENABLED ? startWake(lookup, follower) : null;
  onStop(() => wake?.stop());
  onStop(() => server.close(DRAIN_MS - (member?.isRetiring() ? SILENT_MS : config.STOP_DELAY_MS)));
  onStop(() => (member?.isRetiring() ? letConnectionsEnd(server, plain) : undefined));

  const syncAgeMs = () => lookup.syncAge(performance.now(), Date.now());
  const metrics = createMetrics();
  registerMetrics(metrics, { hotPath, plain, lookup, reads, follower, wake, clicks, spool, databases, syncAgeMs });
  registerServerMetrics(metrics, server);
  let stopping = false;
  const readinessNow = () =>
    stopping ? { ready: false, reason: "it is being stopped" } : readiness(syncAgeMs(), wake);
  if (member) await member.serve(server.port, { metrics, readiness: readinessNow });
  else {
    const opsHandler = createOpsHandler(metrics, readinessNow);
    const ops = await listen(opsHandler, { port: config.OPS_PORT, host, maxConnections: OPS_CONNECTIONS });
    onStop(() => ops.close(CLOSE_MS));
    logger.info("listening", { port: server.port, opsPort: ops.port });
  }
  // Undone first: all goes on as before until whoever spreads requests has seen that none are to come here any more.
  onStop(() => {
    stopping = true;
    return pause(member?.isRetiring() ? 0 : config.STOP_DELAY_MS);
  });
}

/** The feed has a connection of its own, so that no number of misses can hold a revocation back. */
function openDatabases(onStop: (undo: Undo) => void) {
  const shared = { url: config.DATABASE_URL, queryTimeoutMs: config.QUERY_TIMEOUT_MS, onWarning: warn };
  const max = config.DATABASE_POOL_MAX;
  const links = createDatabase({ ...shared, applicationName: "linkfence-redirect", max, pipelining: true });
  const feed = createDatabase({ ...shared, applicationName: "linkfence-redirect-feed", max: 1 });
  onStop(async () => void (await Promise.all([links.close(CLOSE_MS), feed.close(CLOSE_MS)])));
  return { links, feed };
}

/** Null where clicks wait in memory alone. */
async function openSpoolAsTold(): Promise<Spool | null> {
  if (config.CLICK_SPOOL === "off") return null;
  if (config.CLICK_SPOOL_DIR === undefined) {
    logger.warn("clicks that are not stored yet are lost if this process is killed: CLICK_SPOOL_DIR is not set");
    return null;
  }
  return openPlace(await makePlace(config.CLICK_SPOOL_DIR, member?.place ?? 1), start);
}

async function openPlace(directory: string, start: Start): Promise<Spool> {
  const { CLICK_SPOOL_MAX_BYTES, CLICK_SPOOL_SEGMENT_BYTES } = config;
  const spool = await openSpool({
    directory,
    maxBytes: CLICK_SPOOL_MAX_BYTES,
    segmentBytes: CLICK_SPOOL_SEGMENT_BYTES,
    fs: realFileSystem,
    lock: lockDirectory,
    start,
    now: () => performance.now(),
    onTrouble: (what, error) => warn(`click spool: ${what}`, error),
  });
  tellOfEarlier(logger, spool);
  return spool;
}

type CountryOf = (address: string) => string | undefined;
type Clicks = { ring: ClickRing; spool: Spool | null; start: Start; countryOf: CountryOf };

function createClicks(of: Clicks): ClickPath {
  const { CLICK_INGEST_URL: baseUrl, CLICK_INGEST_SECRET: secret } = config;
  const sender = `redirect-${of.start.incarnation}`;
  const dropped = () => clicks.dropReport();
  const clicks: ClickPath = createClickPath({
    ...of,
    capacity: config.CLICK_QUEUE_CAPACITY,
    send: createIngestClient({ baseUrl, sender, secret, dropped }),
    tellDrops: createLastDrops({ baseUrl, sender, secret }),
    onUntold: (clicks, error) =>
      logger.warn("statistics will not know of the clicks that were dropped at the end", { clicks, error }),
    newClickId: createClickIds(randomFillSync),
    now: () => performance.now(),
    utilization: createUtilization(performance.eventLoopUtilization),
    random,
    onTrouble: (reason) => {
      if (reason === null) logger.info("clicks are stored again");
      else logger.warn(`clicks cannot be stored and wait in ${of.spool ? "the spool" : "memory"}`, { reason });
    },
  });
  return clicks;
}

function startClicks(of: Clicks, onStop: (undo: Undo) => void): ClickPath {
  const clicks = createClicks(of);
  onStop(async () => {
    await clicks.stop(config.CLICK_FLUSH_TIMEOUT_MS);
    const { kept } = clicks.stats();
    if (kept > 0) logger.info("clicks remain in the spool for the next process", { clicks: kept });
  });
  return clicks;
}

/** Clicks in places that no process has are sent from here: by a worker when its primary says so, by others at once. */
function startHeirs(countryOf: CountryOf, onStop: (undo: Undo) => void): Heirs {
  const { CLICK_SPOOL, CLICK_SPOOL_DIR: directory } = config;
  const heirs = createHeirs({
    open: async (place) => {
      const start = { incarnation: randomUUID(), at: Date.now() };
      const spool = await openPlace(placeDirectory(directory ?? "", place), start);
      return createClicks({ ring: createClickRing(1), spool, start, countryOf });
    },
    onTrouble: (place, error) => logger.warn("clicks of an earlier worker wait where they are", { place, error }),
  });
  onStop(heirs.stop);
  member?.onInherit(heirs.take);
  if (member === null && CLICK_SPOOL === "on" && directory !== undefined) {
    void findLeftPlaces(directory).then(
      (places) => places.filter((place) => place !== 1).map(heirs.take),
      (error: unknown) => logger.warn("which clicks earlier workers left is unknown", { error }),
    );
  }
  return heirs;
}

function startFollower(database: Database, lookup: LinkLookup, address: string): Follower {
  return createFollower({
    pollIntervalMs: config.POLL_INTERVAL_MS,
    ttlMs,
    now,
    random,
    newInstanceId: randomUUID,
    register: (id) => registerInstance(database, { id, address, ttlMs, followsFeed }),
    sync: (request) => readChanges(database, request),
    apply: lookup.apply,
    flush: (cause) => {
      lookup.flush();
      logger[cause === "started" ? "debug" : "warn"]("everything in memory was forgotten", { cause });
    },
    onSynced: lookup.synced,
    onTrouble: (error) => logger.warn("the change log cannot be read", { error }),
    onRecovered: () => logger.info("the change log is read again"),
  });
}

function startWake(lookup: LinkLookup, follower: Follower): Wake {
  return createWake({
    url: config.LISTEN_DATABASE_URL ?? config.DATABASE_URL,
    channels: ["link_change", "link_created"],
    random,
    // Listening anew (null), either kind may have been missed.
    onWake: (channel) => {
      if (channel !== "link_change") lookup.forgetUnknown();
      if (channel !== "link_created") follower.wake();
    },
    onState: (state, reason) => {
      if (state === "listening") logger.info("notifications arrive", { reason });
      else logger.warn("notifications do not arrive, polling goes on", { state, reason });
    },
  });
}

function readiness(syncAgeMs: number, wake: Wake | null): Readiness {
  if (syncAgeMs >= ttlMs) return { ready: false, reason: "the change log was not read within CACHE_TTL_MS" };
  if (wake?.misconfigured()) {
    const reason = "LISTEN is accepted but nothing arrives: set LISTEN_DATABASE_URL to the server itself, not a pooler";
    return { ready: false, reason };
  }
  return { ready: true };
}
