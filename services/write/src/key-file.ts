import { randomUUID } from "node:crypto";
import { access, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { parseKey } from "./domain/api-key.ts";

export async function keyFileExists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Writes a key to a file that only its owner can read, whole or not at all: under another name first, down to the disk,
 * and then renamed. Replaces an earlier key; refuses to replace a file that holds anything else.
 */
export async function writeKeyFile(path: string, key: string): Promise<void> {
  const present = await readFile(path, "utf8").catch(() => undefined);
  if (present !== undefined && present.trim() !== "" && !parseKey(present.trim()))
    throw new Error(`${path} holds something that is no key: name another file, or remove it`);
  await makeDirectory(dirname(path));
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(`${key}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes the last directory of a path, where it is missing. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The rename itself lasts only once its directory is on the disk. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
