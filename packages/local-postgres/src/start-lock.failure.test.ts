import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { withStartLock } from "./start-lock.ts";
import { refusal } from "./trial.fixture.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-lock-"));
});
afterEach(async () => await rm(directory, { recursive: true, force: true }));

/** Takes the lock in a process of its own, says so, and keeps it for ever. */
const HOLDER = `
  import { withStartLock } from ${JSON.stringify(join(import.meta.dirname, "start-lock.ts"))};
  await withStartLock(process.argv[1], 10_000, async () => {
    console.log("held");
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  });`;

const whenLinux = process.platform === "linux" ? describe : describe.skip;

whenLinux("the start lock", () => {
  test("lets one in at a time, in whatever order, and none is lost", async () => {
    let inside = 0;
    let most = 0;
    const enter = async (value: number) =>
      await withStartLock(directory, 20_000, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
        return value;
      });

    expect(await Promise.all([1, 2, 3, 4].map(enter))).toEqual([1, 2, 3, 4]);
    expect(most).toBe(1);
  });

  test("is refused under another path too while somebody holds it, and free after a failure", async () => {
    const alias = `${directory}-alias`;
    await symlink(directory, alias);
    try {
      await withStartLock(directory, 1_000, async () => {
        const second = await refusal(withStartLock(alias, 1, async () => "inside"));
        expect(second).toMatchObject({ code: "data-dir-in-use", message: expect.stringContaining("for 1 ms") });
        throw new Error("failed inside");
      }).catch((error: Error) => expect(error.message).toBe("failed inside"));

      expect(await withStartLock(alias, 1_000, async () => "inside")).toBe("inside");
    } finally {
      await rm(alias);
    }
  });

  test("does not outlive a kill -9 of its holder", async () => {
    const args = ["--import", "tsx", "--input-type=module", "--eval", HOLDER, directory];
    const holder = spawn(process.execPath, args, {
      cwd: join(import.meta.dirname, "..", "..", ".."),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(holder, "exit");
    await once(holder.stdout, "data");
    const before = await refusal(withStartLock(directory, 1, async () => "inside"));

    holder.kill("SIGKILL");
    await ended;

    expect(before.code).toBe("data-dir-in-use");
    expect(await withStartLock(directory, 10_000, async () => "inside")).toBe("inside");
  });
});
