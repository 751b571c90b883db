import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { Binaries } from "./binaries.ts";
import { type DataDirLayout, reachDirectory } from "./data-dir.ts";
import { type Cluster, clearFormerServer } from "./former-server.ts";
import { isPortFree } from "./free-port.ts";
import { LocalPostgresError } from "./local-postgres-error.ts";
import type { StartPlan } from "./options.ts";
import { createProcessTable } from "./process-table.ts";
import type { ServerAccount } from "./server-account.ts";
import { createServerLog, type ServerLog } from "./server-log.ts";
import { launchServer, type ServerProcess } from "./server-process.ts";
import { serverArguments } from "./server-settings.ts";

/** Everything a launch needs: a cluster in place, programs that run, the account to run them as. */
export type Prepared = {
  layout: DataDirLayout;
  account: ServerAccount | undefined;
  binaries: Binaries;
  password: string;
  findFreePort(): Promise<number>;
};

export type Launched = { port: number; server: ServerProcess; log: ServerLog };

// Each repetition needs somebody else to get in between within milliseconds: another process taking the picked port, or
// another start command on the same directory. Ten in a row do not happen by accident.
const MAX_LAUNCHES = 10;

/**
 * Makes way for the server and starts it, again when a race for the port or the directory was lost.
 * @throws LocalPostgresError
 */
export async function launchUntilReady(plan: StartPlan, prepared: Prepared): Promise<Launched> {
  const readyBy = performance.now() + plan.startTimeoutMs;
  const cluster = await describeCluster(prepared);
  const table = createProcessTable();
  for (let attempt = 1; ; attempt += 1) {
    await clearFormerServer(cluster, table, plan);
    const port = plan.port === 0 ? await prepared.findFreePort() : await expectFree(plan.port);
    try {
      return await launchOnce(plan, prepared, { port, cluster, readyBy });
    } catch (error) {
      if (attempt === MAX_LAUNCHES || performance.now() > readyBy || !isLostRace(error, plan)) {
        throw error;
      }
      plan.logger.info("another process was faster, trying again");
      await pause(100); // the winner of the directory needs a moment until it can be named
    }
  }
}

/** Device and inode tell clusters apart under every spelling of the path, and after a move. */
async function describeCluster({ layout, account }: Prepared): Promise<Cluster> {
  const { dev, ino, uid } = await stat(layout.cluster, { bigint: true });
  return { dir: layout.cluster, mark: `linkfence:${dev}:${ino}`, ownerUid: Number(uid), account };
}

async function expectFree(port: number): Promise<number> {
  if (await isPortFree(port)) {
    return port;
  }
  throw new LocalPostgresError(
    "port-in-use",
    `Port ${port} on 127.0.0.1, wanted for PostgreSQL, is taken by another process. Stop that process, or use another port.`,
  );
}

async function launchOnce(
  plan: StartPlan,
  { layout, account, binaries, password }: Prepared,
  target: { port: number; cluster: Cluster; readyBy: number },
): Promise<Launched> {
  const reach = await reachDirectory(layout.cluster, account);
  const log = createServerLog(layout.logFile, {
    secret: password,
    onTrouble: (error) => plan.logger.warn(`the server's log file is incomplete: ${error}`),
  });
  const server = await launchServer({
    program: binaries.postgres,
    args: serverArguments(
      { pgdata: reach.path, port: target.port },
      { mark: target.cluster.mark, ownerPid: process.pid },
      plan.settings,
    ),
    cwd: reach.cwd,
    clusterDir: layout.cluster,
    account,
    log,
    logger: plan.logger,
    readyBy: target.readyBy,
    stopTimeoutMs: plan.stopTimeoutMs,
  });
  return { port: target.port, server, log };
}

function isLostRace(error: unknown, plan: StartPlan): boolean {
  if (!(error instanceof LocalPostgresError)) {
    return false;
  }
  return error.code === "data-dir-in-use" || (error.code === "port-in-use" && plan.port === 0);
}
