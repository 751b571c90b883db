import {
  type Binaries,
  type BinaryPackage,
  findBinaryPackage,
  prepareBinaries,
  RUNTIME_CACHE_DIR,
} from "./binaries.ts";
import { initialiseCluster, versionMismatch } from "./cluster-init.ts";
import { type DataDirLayout, openDataDir, readClusterVersion, settleOwnership, unusable } from "./data-dir.ts";
import { createMissingDatabases } from "./databases.ts";
import { findFreePort } from "./free-port.ts";
import { launchUntilReady, type Prepared } from "./launch.ts";
import { errorCode, reasonOf } from "./local-postgres-error.ts";
import { type LocalPostgresOptions, readOptions, type StartPlan } from "./options.ts";
import { chooseServerAccount, type ServerAccount } from "./server-account.ts";
import type { ServerExit } from "./server-process.ts";
import { withStartLock } from "./start-lock.ts";
import { ensureSuperuserPassword, SUPERUSER } from "./superuser-password.ts";

/** A running embedded server. It listens on loopback only and wants the password that `url` carries. */
export type LocalPostgres = {
  port: number;
  host: "127.0.0.1";
  /** The server's main process. */
  pid: number;
  /** @returns a connection URL of the superuser. It holds the password: never log it. */
  url(database: string): string;
  /** Resolves when the server ends, wanted or not. */
  exited: Promise<ServerExit>;
  /** Fast shutdown; enforced after the stop deadline. Resolves when the server is gone; may be called again. */
  stop(): Promise<void>;
  /** The last lines the server said, oldest first; all of it is in `<dataDir>/server.log`. */
  serverLog(): readonly string[];
};

/** What is fixed outside of tests: where PostgreSQL's programs come from, where a reachable copy may go, free ports. */
export type Surroundings = {
  binaryPackage: BinaryPackage;
  runtimeCacheDir: string;
  findFreePort(): Promise<number>;
};

const HOST = "127.0.0.1";

/**
 * Starts PostgreSQL on a data directory of its own, making the cluster at the first start and recovering after any kind
 * of kill. One start command per data directory: a second one is refused while the first lives.
 * @throws LocalPostgresError with a code for each kind of trouble; TypeError for malformed options
 */
export async function startLocalPostgres(options: LocalPostgresOptions): Promise<LocalPostgres> {
  readOptions(options);
  const binaryPackage = await findBinaryPackage();
  return await startWith(options, { binaryPackage, runtimeCacheDir: RUNTIME_CACHE_DIR, findFreePort });
}

/** {@link startLocalPostgres} with its surroundings handed in. */
export async function startWith(options: LocalPostgresOptions, surroundings: Surroundings): Promise<LocalPostgres> {
  const plan = readOptions(options);
  try {
    const layout = await openDataDir(plan.dataDir);
    return await withStartLock(layout.root, plan.startTimeoutMs, async () => {
      const account = await chooseServerAccount(layout.cluster);
      const binaries = await prepareBinaries(surroundings.binaryPackage, surroundings.runtimeCacheDir, account);
      const password = await prepareCluster(plan, layout, { account, binaries });
      return await run(plan, { layout, account, binaries, password, findFreePort: surroundings.findFreePort });
    });
  } catch (error) {
    // A failed system call nobody expected, e.g. ENOSPC on a full disk: about the data directory all the same.
    throw /^E(?!RR_)/.test(errorCode(error) ?? "") ? unusable(plan.dataDir, reasonOf(error), { cause: error }) : error;
  }
}

/** @returns the superuser's password */
async function prepareCluster(
  plan: StartPlan,
  layout: DataDirLayout,
  server: { account: ServerAccount | undefined; binaries: Binaries },
): Promise<string> {
  const version = await readClusterVersion(layout.cluster);
  const mismatch = version && versionMismatch(layout.cluster, version, server.binaries.major);
  if (mismatch) {
    throw mismatch;
  }
  const password = await ensureSuperuserPassword(layout, version !== undefined);
  if (version === undefined) {
    plan.logger.info(`making a PostgreSQL ${server.binaries.major} cluster in ${layout.cluster}`);
    await initialiseCluster({
      ...server,
      clusterDir: layout.cluster,
      password,
      durable: plan.settings.fsync !== "off",
      timeoutMs: plan.startTimeoutMs,
    });
  }
  await settleOwnership(layout.cluster, server.account);
  return password;
}

async function run(plan: StartPlan, prepared: Prepared): Promise<LocalPostgres> {
  const { layout, password } = prepared;
  const { port, server, log } = await launchUntilReady(plan, prepared);
  void server.exited.then(({ code, signal }) => {
    plan.logger.info(`PostgreSQL (process ${server.pid}) ended: ${signal ?? `exit code ${code}`}`);
  });
  try {
    const connection = { host: HOST, port, username: SUPERUSER, password };
    await createMissingDatabases(connection, plan.databases, plan.startTimeoutMs);
  } catch (error) {
    await server.stop();
    throw error;
  }
  plan.logger.info(`PostgreSQL is ready on ${HOST}:${port} (process ${server.pid}, log ${layout.logFile})`);
  return {
    port,
    host: HOST,
    pid: server.pid,
    url: (database) => `postgres://${SUPERUSER}:${encodeURIComponent(password)}@${HOST}:${port}/${database}`,
    exited: server.exited,
    stop: server.stop,
    serverLog: log.tail,
  };
}
