import { chown, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "./local-postgres-error.ts";
import type { ServerAccount } from "./server-account.ts";

// postmaster.pid, one fact per line (PostgreSQL 16: src/include/utils/pidfile.h). Line 1 is the process id, line 4 the
// port, line 7 the shared memory segment, line 8 the state, padded with blanks: "starting", "stopping", "ready" or "standby".
const PID_LINE = 0;
const PORT_LINE = 3;
const STATUS_LINE = 7;

/** `pid` is undefined when the file exists but holds no process id: a crash cut it short, or it is being written. */
export type PidFile = { pid: number | undefined; port?: number; status: string };

/** @returns what the server says about itself, or undefined without a pid file */
export async function readPidFile(clusterDir: string): Promise<PidFile | undefined> {
  try {
    const lines = (await readFile(pidFilePath(clusterDir), "utf8")).split("\n");
    const pid = Number.parseInt(lines[PID_LINE] ?? "", 10);
    const port = Number.parseInt(lines[PORT_LINE] ?? "", 10);
    return { pid: pid > 0 ? pid : undefined, port, status: (lines[STATUS_LINE] ?? "").trim() };
  } catch (error) {
    if (errorCode(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

/**
 * Lets a server start although the stale pid file's number now belongs to an unrelated process. The server refuses any
 * living number but its own and its parent's (CreateLockFile in src/backend/utils/init/miscinit.c), so ours is written
 * in its place. The rest stays: with the shared memory segment it names, the server still finds surviving workers of
 * the former one, which deleting the file would hide.
 * @param stalePid the number it was judged by: a server that was faster is left alone
 */
export async function replacePidWithOurs(
  clusterDir: string,
  stalePid: number,
  account: ServerAccount | undefined,
): Promise<void> {
  const lines = (await readFile(pidFilePath(clusterDir), "utf8")).split("\n");
  if (lines[PID_LINE] !== String(stalePid)) {
    return;
  }
  lines[PID_LINE] = String(process.pid);
  const draft = `${pidFilePath(clusterDir)}.new-${process.pid}`;
  await writeFile(draft, lines.join("\n"), { mode: 0o600 });
  if (account !== undefined) {
    await chown(draft, account.uid, account.gid);
  }
  await rename(draft, pidFilePath(clusterDir));
}

/** Only for a file that says nothing: the server refuses to start over an empty one. */
export async function removeEmptyPidFile(clusterDir: string): Promise<void> {
  await rm(pidFilePath(clusterDir), { force: true });
}

export function pidFilePath(clusterDir: string): string {
  return join(clusterDir, "postmaster.pid");
}
