import { mkdir, mkdtemp, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorCode } from "./local-postgres-error.ts";

/**
 * Makes a directory that exists either whole or not at all: it is built in a workspace beside its place and renamed into
 * it, so a crash at any moment leaves nothing half made. When two processes build the same one, the first rename wins
 * and the other's work is thrown away.
 * @param build fills `content` (an existing empty directory); `workspace` around it is free for scratch files
 * @returns true when this call put the directory in place, false when another process was faster
 */
export async function buildDirectory(
  target: string,
  build: (paths: { workspace: string; content: string }) => Promise<void>,
): Promise<boolean> {
  await removeAbandonedWorkspaces(target);
  const workspace = await mkdtemp(`${target}.new-${process.pid}-`);
  const content = join(workspace, "content");
  try {
    await mkdir(content, { mode: 0o700 });
    await build({ workspace, content });
    const placed = await renameUnlessTaken(content, target);
    await syncDirectory(dirname(target));
    return placed;
  } finally {
    await removeTree(workspace);
  }
}

async function renameUnlessTaken(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    // rename(2): a directory may replace an empty one only.
    if (["ENOTEMPTY", "EEXIST"].includes(errorCode(error) ?? "")) {
      return false;
    }
    throw error;
  }
}

/** Removes workspaces whose maker is gone. A recycled process id keeps one until a later start: harmless. */
async function removeAbandonedWorkspaces(target: string): Promise<void> {
  const prefix = `${basename(target)}.new-`;
  for (const name of await readdir(dirname(target))) {
    const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN;
    if (Number.isInteger(pid) && pid !== process.pid && !isRunning(pid)) {
      await removeTree(join(dirname(target), name));
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== "ESRCH";
  }
}

/** An initdb that outlived its killed starter may still be writing: retried for about 5 s, then left to the next start. */
async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }).catch(() => undefined);
}

/** Makes a rename inside the directory survive a power loss (fsync(2): the directory needs its own). */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
