import { access, chmod, chown, constants, lchown, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, LocalPostgresError, reasonOf } from "./local-postgres-error.ts";
import { makeDirectories } from "./make-directories.ts";
import { runProgram } from "./run-program.ts";
import type { ServerAccount } from "./server-account.ts";

/** Where things lie below the data directory. Only `cluster` belongs to the server's account. */
export type DataDirLayout = { root: string; cluster: string; passwordFile: string; logFile: string };

/** How a program started by us gets to a directory: start it in `cwd`, name the directory `path`. */
export type Reach = { cwd: string; path: string };

/**
 * Creates the data directory when missing and makes sure it can be written.
 * @param dataDir absolute
 * @throws LocalPostgresError `data-dir-unusable`
 */
export async function openDataDir(dataDir: string): Promise<DataDirLayout> {
  try {
    // As root, the server's account has to pass through; its own directory inside is closed to everybody else.
    await makeDirectories(dataDir, process.getuid?.() === 0 ? 0o711 : 0o700);
    await readdir(dataDir);
    await access(dataDir, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusable(dataDir, reasonOf(cause), { cause });
  }
  return layOut(dataDir);
}

/** @param dataDir absolute */
export function layOut(dataDir: string): DataDirLayout {
  return {
    root: dataDir,
    cluster: join(dataDir, "cluster"),
    passwordFile: join(dataDir, "superuser-password"),
    logFile: join(dataDir, "server.log"),
  };
}

/**
 * @returns the major version a cluster was made by (its file PG_VERSION), or undefined when there is no cluster yet
 * @throws LocalPostgresError `data-dir-unusable` when something else is in its place, or it belongs to another user
 */
export async function readClusterVersion(clusterDir: string): Promise<string | undefined> {
  try {
    return (await readFile(join(clusterDir, "PG_VERSION"), "utf8")).trim();
  } catch (cause) {
    if (errorCode(cause) !== "ENOENT") {
      throw unusable(clusterDir, reasonOf(cause), { cause });
    }
  }
  const content = await readdir(clusterDir).catch((error) => {
    if (errorCode(error) === "ENOENT") {
      return [];
    }
    throw unusable(clusterDir, reasonOf(error), { cause: error });
  });
  if (content.length > 0) {
    throw unusable(clusterDir, "it is not empty and holds no PostgreSQL cluster (no PG_VERSION)");
  }
  return undefined;
}

/**
 * Hands a cluster that root copied or restored to the server's account, and closes it to others: the server insists on
 * both.
 * @throws LocalPostgresError `data-dir-unusable` when it is somebody else's and we are not root
 */
export async function settleOwnership(clusterDir: string, account: ServerAccount | undefined): Promise<void> {
  const { uid, mode } = await stat(clusterDir);
  const wanted = account?.uid ?? process.getuid?.();
  if (uid === wanted || (uid === 0 && account !== undefined)) {
    await closeToOthers(clusterDir, mode);
  }
  if (uid === wanted) {
    return;
  }
  // Only from root: in a tree of another user a link could be planted that leads the change of owner elsewhere.
  if (account === undefined || uid !== 0) {
    throw unusable(clusterDir, `it belongs to user id ${uid}, and this process runs as ${wanted}`);
  }
  await chownTree(clusterDir, account);
}

/** The server accepts 0700 and 0750 (checkDataDir in src/backend/utils/init/miscinit.c). */
async function closeToOthers(clusterDir: string, mode: number): Promise<void> {
  if ((mode & 0o027) !== 0) {
    await chmod(clusterDir, 0o700);
  }
}

async function chownTree(directory: string, account: ServerAccount): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    await (entry.isDirectory() ? chownTree(path, account) : lchown(path, account.uid, account.gid));
  }
  await chown(directory, account.uid, account.gid); // last: an interrupted change starts over
}

/**
 * Finds a way for the server's account into a directory it owns, even when a directory above is closed to it (a checkout
 * below /root): the current directory is entered before the account is changed, and on Linux /proc/self/cwd names it
 * without a walk from the root (proc(5)).
 * @throws LocalPostgresError `data-dir-unusable` where there is no such way
 */
export async function reachDirectory(directory: string, account: ServerAccount | undefined): Promise<Reach> {
  if (account === undefined || (await canEnter(directory, account))) {
    return { cwd: directory, path: directory };
  }
  if (process.platform === "linux") {
    return { cwd: directory, path: "/proc/self/cwd" };
  }
  throw unusable(directory, `the account ${account.name}, which PostgreSQL runs as, may not pass through it`);
}

/** Asks the kernel, which knows about access lists and mounts, by trying. */
async function canEnter(directory: string, account: ServerAccount): Promise<boolean> {
  const end = await runProgram("/bin/sh", ["-c", 'cd -- "$1"', "sh", directory], {
    account,
    cwd: "/",
    timeoutMs: 10_000, // a stuck network mount
  });
  return end.code === 0;
}

export function unusable(path: string, reason: string, options?: ErrorOptions): LocalPostgresError {
  return new LocalPostgresError(
    "data-dir-unusable",
    `The data directory cannot be used: ${path}: ${reason}. Correct this, or set LINKFENCE_DATA_DIR to another directory.`,
    options,
  );
}
