import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "@jest/globals";
import { createProcessTable, createPsTable } from "./process-table.ts";

// On Linux the first reads /proc; elsewhere both ask ps.
describe.each([
  ["of this machine", createProcessTable()],
  ["by ps", createPsTable()],
])("the process table %s", (_, table) => {
  test("tells parent, user and command line of a running process", async () => {
    const child = spawn("sleep", ["61.25"]);
    const ended = once(child, "exit");
    try {
      const facts = await table.find(child.pid ?? 0);

      expect(facts).toMatchObject({ parentPid: process.pid, uid: process.getuid?.(), commandLine: "sleep 61.25" });
      expect(await table.list()).toContainEqual(facts);
    } finally {
      child.kill();
      await ended;
    }
  });

  test("knows nothing of a process that ended", async () => {
    const child = spawn("true");
    await once(child, "exit");

    expect(await table.find(child.pid ?? 0)).toBeUndefined();
  });

  test("takes a zombie for gone", async () => {
    // The subshell starts a child, says its number and becomes a program that never collects it.
    const parent = spawn("/bin/sh", ["-c", "sleep 0.1 & echo $!; exec sleep 61.5"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = once(parent, "exit");
    try {
      const [line] = await once(parent.stdout, "data");
      const zombie = Number(String(line));
      const deadline = performance.now() + 10_000;
      while ((await table.find(zombie)) !== undefined && performance.now() < deadline) {
        // it needs a moment to end
      }

      expect(() => process.kill(zombie, 0)).not.toThrow(); // its number is still taken
      expect(await table.find(zombie)).toBeUndefined();
    } finally {
      parent.kill();
      await ended;
    }
  });
});
