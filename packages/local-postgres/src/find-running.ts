import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { layOut, unusable } from "./data-dir.ts";
import { reasonOf } from "./local-postgres-error.ts";
import { readPidFile } from "./pid-file.ts";
import { SUPERUSER } from "./superuser-password.ts";

/**
 * Finds the server that runs on a data directory, for a command that works beside the one that started it.
 * @returns the connection URL of a database; it holds the password: never log it
 * @throws LocalPostgresError `data-dir-unusable` where none runs, or what it needs cannot be read
 */
export async function findLocalPostgres(dataDir: string): Promise<(database: string) => string> {
  const { cluster, passwordFile } = layOut(resolve(dataDir));
  try {
    const pidFile = await readPidFile(cluster);
    if (pidFile?.status !== "ready" || pidFile.port === undefined) throw new Error("no server runs on it");
    const password = (await readFile(passwordFile, "utf8")).trim();
    return (database) =>
      `postgres://${SUPERUSER}:${encodeURIComponent(password)}@127.0.0.1:${pidFile.port}/${database}`;
  } catch (cause) {
    throw unusable(dataDir, reasonOf(cause), { cause });
  }
}
