import { CLICK_BATCH_LIMIT } from "@linkfence/contracts";
import { readConfig, setting } from "@linkfence/service-shell";
import { type Static, Type } from "typebox";

/** A full batch of the longest clicks is accounted with 3.4 MB: an intake of less could never take it. */
const INTAKE_BYTES_MIN = 4 * 1024 * 1024;

/** Every setting of the service, with the sentence that documents it. */
export const configSchema = Type.Object({
  HOST: setting.text({ default: "127.0.0.1", description: "Address to listen on." }),
  PORT: setting.port({
    default: 7002,
    description: "Port for click batches and statistics; 0 lets the system choose.",
  }),
  OPS_PORT: setting.port({ default: 7012, description: "Port of `/livez`, `/readyz` and `/metrics`." }),
  LOG_LEVEL: setting.choice(["error", "warn", "info", "debug"], {
    default: "info",
    description: "Least important level that is logged.",
  }),
  STATS_DATABASE_URL: setting.databaseUrl({ description: "Statistics database. Secret." }),
  BATCH_MAX: setting.integer(1, 10_000, {
    default: 1000,
    description: "Clicks stored in one transaction at the most.",
  }),
  INTAKE_MAX_CLICKS: setting.integer(CLICK_BATCH_LIMIT, 1_000_000, {
    default: 20_000,
    description: "Clicks waiting to be stored at the most; a batch that does not fit is answered 503.",
  }),
  INTAKE_MAX_BYTES: setting.integer(INTAKE_BYTES_MIN, 1024 ** 3, {
    default: 32 * 1024 * 1024,
    description: "Memory of the waiting clicks at the most, in bytes, as an upper estimate.",
  }),
  // The server ends a request after 15 s, and a stop must have answered them all within 20 s.
  WRITE_TIMEOUT_MS: setting.integer(100, 15_000, {
    default: 5000,
    description: "A batch that is not stored within this time is answered 503, and its sender keeps it.",
  }),
  QUERY_TIMEOUT_MS: setting.integer(300, 15_000, {
    default: 2000,
    description: "Deadline of one statement; above the 200 ms that a statement waits for a lock.",
  }),
  DATABASE_POOL_MAX: setting.integer(1, 100, {
    default: 4,
    description: "Connections for reading statistics; two more belong to the writer alone.",
  }),
});
export type IngestConfig = Static<typeof configSchema>;

/** Reads the environment. Throws `ConfigError`, which names every variable that is wrong and no value. */
export function readIngestConfig(env: NodeJS.ProcessEnv): IngestConfig {
  return readConfig(configSchema, env);
}
