import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import postgres from "postgres";
import { pidFilePath } from "./pid-file.ts";
import { createProcessTable } from "./process-table.ts";
import type { LocalPostgres } from "./start.ts";
import { createTrial, launchDirectly, refusal, withSql } from "./trial.fixture.ts";

const trial = createTrial();
const table = createProcessTable();
afterEach(trial.cleanUp);
afterAll(trial.close);

/** A cluster whose server was killed; its pid file names a process that is gone. */
async function crashedCluster(): Promise<{ dataDir: string; server: LocalPostgres }> {
  const dataDir = await trial.stoppedCluster();
  const server = await trial.start({ dataDir });
  process.kill(server.pid, "SIGKILL");
  expect(await server.exited).toEqual({ code: null, signal: "SIGKILL" });
  return { dataDir, server };
}

describe("after a kill -9 of the server", () => {
  test("the next start recovers everything committed", async () => {
    const dataDir = await trial.stoppedCluster();
    const first = await trial.start({ dataDir, settings: { fsync: "off" } });
    await withSql(first.url("postgres"), (sql) => sql`CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n`);
    process.kill(first.pid, "SIGKILL");
    await first.exited;

    const second = await trial.start({ dataDir });

    expect(await withSql(second.url("postgres"), (sql) => sql`SELECT sum(n)::int FROM kept`)).toEqual([
      { sum: 500_500 },
    ]);
    expect(second.serverLog().join("\n")).toContain("automatic recovery in progress");
  });

  test("the next start ends a worker that computes on; without that rule it is refused", async () => {
    const dataDir = await trial.stoppedCluster();
    const first = await trial.start({ dataDir });
    const sql = postgres(first.url("postgres"), { max: 1, onnotice: () => undefined });
    trial.undo(() => sql.end({ timeout: 0 }));
    const [row] = await sql`SELECT pg_backend_pid() AS pid`;
    const endless = sql`SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000) b`.catch(
      () => undefined,
    );
    await withSql(first.url("postgres"), async (other) => {
      while ((await other`SELECT 1 FROM pg_stat_activity WHERE pid = ${row?.pid} AND state = 'active'`).length === 0) {
        // the statement is on its way
      }
    });
    process.kill(first.pid, "SIGKILL");
    await first.exited;
    const worker = await table.find(Number(row?.pid));
    expect(worker?.commandLine).toContain("linkfence:");

    const control = await refusal(launchDirectly(trial, dataDir));
    const second = await trial.start({ dataDir });

    expect(control).toMatchObject({ code: "data-dir-in-use", message: expect.stringContaining("pre-existing shared") });
    expect(await table.find(Number(row?.pid))).toBeUndefined();
    expect(await withSql(second.url("postgres"), (other) => other`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
    await endless;
  });

  test("the next start is not deceived by another program with the old number; without that rule it is refused", async () => {
    const { dataDir } = await crashedCluster();
    const clusterDir = join(dataDir, "cluster");
    const { uid, gid } = await stat(clusterDir);
    const bystander = spawn("sleep", ["60"], { uid, gid });
    trial.undo(() => endChild(bystander));
    const pidFile = await readFile(pidFilePath(clusterDir), "utf8");
    await writeFile(pidFilePath(clusterDir), pidFile.replace(/^\d+/, String(bystander.pid)));

    const control = await refusal(launchDirectly(trial, dataDir));
    const second = await trial.start({ dataDir });

    expect(control).toMatchObject({ code: "data-dir-in-use", message: expect.stringContaining("already exists") });
    expect(await withSql(second.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
    expect(await table.find(bystander.pid ?? 0)).toBeDefined(); // and it does the program no harm
  });

  test("the next start removes an empty pid file; without that rule it is refused", async () => {
    const { dataDir } = await crashedCluster();
    await writeFile(pidFilePath(join(dataDir, "cluster")), "");

    const control = await refusal(launchDirectly(trial, dataDir));
    const second = await trial.start({ dataDir });

    expect(control.message).toContain('lock file "postmaster.pid" is empty');
    expect(await withSql(second.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
  });
});

describe("a kill -9 of the start command", () => {
  test("while it makes the cluster leaves nothing half made", async () => {
    const dataDir = await trial.directory();
    const starter = spawn(
      process.execPath,
      [
        "--conditions=source",
        "--import",
        "tsx",
        join(import.meta.dirname, "starter.fixture.ts"),
        JSON.stringify({ dataDir }),
      ],
      { cwd: join(import.meta.dirname, "..", "..", ".."), stdio: "ignore" },
    );
    const ended = once(starter, "exit");
    await until(async () => {
      const workspace = (await readdir(dataDir)).find((name) => name.startsWith("cluster.new-"));
      const content: string[] | undefined =
        workspace === undefined ? undefined : await readdir(join(dataDir, workspace, "content")).catch(() => []);
      return content?.includes("global");
    });
    starter.kill("SIGKILL");
    await ended;
    expect(await readdir(dataDir)).not.toContain("cluster");

    const server = await trial.start({ dataDir });

    expect(await withSql(server.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
    expect((await readdir(dataDir)).sort()).toEqual(["cluster", "server.log", "superuser-password"]);
  });
});

describe("stopping", () => {
  test("is enforced when a worker does not listen", async () => {
    const warnings: string[] = [];
    const logger = { info: () => undefined, warn: (line: string) => warnings.push(line), error: () => undefined };
    const server = await trial.start({ dataDir: await trial.stoppedCluster(), stopTimeoutMs: 300, logger });
    const sql = postgres(server.url("postgres"), { max: 1, onnotice: () => undefined });
    trial.undo(() => sql.end({ timeout: 0 }));
    const [row] = await sql`SELECT pg_backend_pid() AS pid`;
    process.kill(Number(row?.pid), "SIGSTOP");

    await server.stop();

    expect(await table.find(server.pid)).toBeUndefined();
    expect(await table.find(Number(row?.pid))).toBeUndefined();
    expect(warnings).toEqual(["the server did not stop within 300 ms of SIGINT"]);
  });
});

async function until(condition: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > end) {
      throw new Error("waited 20 s in vain");
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function endChild(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}
