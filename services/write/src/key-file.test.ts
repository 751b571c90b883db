import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { keyFileExists, writeKeyFile } from "./key-file.ts";
import { mintKey } from "./store/key-secret.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "linkfence-key-file-"));
});
afterEach(() => rm(directory, { recursive: true }));

describe("a key file", () => {
  test("can be read by its owner alone, as can the directory made for it", async () => {
    const path = join(directory, "deep", "admin-key");
    expect(await keyFileExists(path)).toBe(false);
    await writeKeyFile(path, mintKey().text);
    expect(await keyFileExists(path)).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(directory, "deep"))).mode & 0o777).toBe(0o700);
  });

  test("replaces an earlier key, closes it to others, and leaves nothing beside it", async () => {
    const path = join(directory, "admin-key");
    const [first, second] = [mintKey().text, mintKey().text];
    await writeFile(path, `${first}\n`, { mode: 0o644 });
    await writeKeyFile(path, second);
    expect(await readFile(path, "utf8")).toBe(`${second}\n`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(["admin-key"]);
  });

  test("never replaces a file that holds anything else", async () => {
    const path = join(directory, "notes");
    await writeFile(path, "precious");
    await expect(writeKeyFile(path, mintKey().text)).rejects.toThrow(/holds something that is no key/);
    expect(await readFile(path, "utf8")).toBe("precious");
  });

  test("in a directory that cannot be made is refused, and not tried for ever", async () => {
    await expect(writeKeyFile("/proc/linkfence/admin-key", mintKey().text)).rejects.toThrow(
      /ENOENT|EPERM|EACCES|EROFS/,
    );
  });

  test("that cannot be written leaves nothing behind", async () => {
    const path = join(directory, "admin-key");
    await writeFile(join(directory, "file"), "");
    await expect(writeKeyFile(join(directory, "file", "admin-key"), mintKey().text)).rejects.toThrow();
    expect(await keyFileExists(path)).toBe(false);
    expect(await readdir(directory)).toEqual(["file"]);
  });
});
