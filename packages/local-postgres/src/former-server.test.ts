import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { clearFormerServer, judgeFormerServer } from "./former-server.ts";
import type { ProcessFacts, ProcessTable } from "./process-table.ts";
import { serverArguments } from "./server-settings.ts";

const MARK = "linkfence:2049:77";
const CLUSTER = { mark: MARK, ownerUid: 101 };
const OWNER = 500;
const PID_FILE = { pid: 600, status: "ready" };

function serverProcess(changes: { mark?: string; parentPid?: number } = {}) {
  const identity = { mark: changes.mark ?? MARK, ownerPid: OWNER };
  const args = serverArguments({ pgdata: "/data/cluster", port: 5432 }, identity, {});
  const commandLine = ["/opt/bin/postgres", ...args].join(" ");
  return { pid: 600, parentPid: changes.parentPid ?? OWNER, uid: 101, commandLine };
}

describe("a pid file found at the start", () => {
  test("is in use while the server's parent is the process that started it", () => {
    expect(judgeFormerServer(PID_FILE, serverProcess(), CLUSTER)).toEqual({ kind: "owned", pid: 600, ownerPid: OWNER });
  });

  test("belongs to an orphan once the kernel gave the server another parent", () => {
    expect(judgeFormerServer(PID_FILE, serverProcess({ parentPid: 1 }), CLUSTER)).toEqual({ kind: "orphan", pid: 600 });
  });

  test("means nothing when its process is gone", () => {
    expect(judgeFormerServer(PID_FILE, undefined, CLUSTER)).toEqual({ kind: "none" });
  });

  test("may be missing", () => {
    expect(judgeFormerServer(undefined, undefined, CLUSTER)).toEqual({ kind: "none" });
  });

  test("may have been cut short by a crash", () => {
    expect(judgeFormerServer({ pid: undefined, status: "" }, undefined, CLUSTER)).toEqual({ kind: "empty-pid-file" });
  });

  test.each([
    ["another program", { commandLine: "node server.ts", uid: 101 }],
    ["a program that only mentions the cluster", { commandLine: `grep cluster_name=${MARK}`, uid: 101 }],
    ["a worker of some server", { commandLine: "postgres: checkpointer", uid: 101 }],
    ["a PostgreSQL server of another user", { commandLine: "/usr/bin/postgres -D /var/lib/pg", uid: 33 }],
  ])("is stale when its number went to %s", (_, facts) => {
    const found = { pid: 600, parentPid: 1, ...facts };

    expect(judgeFormerServer(PID_FILE, found, CLUSTER)).toEqual({ kind: "recycled-pid", pid: 600 });
  });

  test("is stale when its number went to the server of another data directory, also one whose inode begins alike", () => {
    const found = serverProcess({ mark: `${MARK}8` });

    expect(judgeFormerServer(PID_FILE, found, CLUSTER)).toEqual({ kind: "recycled-pid", pid: 600 });
  });

  test("is left alone when a server of the same user runs that we did not start", () => {
    const found = { pid: 600, parentPid: 1, uid: 101, commandLine: "/usr/lib/postgresql/16/bin/postgres -D /x" };

    expect(judgeFormerServer(PID_FILE, found, CLUSTER)).toEqual({ kind: "foreign", pid: 600 });
  });
});

describe("making way for a new server", () => {
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
  let dir = "";
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "linkfence-former-"));
    await writeFile(join(dir, "postmaster.pid"), "600\n");
  });
  afterEach(async () => await rm(dir, { recursive: true }));

  /** A table in which the server's process looks different at each look, and its owner never changes. */
  function tableOf(looks: (ProcessFacts | undefined)[], owner: ProcessFacts | undefined): ProcessTable {
    return { find: async (pid) => (pid === OWNER ? owner : looks.shift()), list: async () => [] };
  }

  const clear = (table: ProcessTable) =>
    clearFormerServer({ dir, account: undefined, ...CLUSTER }, table, { stopTimeoutMs: 1, logger: silent });

  test("waits for an owner that is just dying to let go of its server", async () => {
    const looks = [serverProcess(), serverProcess(), serverProcess({ parentPid: 1 }), undefined];

    await clear(tableOf(looks, undefined));

    expect(looks).toEqual([]);
  });

  test("refuses at once when the owner lives", async () => {
    const owner = { pid: OWNER, parentPid: 1, uid: 0, commandLine: "node start" };
    const looks = [serverProcess(), serverProcess({ parentPid: 1 })];

    await expect(clear(tableOf(looks, owner))).rejects.toMatchObject({ code: "data-dir-in-use" });

    expect(looks).toHaveLength(1);
  });
});
