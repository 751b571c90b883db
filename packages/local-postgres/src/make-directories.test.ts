import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { makeDirectories } from "./make-directories.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "linkfence-directories-"));
});
afterEach(async () => await rm(root, { recursive: true }));

describe("directories", () => {
  test("are made with those above them, and made again without complaint", async () => {
    const path = join(root, "a", "b", "c");
    await makeDirectories(path, 0o700);
    await makeDirectories(path, 0o755);
    const modes = await Promise.all([join(root, "a"), path].map(async (each) => (await stat(each)).mode & 0o777));
    expect(modes).toEqual([0o700, 0o700]);
  });

  test("made by many at once are there for each of them", async () => {
    const path = join(root, "x", "y", "z");
    await Promise.all(Array.from({ length: 20 }, () => makeDirectories(path)));
    expect((await stat(path)).isDirectory()).toBe(true);
  });

  test("are refused where a file is in the way, or below a file", async () => {
    const file = join(root, "file");
    await writeFile(file, "");
    await expect(makeDirectories(file)).rejects.toMatchObject({ code: "EEXIST" });
    await expect(makeDirectories(join(file, "below"))).rejects.toMatchObject({ code: "ENOTDIR" });
  });

  test("are refused at once where the kernel has no room for them", async () => {
    await expect(makeDirectories("/proc/linkfence/below")).rejects.toMatchObject({ path: "/proc/linkfence" });
  });
});
