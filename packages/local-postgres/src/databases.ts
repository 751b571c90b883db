import { setTimeout as pause } from "node:timers/promises";
import postgres from "postgres";
import { errorCode, LocalPostgresError, reasonOf } from "./local-postgres-error.ts";

export type Connection = { host: string; port: number; username: string; password: string };

/**
 * Creates the databases that are missing; also the proof that the password fits the cluster. From template0, so that
 * nothing an operator put into template1 gets in, with the encoding and order of bytes that are the same everywhere.
 * @throws LocalPostgresError `data-dir-unusable` for a wrong password, `start-timeout`, `start-failed`
 */
export async function createMissingDatabases(
  connection: Connection,
  names: readonly string[],
  timeoutMs: number,
): Promise<void> {
  const sql = postgres({ ...connection, database: "postgres", ssl: false, max: 1, onnotice: () => undefined });
  const cancel = new AbortController();
  const expired = pause(timeoutMs, undefined, { signal: cancel.signal }).then(() => {
    throw new LocalPostgresError("start-timeout", `The databases were not created within ${timeoutMs} ms.`);
  });
  expired.catch(() => undefined); // cancelled
  try {
    await Promise.race([createEach(sql, names), expired]);
  } catch (error) {
    throw explain(error);
  } finally {
    cancel.abort();
    await sql.end({ timeout: 0 });
  }
}

async function createEach(sql: postgres.Sql, names: readonly string[]): Promise<void> {
  const rows = await sql<{ datname: string }[]>`SELECT datname FROM pg_database`;
  const existing = new Set(rows.map(({ datname }) => datname));
  for (const name of names.filter((candidate) => !existing.has(candidate))) {
    await sql`CREATE DATABASE ${sql(name)} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`;
  }
}

function explain(error: unknown): unknown {
  if (error instanceof LocalPostgresError) {
    return error;
  }
  // 28P01 invalid_password, 28000 invalid_authorization_specification (PostgreSQL manual, appendix A).
  if (["28P01", "28000"].includes(errorCode(error) ?? "")) {
    return new LocalPostgresError(
      "data-dir-unusable",
      "The password file does not fit the cluster beside it. Restore the file that was made with it.",
      { cause: error },
    );
  }
  const reason = reasonOf(error);
  return new LocalPostgresError("start-failed", `The databases could not be created: ${reason}`, { cause: error });
}
