// Who may use a data directory. Nothing here has to be released, so nothing outlives a kill -9:
// - One start looks at a time (start-lock.ts), and PostgreSQL's own interlock (pid file and shared memory) admits one
//   server per cluster, whatever else goes wrong.
// - Every server carries its cluster's mark and its starter's process id on its command line. The kernel gives a process
//   whose parent died to another parent, so "parent = starter" means exactly that the starter lives.
// All of it holds on one machine; a directory shared by two machines or containers is outside of what this can see.
import { setTimeout as pause } from "node:timers/promises";
import { endProcesses, type SignalStep, shutdownSteps } from "./end-processes.ts";
import { LocalPostgresError } from "./local-postgres-error.ts";
import type { LocalPostgresLogger } from "./options.ts";
import { type PidFile, pidFilePath, readPidFile, removeEmptyPidFile, replacePidWithOurs } from "./pid-file.ts";
import type { ProcessFacts, ProcessTable } from "./process-table.ts";
import type { ServerAccount } from "./server-account.ts";

export type Cluster = { dir: string; mark: string; ownerUid: number; account: ServerAccount | undefined };

export type FormerServer =
  | { kind: "none" }
  /** The pid file says nothing. */
  | { kind: "empty-pid-file" }
  /** The number in the pid file now belongs to a process that has nothing to do with this cluster. */
  | { kind: "recycled-pid"; pid: number }
  /** Still serving, and its starter lives. */
  | { kind: "owned"; pid: number; ownerPid: number }
  /** Still serving, but its starter is gone. */
  | { kind: "orphan"; pid: number }
  /** A PostgreSQL server that we did not start, possibly on this cluster. */
  | { kind: "foreign"; pid: number };

/**
 * Decides what the pid file means.
 * @param found the process with the pid file's number, if one runs
 */
export function judgeFormerServer(
  pidFile: PidFile | undefined,
  found: ProcessFacts | undefined,
  cluster: Pick<Cluster, "mark" | "ownerUid">,
): FormerServer {
  if (pidFile === undefined) {
    return { kind: "none" };
  }
  if (pidFile.pid === undefined) {
    return { kind: "empty-pid-file" };
  }
  if (found === undefined) {
    return { kind: "none" };
  }
  if (isServerOf(cluster.mark, found)) {
    const ownerPid = Number(/ linkfence\.owner_pid=(\d+)/.exec(found.commandLine)?.[1]);
    return found.parentPid === ownerPid
      ? { kind: "owned", pid: found.pid, ownerPid }
      : { kind: "orphan", pid: found.pid };
  }
  // A server may only run as its cluster's owner (checkDataDir in src/backend/utils/init/miscinit.c).
  const couldServe = found.uid === cluster.ownerUid && isUnmarkedServer(found.commandLine);
  return couldServe ? { kind: "foreign", pid: found.pid } : { kind: "recycled-pid", pid: found.pid };
}

function isServerOf(mark: string, { commandLine }: ProcessFacts): boolean {
  return commandLine.includes(` cluster_name=${mark} `);
}

function isUnmarkedServer(commandLine: string): boolean {
  return /^\S*(postgres|postmaster)( |$)/.test(commandLine) && !commandLine.includes(" cluster_name=linkfence:");
}

/**
 * Makes way for a new server: refuses while another start command uses the cluster, stops a server whose start command
 * was killed, and clears what a crash left behind.
 * @throws LocalPostgresError `data-dir-in-use`
 */
export async function clearFormerServer(
  cluster: Cluster,
  table: ProcessTable,
  options: { stopTimeoutMs: number; logger: LocalPostgresLogger },
): Promise<void> {
  const { logger } = options;
  const former = await findFormerServer(cluster, table);
  switch (former.kind) {
    case "owned":
      throw new LocalPostgresError(
        "data-dir-in-use",
        `This data directory is in use by process ${former.ownerPid} (its server: ${former.pid}): ${cluster.dir}. ` +
          "Stop it, or set LINKFENCE_DATA_DIR to another directory.",
      );
    case "foreign":
      throw new LocalPostgresError(
        "data-dir-in-use",
        `This data directory may be in use by process ${former.pid}, a PostgreSQL server not started by linkfence: ` +
          `${cluster.dir}. Stop it. If it serves another directory, delete ${pidFilePath(cluster.dir)}.`,
      );
    case "orphan":
      logger.warn(`stopping server ${former.pid}, which a killed start command left behind`);
      await endProcesses([former.pid], shutdownSteps(options.stopTimeoutMs), isStill(table, cluster.mark));
      break;
    case "recycled-pid":
      await replacePidWithOurs(cluster.dir, former.pid, cluster.account);
      break;
    case "empty-pid-file":
      logger.warn("removing an empty postmaster.pid, the remains of a crash");
      await removeEmptyPidFile(cluster.dir);
      break;
    case "none":
      break;
  }
  await endAbandonedWorkers(cluster, table);
}

// Two states pass by themselves: a starting server fills its new pid file within microseconds, and a killed start command
// stays its server's parent for the milliseconds in which its threads end, though it is already a zombie.
const UNSETTLED_GRACE_MS = 1_000;

async function findFormerServer(cluster: Cluster, table: ProcessTable): Promise<FormerServer> {
  for (const end = performance.now() + UNSETTLED_GRACE_MS; ; ) {
    const pidFile = await readPidFile(cluster.dir);
    const found = pidFile?.pid === undefined ? undefined : await table.find(pidFile.pid);
    const former = judgeFormerServer(pidFile, found, cluster);
    const unsettled =
      former.kind === "empty-pid-file" ||
      (former.kind === "owned" && (await table.find(former.ownerPid)) === undefined);
    if (!unsettled || performance.now() > end) {
      return former;
    }
    await pause(20);
  }
}

/**
 * Workers of a killed server leave by themselves as soon as they wait for anything; one deep in a computation does not,
 * and keeps the next server from starting. SIGQUIT ends a worker at once without touching shared state.
 */
async function endAbandonedWorkers(cluster: Cluster, table: ProcessTable): Promise<void> {
  const all = await table.list();
  const servers = new Set(all.filter((facts) => isServerOf(cluster.mark, facts)).map(({ pid }) => pid));
  const title = `postgres: ${cluster.mark}: `;
  const isWorker = (facts: ProcessFacts | undefined) => facts?.commandLine.startsWith(title) ?? false;
  // Not those of a living server: another start command may have been faster.
  const abandoned = all.filter((facts) => isWorker(facts) && !servers.has(facts.parentPid)).map(({ pid }) => pid);
  const steps: SignalStep[] = [
    { signal: "SIGQUIT", waitMs: 2_000 }, // the handler only prints a warning and exits
    { signal: "SIGKILL", waitMs: 5_000 }, // then only the kernel can be in the way
  ];
  await endProcesses(abandoned, steps, async (pid) => isWorker(await table.find(pid)));
}

function isStill(table: ProcessTable, mark: string): (pid: number) => Promise<boolean> {
  return async (pid) => {
    const facts = await table.find(pid);
    return facts !== undefined && isServerOf(mark, facts);
  };
}
