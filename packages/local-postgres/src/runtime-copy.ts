import { constants } from "node:fs";
import { chmod, copyFile, link, mkdir, readdir, readlink, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { buildDirectory } from "./built-directory.ts";
import { LocalPostgresError, reasonOf } from "./local-postgres-error.ts";
import type { ServerAccount } from "./server-account.ts";

/**
 * Copies PostgreSQL's programs, libraries and shared files to a place every account can enter. Does nothing when the
 * copy is already there: it is put in place in one step, so it is whole.
 * @throws LocalPostgresError `start-failed` when it cannot be written
 */
export async function copyRuntime(nativeDir: string, target: string, account: ServerAccount): Promise<void> {
  try {
    if (await exists(target)) {
      return;
    }
    await makeOpenDirectory(dirname(target));
    await buildDirectory(target, async ({ content }) => {
      await copyTree(nativeDir, content, new Map());
    });
  } catch (cause) {
    throw new LocalPostgresError(
      "start-failed",
      `The account ${account.name}, which PostgreSQL runs as, cannot read ${nativeDir}, and a copy at ${target} could ` +
        `not be made (${reasonOf(cause)}). Move the checkout to a directory that other ` +
        "users may enter, or start as an ordinary user.",
      { cause },
    );
  }
}

/** @param copied inode -> first copy: the libraries lie there under up to four names, and need their bytes only once */
async function copyTree(from: string, to: string, copied: Map<bigint, string>): Promise<void> {
  await mkdir(to, { recursive: true });
  await chmod(to, 0o755); // whatever the umask was
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) {
      await copyTree(source, target, copied);
    } else if (entry.isSymbolicLink()) {
      await symlink(await readlink(source), target);
    } else if (!entry.name.endsWith(".a")) {
      await copyFileOnce(source, target, copied);
    }
  }
}

async function copyFileOnce(source: string, target: string, copied: Map<bigint, string>): Promise<void> {
  const { ino, mode } = await stat(source, { bigint: true });
  const earlier = copied.get(ino);
  if (earlier !== undefined) {
    await link(earlier, target);
    return;
  }
  await copyFile(source, target, constants.COPYFILE_FICLONE); // shares the blocks where the file system can
  await chmod(target, mode & 0o100n ? 0o755 : 0o644);
  copied.set(ino, target);
}

async function makeOpenDirectory(path: string): Promise<void> {
  if (!(await exists(path))) {
    await mkdir(path, { recursive: true });
    await chmod(path, 0o755);
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
