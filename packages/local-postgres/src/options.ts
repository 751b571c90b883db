import { isAbsolute } from "node:path";
import { assertServerSettings } from "./server-settings.ts";

/** Where progress is told. Fits `console` and most loggers. No line ever holds the password. */
export type LocalPostgresLogger = {
  info(message: string): unknown;
  warn(message: string): unknown;
  error(message: string): unknown;
};

export type LocalPostgresOptions = {
  /** Absolute path. Created when missing; holds the cluster, its password file and the server's log. */
  dataDir: string;
  /** Loopback port; absent or 0 means a free one. */
  port?: number;
  /** Databases to create when missing, as UTF8 with locale C. */
  databases?: readonly string[];
  /** Further server settings, e.g. `{ work_mem: "8MB" }`. Address, port, sockets and logging are refused. */
  settings?: Readonly<Record<string, string>>;
  logger?: LocalPostgresLogger;
  /** Deadline for each step: making the cluster, the server becoming ready, creating databases. Default 60,000. */
  startTimeoutMs?: number;
  /** How long a clean shutdown may take before it is enforced. Default 10,000. */
  stopTimeoutMs?: number;
};

export type StartPlan = Required<LocalPostgresOptions>;

// A first start takes about 1 s, a recovery after a crash replays at most max_wal_size (512 MB). One minute leaves
// room for a slow disk and still ends.
const START_TIMEOUT_MS = 60_000;
// A clean shutdown writes at most shared_buffers (128 MB) to disk; supervisors usually grant 10 s.
const STOP_TIMEOUT_MS = 10_000;

const SILENT: LocalPostgresLogger = { info() {}, warn() {}, error() {} };

// PostgreSQL cuts identifiers at 63 bytes (NAMEDATALEN - 1).
const DATABASE_NAME = /^[a-z_][a-z0-9_-]{0,62}$/;

/**
 * Fills in the defaults.
 * @throws TypeError naming the option and its rule.
 */
export function readOptions(options: LocalPostgresOptions): StartPlan {
  const plan: StartPlan = {
    dataDir: options.dataDir,
    port: options.port ?? 0,
    databases: options.databases ?? [],
    settings: options.settings ?? {},
    logger: options.logger ?? SILENT,
    startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
    stopTimeoutMs: options.stopTimeoutMs ?? STOP_TIMEOUT_MS,
  };
  if (!isAbsolute(plan.dataDir)) {
    throw new TypeError(`dataDir must be an absolute path, not "${plan.dataDir}"`);
  }
  if (!Number.isInteger(plan.port) || plan.port < 0 || plan.port > 65_535) {
    throw new TypeError(`port must be an integer from 0 to 65535, not ${plan.port}`);
  }
  for (const name of plan.databases) {
    if (!DATABASE_NAME.test(name)) {
      throw new TypeError(`databases: "${name}" must match ${DATABASE_NAME.source}`);
    }
  }
  for (const name of ["startTimeoutMs", "stopTimeoutMs"] as const) {
    // setTimeout fires at once above 2^31 - 1 ms.
    if (!(plan[name] > 0 && plan[name] <= 2_147_483_647)) {
      throw new TypeError(`${name} must be a positive number of milliseconds, not ${plan[name]}`);
    }
  }
  assertServerSettings(plan.settings);
  return plan;
}
