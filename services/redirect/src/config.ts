import { readConfig, setting } from "@linkfence/service-shell";
import { type Static, Type } from "typebox";

export const configSchema = Type.Object({
  HOST: setting.text({ default: "127.0.0.1", description: "address to listen on, for both ports" }),
  PORT: setting.port({ default: 7000, description: "port of the redirects" }),
  OPS_PORT: setting.port({ default: 7010, description: "port of /livez, /readyz and /metrics" }),
  LOG_LEVEL: setting.choice(["error", "warn", "info", "debug"], {
    default: "info",
    description: "least important level that is logged",
  }),
  DATABASE_URL: setting.databaseUrl({ description: "main database" }),
  LISTEN_DATABASE_URL: Type.Optional(
    setting.databaseUrl({
      description: "main database for LISTEN, where DATABASE_URL leads through a pooler; the same where it is not set",
    }),
  ),
  LISTEN_ENABLED: setting.flag({ default: true, description: "listen for notifications" }),
  POLL_INTERVAL_MS: setting.integer(0, 60_000, {
    default: 100,
    description: "pause between two reads of the change log; 0 turns polling off",
  }),
  CACHE_TTL_MS: setting.integer(100, 3_600_000, {
    default: 60_000,
    description: "how long an instance that is cut off may go on answering from memory",
  }),
  NEGATIVE_TTL_MS: setting.integer(0, 10_000, {
    default: 1000,
    description: "how long an unknown code is remembered as unknown; 0 for not at all",
  }),
  CACHE_MAX_ENTRIES: setting.integer(1, 10_000_000, { default: 1_000_000, description: "links kept in memory" }),
  CACHE_MAX_BYTES: setting.integer(1_048_576, 68_719_476_736, {
    default: 1_073_741_824,
    description: "bytes that the links in memory may occupy",
  }),
  QUERY_TIMEOUT_MS: setting.integer(50, 60_000, {
    default: 1000,
    description: "deadline of a query; a link that is not in memory is answered 503 after it",
  }),
  DATABASE_POOL_MAX: setting.integer(1, 50, { default: 2, description: "connections for looking up links" }),
  CLICK_INGEST_URL: setting.httpUrl({ default: "http://127.0.0.1:7002", description: "where clicks are sent" }),
  CLICK_INGEST_SECRET: Type.Optional(
    setting.secret({ description: "what click-ingest wants to know of its callers; its own setting of that name" }),
  ),
  CLICK_QUEUE_CAPACITY: setting.integer(1, 10_000_000, {
    default: 65_536,
    description: "clicks that wait in memory; when it is full, new ones are dropped and counted",
  }),
  STOP_DELAY_MS: setting.integer(0, 5000, {
    default: 0,
    description:
      "how long a stop goes on answering requests while /readyz says 503, so that a load balancer sends no more of them",
  }),
  CLICK_FLUSH_TIMEOUT_MS: setting.integer(0, 8000, {
    default: 5000,
    description: "how long a stop waits for the last clicks to be stored",
  }),
  MAX_CONNECTIONS: setting.integer(1, 1_000_000, { default: 10_000, description: "open connections at the most" }),
  DEBUG_ENTRY_AGE: setting.flag({ default: false, description: "add X-Entry-Age-Ms to redirects" }),
});

export type Config = Static<typeof configSchema>;

/** Reads the configuration of the redirect service. Throws `ConfigError` with every fault. */
export function readRedirectConfig(env: NodeJS.ProcessEnv): Config {
  return readConfig(configSchema, env);
}
