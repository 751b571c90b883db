import { readConfig, setting } from "@linkfence/service-shell";
import { type Static, Type } from "typebox";

export const configSchema = Type.Object({
  HOST: setting.text({ default: "127.0.0.1", description: "address to listen on, for both ports" }),
  PORT: setting.port({ default: 7000, description: "port of the redirects" }),
  OPS_PORT: setting.port({ default: 7010, description: "port of /livez, /readyz and /metrics" }),
  REDIRECT_WORKERS: setting.integer(1, 64, {
    default: 1,
    description:
      "processes that share the port, each a redirect process of its own; with one there is no process above it. Every other bound is each worker's own",
  }),
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
  CLICK_SPOOL: setting.choice(["on", "off"], {
    default: "on",
    description:
      "keep clicks in files until they are stored, so that they outlive this process; it takes CLICK_SPOOL_DIR, without which they are kept in memory alone",
  }),
  CLICK_SPOOL_DIR: Type.Optional(
    setting.text({
      description:
        "directory of the spool, which is there and belongs to this process alone; `npm start` gives each redirect one of its own in it, or in its data directory",
    }),
  ),
  CLICK_SPOOL_MAX_BYTES: setting.integer(65_536, 1_099_511_627_776, {
    default: 1_073_741_824,
    description:
      "bytes that the spool may occupy; when it is full, clicks are kept in memory, and dropped and counted when that is full",
  }),
  CLICK_SPOOL_SEGMENT_BYTES: setting.integer(16_384, 1_073_741_824, {
    default: 8_388_608,
    description:
      "size at which the spool begins a new file, a quarter of the whole at the most; each goes when all of it is stored",
  }),
  CLICK_COUNTRY_HEADER: Type.Optional(
    setting.headerName({
      description:
        "header field in which a trusted proxy says the country in two letters, instead of what visitors send there",
    }),
  ),
  CLICK_MMDB_FILE: Type.Optional(
    setting.text({
      description: "file in MaxMind's format in which countries of addresses are looked up; no address is kept",
    }),
  ),
  CLICK_ADDRESS_HEADER: Type.Optional(
    setting.headerName({
      description:
        "header field in which a trusted proxy says the visitor's address, for CLICK_MMDB_FILE (the last one, where there are several); the other end of the connection where it is not set",
    }),
  ),
  STOP_DELAY_MS: setting.integer(0, 5000, {
    default: 0,
    description:
      "how long a stop goes on answering requests while /readyz says 503, so that a load balancer sends no more of them",
  }),
  CLICK_FLUSH_TIMEOUT_MS: setting.integer(0, 8000, {
    default: 5000,
    description:
      "how long a stop waits for the last clicks to be stored; the others stay in the spool, or are dropped and counted",
  }),
  MAX_CONNECTIONS: setting.integer(1, 1_000_000, { default: 10_000, description: "open connections at the most" }),
  DEBUG_ENTRY_AGE: setting.flag({ default: false, description: "add X-Entry-Age-Ms to redirects" }),
});

export type Config = Static<typeof configSchema>;

/** Reads the configuration of the redirect service. Throws `ConfigError` with every fault. */
export function readRedirectConfig(env: NodeJS.ProcessEnv): Config {
  return readConfig(configSchema, env);
}
