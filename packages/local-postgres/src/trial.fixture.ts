import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import postgres from "postgres";
import { findBinaryPackage } from "./binaries.ts";
import { reachDirectory } from "./data-dir.ts";
import { findFreePort } from "./free-port.ts";
import { errorCode, reasonOf } from "./local-postgres-error.ts";
import type { LocalPostgresOptions } from "./options.ts";
import { createProcessTable } from "./process-table.ts";
import { chooseServerAccount } from "./server-account.ts";
import { createServerLog } from "./server-log.ts";
import { launchServer, type ServerProcess } from "./server-process.ts";
import { serverArguments } from "./server-settings.ts";
import { type LocalPostgres, startLocalPostgres } from "./start.ts";

/** The clusters are thrown away, so nothing has to reach the disk. */
export const FAST = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/** A start command in a process of its own. `report` is its first line: where its server is, or why there is none. */
export type Starter = { child: ChildProcess; report: StarterReport };
type StarterReport = { pid: number; port: number } | { code: string; message: string };

const run = promisify(execFile);
const REPOSITORY = join(import.meta.dirname, "..", "..", "..");

/**
 * Everything a test starts or creates, ended and removed by `cleanUp` after each test, and by `close` after the last.
 * Making a cluster takes a second or two, so most tests start on a copy of one that is made once.
 */
export function createTrial() {
  const undo: (() => Promise<unknown>)[] = [];
  let model: Promise<string> | undefined;

  async function directory(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), "linkfence-postgres-"));
    await chmod(path, 0o755);
    undo.push(() => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
    return path;
  }

  async function makeModel(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), "linkfence-postgres-model-"));
    const server = await startLocalPostgres({ dataDir: path, settings: FAST });
    await server.stop();
    return path;
  }

  /** @returns a data directory with a cluster of its own and no server */
  async function stoppedCluster(): Promise<string> {
    model ??= makeModel();
    const path = await directory();
    await run("cp", ["-a", `${await model}/.`, path]);
    return path;
  }

  async function start(options: LocalPostgresOptions): Promise<LocalPostgres> {
    const server = await startLocalPostgres({ settings: FAST, ...options });
    undo.push(() => server.stop());
    return server;
  }

  async function startInChild(options: LocalPostgresOptions, account?: { uid: number; gid: number }): Promise<Starter> {
    const script = join(REPOSITORY, "packages", "local-postgres", "dist", "starter.fixture.js");
    const child = spawn(process.execPath, [script, JSON.stringify({ settings: FAST, ...options })], {
      cwd: REPOSITORY,
      stdio: ["pipe", "pipe", "inherit"],
      ...account,
    });
    const ended = once(child, "exit");
    undo.push(async () => {
      child.kill("SIGTERM");
      await ended;
    });
    const [line] = await once(createInterface(child.stdout), "line");
    return { child, report: JSON.parse(String(line)) };
  }

  async function cleanUp(): Promise<void> {
    for (const step of undo.splice(0).reverse()) {
      await step();
    }
  }

  async function close(): Promise<void> {
    await cleanUp();
    if (model !== undefined) {
      await rm(await model, { recursive: true, force: true });
    }
  }

  return {
    directory,
    stoppedCluster,
    start,
    startInChild,
    cleanUp,
    close,
    undo: (step: () => Promise<unknown>) => undo.push(step),
  };
}

/**
 * The launch alone, without first looking at the port and making way for it: what every start would be without those
 * rules.
 * @param port absent: a free one
 */
export async function launchDirectly(trial: Trial, dataDir: string, port?: number): Promise<ServerProcess> {
  const clusterDir = join(dataDir, "cluster");
  const account = await chooseServerAccount(clusterDir);
  const { nativeDir } = await findBinaryPackage();
  const { path, cwd } = await reachDirectory(clusterDir, account);
  const listen = { pgdata: path, port: port ?? (await findFreePort()) };
  const server = await launchServer({
    program: join(nativeDir, "bin", "postgres"),
    args: serverArguments(listen, { mark: "linkfence:0:0", ownerPid: process.pid }, FAST),
    cwd,
    clusterDir,
    account,
    log: createServerLog(join(dataDir, "direct.log"), { secret: "none", onTrouble: () => undefined }),
    logger: console,
    readyBy: performance.now() + 20_000,
    stopTimeoutMs: 5_000,
  });
  trial.undo(() => server.stop());
  return server;
}

/** Runs statements on a connection of their own. */
export async function withSql<T>(url: string, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 0 });
  }
}

type Trial = ReturnType<typeof createTrial>;

const table = createProcessTable();

export async function isRunning(pid: number): Promise<boolean> {
  return (await table.find(pid)) !== undefined;
}

/** Waits until a process that is not our child is gone. @throws after `withinMs` */
export async function gone(pid: number, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (await isRunning(pid)) {
    if (performance.now() > end) {
      throw new Error(`process ${pid} still runs after ${withinMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export async function killHard(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await gone(pid);
}

/** @returns the rejection's code and message; fails when there was none */
export async function refusal(attempt: Promise<unknown>): Promise<{ code: string | undefined; message: string }> {
  const error = await attempt.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  return { code: errorCode(error), message: reasonOf(error) };
}
