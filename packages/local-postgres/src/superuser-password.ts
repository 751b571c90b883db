import { randomBytes } from "node:crypto";
import { chmod, link, open, readFile, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { syncDirectory } from "./built-directory.ts";
import { type DataDirLayout, unusable } from "./data-dir.ts";
import { errorCode, reasonOf } from "./local-postgres-error.ts";

export const SUPERUSER = "linkfence";

/**
 * Reads the superuser's password, or makes one (192 random bits) when there is no cluster yet. It is on disk before the
 * cluster that knows it, so a crash never leaves a cluster nobody can enter.
 * @throws LocalPostgresError `data-dir-unusable` when a cluster exists whose password file is gone
 */
export async function ensureSuperuserPassword(layout: DataDirLayout, clusterExists: boolean): Promise<string> {
  const known = await readPassword(layout.passwordFile);
  if (known !== undefined) {
    return known;
  }
  if (clusterExists) {
    throw unusable(layout.passwordFile, "it is missing or empty, but the cluster beside it needs this password");
  }
  await writeOnce(layout.passwordFile, randomBytes(24).toString("base64url"));
  const written = await readPassword(layout.passwordFile);
  if (written === undefined) {
    throw unusable(layout.passwordFile, "it was emptied or removed while starting");
  }
  return written;
}

async function readPassword(file: string): Promise<string | undefined> {
  try {
    const password = (await readFile(file, "utf8")).trim();
    await chmod(file, 0o600);
    return password === "" ? undefined : password;
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") {
      return undefined;
    }
    throw unusable(file, reasonOf(cause), { cause });
  }
}

/** The first of two simultaneous writers wins (link(2) never replaces), and nobody sees half a password. */
async function writeOnce(file: string, password: string): Promise<void> {
  const draft = `${file}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(`${password}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await link(draft, file).catch((error) => {
    if (errorCode(error) !== "EEXIST") {
      throw error;
    }
  });
  await unlink(draft);
  await syncDirectory(dirname(file));
}
