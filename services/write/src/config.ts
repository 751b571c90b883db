import { readConfig, setting } from "@linkfence/service-shell";
import { type Static, Type } from "typebox";

/** A thousand a second. A loop that has gone wild in one client is noticed; a platform that is busy with good reason is not. */
const KEY_CALLS = 60_000;
/** Five a second: some clients with an expired key, behind one address, stay below; a database does not notice so many. */
const ADDRESS_FAILURES = 300;

export const configSchema = Type.Object({
  HOST: setting.text({ default: "127.0.0.1", description: "address to listen on" }),
  PORT: setting.port({ default: 7001, description: "port of the admin API" }),
  OPS_PORT: setting.port({ default: 7011, description: "port of /livez, /readyz and /metrics, not for the public" }),
  LOG_LEVEL: setting.choice(["error", "warn", "info", "debug"], {
    default: "info",
    description: "least important level that is logged",
  }),
  DATABASE_URL: setting.databaseUrl({ description: "main database" }),
  DATABASE_POOL_MAX: setting.integer(1, 100, {
    default: 10,
    description: "database connections at the most; imports have up to four more of their own",
  }),
  QUERY_TIMEOUT_MS: setting.integer(100, 60_000, {
    default: 2000,
    description: "deadline of a database call; a request that misses it is answered 503",
  }),
  CACHE_TTL_MS: setting.integer(100, 3_600_000, {
    default: 60_000,
    description:
      "the greatest CACHE_TTL_MS that any redirect process has; after a failover of the database it is waited for",
  }),
  LISTEN_DATABASE_URL: Type.Optional(
    setting.databaseUrl({
      description: "main database for LISTEN, where DATABASE_URL leads through a pooler; the same where it is not set",
    }),
  ),
  CHANGE_RETENTION_HOURS: setting.integer(24, 876_000, {
    default: 720,
    description:
      "age in hours from which changes are removed from the log; readers that stood still for longer begin anew",
  }),
  IMPORT_MAX_BYTES: setting.integer(1024, 1_000_000_000_000, {
    default: 1_000_000_000,
    description: "bytes of a file that is imported at the most; its lines are read as they come, whatever its size",
  }),
  PUBLIC_BASE_URL: setting.httpOrigin({
    default: "http://127.0.0.1:7000",
    description: "origin of short URLs, which no request can change; links to it are refused",
  }),
  CLICK_INGEST_URL: setting.httpUrl({
    default: "http://127.0.0.1:7002",
    description: "where click-ingest is asked for statistics",
  }),
  CLICK_INGEST_SECRET: Type.Optional(
    setting.secret({ description: "what click-ingest wants to know of its callers; its own setting of that name" }),
  ),
  EXPORT_ACCEL_PREFIX: Type.Optional(
    setting.pathPrefix({
      description:
        "path, such as `/exported/`, under which a proxy in front sends exported files itself (X-Accel-Redirect); by default this service sends them",
    }),
  ),
  TARGET_PRIVATE_HOSTS: setting.choice(["allow", "deny"], {
    default: "allow",
    description: "deny refuses loopback, private and link-local targets in every spelling",
  }),
  RATE_LIMIT_KEY_PER_MINUTE: setting.integer(0, 100_000_000, {
    default: KEY_CALLS,
    description:
      "calls that one API key may make, for each process; 0 means no limit. The default, a thousand a second, is about what one process can answer: it stops a loop that has gone wild, not a busy platform",
  }),
  RATE_LIMIT_ADDRESS_PER_MINUTE: setting.integer(0, 100_000_000, {
    default: ADDRESS_FAILURES,
    description:
      "calls that need a key and show no valid one, from one address (IPv6: one /64), for each process; 0 means no limit. The default, five a second, is more than slips and expired keys make, and less than a database notices; calls with a valid key do not count",
  }),
  TRUST_PROXY: Type.Optional(
    setting.proxyList({
      description:
        "proxies whose `X-Forwarded-For` is believed: addresses, networks as `10.0.0.0/8`, `loopback`, `linklocal`, `uniquelocal`, parted by commas. By default nobody's, since anybody could write another address into it with each call; behind a proxy that is not named here, all its clients share one limit",
    }),
  ),
});
export type Config = Static<typeof configSchema>;

/** Reads the configuration; throws `ConfigError` with every fault. */
export function readWriteConfig(env: NodeJS.ProcessEnv): Config {
  return readConfig(configSchema, env);
}
