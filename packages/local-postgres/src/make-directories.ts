import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errorCode } from "./local-postgres-error.ts";

/**
 * Makes a directory, and those above it that are missing; one that is there stays as it is. Node's own way
 * (`recursive: true`) never ends where the kernel says ENOENT of a directory whose parent exists, as below /proc.
 * @param path absolute
 * @param mode of each new directory, less the umask
 * @throws the system's error, whose message names the path
 */
export async function makeDirectories(path: string, mode = 0o777): Promise<void> {
  try {
    await makeOne(path, mode);
  } catch (error) {
    const parent = dirname(path);
    if (errorCode(error) !== "ENOENT" || parent === path) throw error;
    await makeDirectories(parent, mode);
    await makeOne(path, mode);
  }
}

async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (errorCode(error) !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
  }
}
