import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { buildDirectory } from "./built-directory.ts";

let home = "";
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "linkfence-built-"));
});
afterEach(async () => await rm(home, { recursive: true }));

const fill = (text: string) => async (paths: { content: string }) => {
  await writeFile(join(paths.content, "a"), text);
};

/** The number of a process that has ended. */
function deadPid(): number {
  return spawnSync("true").pid;
}

describe("a built directory", () => {
  test("appears with everything in it, and nothing else stays", async () => {
    const placed = await buildDirectory(join(home, "cluster"), async ({ workspace, content }) => {
      await writeFile(join(workspace, "scratch"), "");
      await fill("whole")({ content });
      expect(await readdir(home)).not.toContain("cluster");
    });

    expect(placed).toBe(true);
    expect(await readdir(home)).toEqual(["cluster"]);
    expect(await readFile(join(home, "cluster", "a"), "utf8")).toBe("whole");
  });

  test("does not appear when building fails", async () => {
    const build = buildDirectory(join(home, "cluster"), async () => {
      throw new Error("disk full");
    });

    await expect(build).rejects.toThrow("disk full");
    expect(await readdir(home)).toEqual([]);
  });

  test("is the first one's when two build it at once", async () => {
    const target = join(home, "cluster");
    const placed = await buildDirectory(target, async ({ content }) => {
      await fill("slow")({ content });
      expect(await buildDirectory(target, fill("quick"))).toBe(true);
    });

    expect(placed).toBe(false);
    expect(await readdir(home)).toEqual(["cluster"]);
    expect(await readFile(join(target, "a"), "utf8")).toBe("quick");
  });

  test("takes the place of an empty directory", async () => {
    await mkdir(join(home, "cluster"));

    expect(await buildDirectory(join(home, "cluster"), fill("whole"))).toBe(true);
  });

  test("clears away what a killed builder left, and nothing of a living one", async () => {
    await mkdir(join(home, `cluster.new-${deadPid()}-abcdef`, "content"), { recursive: true });
    await mkdir(join(home, `cluster.new-${process.ppid}-abcdef`));
    await mkdir(join(home, "cluster.new-by-hand"));

    await buildDirectory(join(home, "cluster"), fill("whole"));

    expect((await readdir(home)).sort()).toEqual(
      ["cluster", "cluster.new-by-hand", `cluster.new-${process.ppid}-abcdef`].sort(),
    );
  });
});
