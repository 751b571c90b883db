// Many followers of the change log in one process, each registered and with connections of its own, as redirect processes
// have them; they keep nothing in memory and answer nobody. On its port it tells what all of them did.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createDatabase } from "@linkfence/db";
import { createFollower, createWake, readChanges } from "@linkfence/link-feed";
import { createLogger } from "@linkfence/service-shell";
import { readRedirectConfig } from "../../services/redirect/src/config.ts";
import { deregisterInstance, registerInstance } from "../../services/redirect/src/store/instance.ts";

const config = readRedirectConfig(process.env);
const logger = createLogger("light-instances", config.LOG_LEVEL);
const COUNT = Number(process.env.INSTANCES);
const { CACHE_TTL_MS: ttlMs, POLL_INTERVAL_MS: pollIntervalMs, DATABASE_URL: url, QUERY_TIMEOUT_MS } = config;

/** Starts one, and resolves when it has read the log for the first time. */
async function startOne(name: string) {
  const db = createDatabase({ url, applicationName: "linkfence-bench-feed", max: 1, queryTimeoutMs: QUERY_TIMEOUT_MS });
  let synced = () => {};
  const ready = new Promise<void>((resolve) => {
    synced = resolve;
  });
  const follower = createFollower({
    ...{ pollIntervalMs, ttlMs, random: Math.random, newInstanceId: randomUUID },
    now: () => ({ mono: performance.now(), wall: Date.now() }),
    register: (id) => registerInstance(db, { id, address: name, ttlMs, followsFeed: true }),
    sync: (request) => readChanges(db, request),
    apply: () => {},
    flush: () => {},
    onSynced: () => synced(),
    onTrouble: (error) => logger.warn("the change log cannot be read", { error }),
    onRecovered: () => logger.info("the change log is read again"),
  });
  const wake = createWake({
    ...{ url, channels: ["link_change"], random: Math.random },
    onWake: () => follower.wake(),
    onState: () => {},
  });
  await ready;
  return {
    stats: follower.stats,
    listening: () => wake.state() === "listening",
    async stop() {
      wake.stop();
      await follower.stop();
      await deregisterInstance(db, follower.instance());
      await db.close();
    },
  };
}

// One after the other: nobody starts fifty processes at the same instant.
const all: Awaited<ReturnType<typeof startOne>>[] = [];
while (all.length < COUNT) all.push(await startOne(`light:${all.length + 1}`));

const server = createServer((_request, response) => {
  const syncs = all.reduce((sum, { stats }) => sum + stats().syncs, 0);
  response.end(JSON.stringify({ syncs, listening: all.filter(({ listening }) => listening()).length }));
});
server.listen(0, config.HOST, () => {
  logger.info("listening", { port: (server.address() as AddressInfo).port });
});

process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
  void Promise.all(all.map(({ stop }) => stop()));
});
