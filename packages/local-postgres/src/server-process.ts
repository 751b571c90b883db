import type { ChildProcess } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { cannotEnd, shutdownSteps } from "./end-processes.ts";
import { LocalPostgresError, reasonOf } from "./local-postgres-error.ts";
import type { LocalPostgresLogger } from "./options.ts";
import { guardAgainstOrphaning } from "./parent-guard.ts";
import { readPidFile } from "./pid-file.ts";
import { programIdentity, spawnProgram } from "./run-program.ts";
import type { ServerAccount } from "./server-account.ts";
import type { ServerLog } from "./server-log.ts";

export type ServerExit = { code: number | null; signal: NodeJS.Signals | null };

export type ServerProcess = {
  pid: number;
  exited: Promise<ServerExit>;
  /**
   * Ends the server; calling again waits for the same end.
   * @throws LocalPostgresError `data-dir-in-use` when not even the kernel could end it
   */
  stop(): Promise<void>;
};

export type LaunchPlan = {
  program: string;
  args: readonly string[];
  cwd: string;
  clusterDir: string;
  account: ServerAccount | undefined;
  log: ServerLog;
  logger: LocalPostgresLogger;
  /** On the clock of performance.now(). */
  readyBy: number;
  stopTimeoutMs: number;
};

/**
 * Starts the server and waits until it accepts connections.
 * @throws LocalPostgresError `start-timeout`, or what its last words mean: `port-in-use`, `data-dir-in-use`,
 * `incompatible-data`, `start-failed`. The server is gone by then.
 */
export async function launchServer(plan: LaunchPlan): Promise<ServerProcess> {
  const child = spawnServer(plan);
  const drained = new Promise<void>((resolve) => child.once("close", () => resolve()));
  void drained.then(plan.log.close);
  const exited = exitOf(child);
  const pid = child.pid;
  if (pid === undefined) {
    throw cannotRun(await exited.catch((cause: unknown) => cause));
  }
  const guard = guardAgainstOrphaning(pid, plan.account, plan.logger);
  void exited.then(guard.release);
  const server: ServerProcess = { pid, exited, stop: atMostOnce(() => stopServer(child, exited, plan)) };
  try {
    const outcome = await waitUntilReady(plan, pid, exited);
    if (outcome === "ready") {
      return server;
    }
    if (outcome === "timeout") {
      throw new LocalPostgresError("start-timeout", `PostgreSQL was not ready in time.${lastWords(plan.log)}`);
    }
    // Its last lines may still be in the pipe; workers of a killed server can hold it open.
    await Promise.race([drained, pause(1_000, undefined, { ref: false })]);
    throw explainFailure(plan.log);
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function spawnServer(plan: LaunchPlan): ChildProcess {
  const { child, error } = spawnProgram(plan.program, plan.args, {
    ...programIdentity(plan.account),
    cwd: plan.cwd,
    detached: true, // a session of its own: Ctrl-C in the terminal must not stop it before the services have drained
    stdio: ["ignore", "ignore", "pipe"],
  });
  if (child === undefined) {
    throw cannotRun(error);
  }
  child.stderr?.on("data", (chunk: Buffer) => plan.log.append(chunk));
  return child;
}

function cannotRun(cause: unknown): LocalPostgresError {
  return new LocalPostgresError("start-failed", `PostgreSQL could not be run: ${reasonOf(cause)}`, { cause });
}

/** Rejects only when the program could not be run at all: a signal that is refused is an error event, too. */
function exitOf(child: ChildProcess): Promise<ServerExit> {
  const exited = new Promise<ServerExit>((resolve, reject) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.on("error", (error) => {
      if (child.pid === undefined) {
        reject(error);
      }
    });
  });
  exited.catch(() => undefined); // reported by whoever awaits it
  return exited;
}

/** pg_ctl's own method: the server writes "ready" into its pid file, in every language. */
async function waitUntilReady(
  plan: LaunchPlan,
  pid: number,
  exited: Promise<ServerExit>,
): Promise<"ready" | "exited" | "timeout"> {
  const gone = exited.then(() => "exited" as const);
  while (performance.now() < plan.readyBy) {
    const pidFile = await readPidFile(plan.clusterDir);
    if (pidFile?.pid === pid && pidFile.status === "ready") {
      return "ready";
    }
    // The file has no event; 20 ms is a fifth of the quickest start.
    if ((await Promise.race([gone, pause(20)])) === "exited") {
      return "exited";
    }
  }
  return "timeout";
}

async function stopServer(child: ChildProcess, exited: Promise<ServerExit>, plan: LaunchPlan): Promise<void> {
  for (const { signal, waitMs } of shutdownSteps(plan.stopTimeoutMs)) {
    child.kill(signal);
    if (await endsWithin(exited, waitMs)) {
      return;
    }
    plan.logger.warn(`the server did not stop within ${waitMs} ms of ${signal}`);
  }
  throw cannotEnd([child.pid ?? 0]);
}

async function endsWithin(exited: Promise<ServerExit>, waitMs: number): Promise<boolean> {
  const cancel = new AbortController();
  const expired = pause(waitMs, false, { signal: cancel.signal }).catch(() => false);
  try {
    return await Promise.race([exited.then(() => true), expired]);
  } finally {
    cancel.abort();
  }
}

function atMostOnce(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= act();
    return done;
  };
}

/** Reads the server's last words; they are in English because it runs with lc_messages=C. */
function explainFailure(log: Pick<ServerLog, "tail">): LocalPostgresError {
  const text = log.tail().join("\n");
  if (/could not bind .*: Address already in use/.test(text)) {
    return new LocalPostgresError("port-in-use", `The port for PostgreSQL is taken.${lastWords(log)}`);
  }
  if (/lock file ".*" (already exists|is empty)|pre-existing shared memory block/.test(text)) {
    return new LocalPostgresError(
      "data-dir-in-use",
      "This data directory is in use by another PostgreSQL server. Stop it, or set LINKFENCE_DATA_DIR to another " +
        `directory.${lastWords(log)}`,
    );
  }
  if (/database files are incompatible with server/.test(text)) {
    return new LocalPostgresError(
      "incompatible-data",
      `This PostgreSQL cannot read the data directory's files.${lastWords(log)}`,
    );
  }
  return new LocalPostgresError("start-failed", `PostgreSQL did not start.${lastWords(log)}`);
}

function lastWords(log: Pick<ServerLog, "tail">): string {
  const lines = log.tail().slice(-10);
  return lines.length === 0 ? " It said nothing." : ` It said:\n${lines.join("\n")}`;
}
