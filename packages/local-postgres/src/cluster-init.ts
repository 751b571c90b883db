import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Binaries } from "./binaries.ts";
import { buildDirectory } from "./built-directory.ts";
import { reachDirectory } from "./data-dir.ts";
import { LocalPostgresError } from "./local-postgres-error.ts";
import { runProgram } from "./run-program.ts";
import type { ServerAccount } from "./server-account.ts";
import { SUPERUSER } from "./superuser-password.ts";

export type InitPlan = {
  clusterDir: string;
  binaries: Binaries;
  account: ServerAccount | undefined;
  password: string;
  /** False skips the flush to disk: for tests that throw the cluster away. */
  durable: boolean;
  timeoutMs: number;
};

/**
 * Runs initdb in a workspace and puts the finished cluster in place in one step. UTF8 and locale C, so that sorting and
 * text are the same on every machine; checksums, so that a damaged page is an error and not an answer.
 * @throws LocalPostgresError `start-failed` or `start-timeout`, with what initdb said
 */
export async function initialiseCluster(plan: InitPlan): Promise<void> {
  await buildDirectory(plan.clusterDir, async ({ workspace, content }) => {
    const passwordFile = join(workspace, "password");
    await writeFile(passwordFile, `${plan.password}\n`, { mode: 0o600, flag: "wx" });
    if (plan.account !== undefined) {
      const { uid, gid } = plan.account;
      await Promise.all([workspace, content, passwordFile].map((path) => chown(path, uid, gid)));
    }
    await runInitdb(plan, content);
  });
}

async function runInitdb(plan: InitPlan, content: string): Promise<void> {
  const reach = await reachDirectory(content, plan.account);
  const args = [
    ...["--pgdata", reach.path, "--username", SUPERUSER, "--auth", "scram-sha-256", "--pwfile", "../password"],
    ...["--encoding", "UTF8", "--locale", "C", "--data-checksums", "--no-instructions"],
    ...(plan.durable ? [] : ["--no-sync"]),
  ];
  const end = await runProgram(plan.binaries.initdb, args, {
    account: plan.account,
    cwd: reach.cwd,
    timeoutMs: plan.timeoutMs,
  });
  if (end.timedOut) {
    throw new LocalPostgresError(
      "start-timeout",
      `The database cluster was not made within ${plan.timeoutMs} ms. The disk may be slow or full.`,
    );
  }
  if (end.code !== 0) {
    const reason = end.spawnError?.message ?? (end.output || `exit code ${end.code}`);
    throw new LocalPostgresError("start-failed", `initdb could not make the database cluster: ${reason}`, {
      cause: end.spawnError,
    });
  }
}

/** @returns the version file's verdict as an error, when the cluster is another major version's */
export function versionMismatch(clusterDir: string, found: string, ours: string): LocalPostgresError | undefined {
  if (found === ours) {
    return undefined;
  }
  return new LocalPostgresError(
    "incompatible-data",
    `${clusterDir} was made by PostgreSQL ${found}, and this release brings PostgreSQL ${ours}, which cannot read it. ` +
      `Dump it with PostgreSQL ${found}, move the directory away, start anew and restore the dump; ` +
      "or set LINKFENCE_DATA_DIR to another directory.",
  );
}
