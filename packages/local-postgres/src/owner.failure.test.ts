import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { createProcessTable } from "./process-table.ts";
import { createTrial, gone, isRunning, killHard, refusal, type Starter, withSql } from "./trial.fixture.ts";

const trial = createTrial();
const table = createProcessTable();
afterEach(trial.cleanUp);
afterAll(trial.close);

function serverOf({ report }: Starter): { pid: number; port: number } {
  if (!("pid" in report)) {
    throw new Error(`it did not start: ${report.message}`);
  }
  return report;
}

async function guardOf(serverPid: number): Promise<number> {
  const guard = (await table.list()).find(({ commandLine }) =>
    commandLine.endsWith(` linkfence-postgres-guard ${serverPid}`),
  );
  return guard?.pid ?? 0;
}

describe("a data directory", () => {
  test("belongs to one of several simultaneous first starts, and the others are told whose it is", async () => {
    const dataDir = await trial.directory();

    const starters = await Promise.all([1, 2, 3].map(() => trial.startInChild({ dataDir, databases: ["linkfence"] })));

    const winners = starters.filter(({ report }) => "pid" in report);
    const losers = starters.filter(({ report }) => !("pid" in report));
    expect(winners).toHaveLength(1);
    const ownerPid = winners[0]?.child.pid;
    expect(losers.map(({ report }) => report)).toEqual(
      Array(2).fill({
        code: "data-dir-in-use",
        message: expect.stringMatching(new RegExp(`in use by process ${ownerPid} .*set LINKFENCE_DATA_DIR`)),
      }),
    );
  });

  test("is refused while its owner lives, and the owner's server runs on", async () => {
    const dataDir = await trial.stoppedCluster();
    const owner = await trial.start({ dataDir });

    const second = await refusal(trial.start({ dataDir }));

    expect(second).toMatchObject({
      code: "data-dir-in-use",
      message: expect.stringContaining(`in use by process ${process.pid}`),
    });
    expect(await withSql(owner.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
  });

  test("is recognised under another path", async () => {
    const dataDir = await trial.stoppedCluster();
    await trial.start({ dataDir });

    const second = await refusal(trial.start({ dataDir: join(dataDir, "cluster", "..") }));

    expect(second.code).toBe("data-dir-in-use");
  });

  test("is free again after a kill -9 of its owner: the server stops by itself", async () => {
    const dataDir = await trial.stoppedCluster();
    const owner = await trial.startInChild({ dataDir });
    const { pid } = serverOf(owner);

    await killHard(owner.child.pid ?? 0);
    await gone(pid);
    const next = await trial.start({ dataDir });

    expect(await withSql(next.url("postgres"), (sql) => sql`SELECT 1 AS alive`)).toEqual([{ alive: 1 }]);
    expect(next.serverLog().join("\n")).not.toContain("recovery"); // it had been a clean shutdown
  });

  test("is taken over from a server whose owner and guard were killed", async () => {
    const dataDir = await trial.stoppedCluster();
    const owner = await trial.startInChild({ dataDir });
    const { pid } = serverOf(owner);
    await killHard(await guardOf(pid));
    await killHard(owner.child.pid ?? 0);
    expect(await isRunning(pid)).toBe(true);

    const next = await trial.start({ dataDir });

    expect(next.pid).not.toBe(pid);
    expect(await isRunning(pid)).toBe(false);
    expect(next.serverLog().join("\n")).not.toContain("recovery");
  });

  test("is taken over by one of several when its server was orphaned", async () => {
    const dataDir = await trial.stoppedCluster();
    const owner = await trial.startInChild({ dataDir });
    const { pid } = serverOf(owner);
    await killHard(await guardOf(pid));
    await killHard(owner.child.pid ?? 0);

    const starters = await Promise.all([1, 2].map(() => trial.startInChild({ dataDir })));

    expect(starters.filter(({ report }) => "pid" in report)).toHaveLength(1);
    expect(starters.filter(({ report }) => "code" in report && report.code === "data-dir-in-use")).toHaveLength(1);
  });
});

describe("Ctrl-C in the terminal", () => {
  test("does not reach the server, nor its guard: each leads a process group of its own", async () => {
    const server = await trial.start({ dataDir: await trial.stoppedCluster() });
    const guard = await guardOf(server.pid);

    expect(await processGroups([server.pid, guard])).toEqual([server.pid, guard]);
  });
});

async function processGroups(pids: readonly number[]): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "pid=,pgid=", "-p", pids.join(",")]);
  const groups = new Map(stdout.split("\n").map((line) => line.trim().split(/\s+/).map(Number) as [number, number]));
  return pids.map((pid) => groups.get(pid) ?? 0);
}
