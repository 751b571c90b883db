import { isIPv4 } from "node:net";
import { CLICK_BATCH_LIMIT } from "@linkfence/contracts";
import { ConfigError, readConfig, setting } from "@linkfence/service-shell";
import { type Static, Type } from "typebox";

/** A full batch of the longest clicks is accounted with 2.8 MB: an intake of less could never take it. */
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
  CLICK_INGEST_SECRET: Type.Optional(
    setting.secret({
      description:
        "What redirect and write processes must know to be listened to. Secret, and required unless HOST is a loopback address.",
    }),
  ),
  STATS_DATABASE_URL: setting.databaseUrl({ description: "Statistics database. Secret." }),
  BATCH_MAX: setting.integer(1, 100_000, {
    default: 10_000,
    description: "Clicks stored in one transaction at the most.",
  }),
  CLICK_RETENTION_DAYS: setting.integer(1, 36_500, {
    default: 400,
    description: "UTC days before today whose clicks are kept; what they add up to is kept for ever.",
  }),
  DIMENSION_VALUES_MAX: setting.integer(1, 10_000, {
    default: 100,
    description:
      "Different values of a code, a dimension (such as browsers) and a UTC day at the most; further ones count as `other`.",
  }),
  DEAD_CLICKS_MAX: setting.integer(0, 1_000_000, {
    default: 10_000,
    description: "Clicks that cannot be stored and are kept as dead letters at the most; further ones are refused.",
  }),
  DEAD_CLICKS_MAX_BYTES: setting.integer(0, 1024 ** 3, {
    default: 64 * 1024 * 1024,
    description: "Bytes of the dead letters at the most.",
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
  EXPORT_DIR: Type.Optional(
    setting.text({
      description:
        "Directory of exported files, the same for all click-ingest processes of a database. Without it nothing is exported.",
    }),
  ),
  EXPORT_WORKERS: setting.integer(0, 16, {
    default: 2,
    description: "Exports written at once by this process, each over a connection of its own; 0 leaves them to others.",
  }),
  EXPORT_QUEUE_MAX: setting.integer(1, 100_000, {
    default: 1000,
    description: "Exports that wait at the most; further ones are refused.",
  }),
  EXPORT_QUEUE_OWNER_MAX: setting.integer(1, 100_000, {
    default: 100,
    description: "Of these, those of one owner at the most.",
  }),
  EXPORT_LEASE_MS: setting.integer(1000, 600_000, {
    default: 30_000,
    description: "An export whose worker is not heard of for so long is begun anew by another one.",
  }),
  // The connection's role ends nothing by itself: the attempt asks the server for this deadline instead of the role's.
  EXPORT_TIMEOUT_MS: setting.integer(1000, 86_400_000, {
    default: 7_200_000,
    description:
      "Deadline of one attempt to write a file, which takes its time while many clicks come; the database keeps its old rows for as long.",
  }),
  EXPORT_ROWS_MAX: setting.integer(1, 1_000_000_000, {
    default: 100_000_000,
    description: "Clicks in one file at the most.",
  }),
  EXPORT_DISK_MAX_BYTES: setting.integer(1024, Number.MAX_SAFE_INTEGER, {
    default: 20 * 1024 ** 3,
    description: "Bytes of all exported files at the most; a file that does not fit fails.",
  }),
  EXPORT_RETENTION_HOURS: setting.integer(1, 8760, {
    default: 168,
    description: "Hours after its end for which an export and its file are kept.",
  }),
  DATABASE_POOL_MAX: setting.integer(1, 100, {
    default: 4,
    description: "Connections for reading statistics; two more belong to the writer alone.",
  }),
});
export type IngestConfig = Static<typeof configSchema>;

/** Reads the environment. Throws `ConfigError`, which names every variable that is wrong and no value. */
export function readIngestConfig(env: NodeJS.ProcessEnv): IngestConfig {
  const config = readConfig(configSchema, env);
  if (config.CLICK_INGEST_SECRET === undefined && !isLoopback(config.HOST))
    throw new ConfigError(["CLICK_INGEST_SECRET is required where HOST is no loopback address"]);
  return config;
}

/** Addresses that only this machine reaches (RFC 6890, tables 4 and 17), and their name. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
