import { randomBytes } from "node:crypto";
import postgres from "postgres";

export type TestDatabase = {
  /** Connection URL, as a service takes it. */
  url: string;
  name: string;
  /** A connection of the test's own, to look at what the code under test did. */
  sql: postgres.Sql;
  /** Ends every connection and removes the database. */
  drop(): Promise<void>;
};

/** URL of the run's server, set before any test starts. Throws when the tests were started some other way. */
export function testServerUrl(): string {
  const url = process.env.LINKFENCE_TEST_SERVER;
  if (!url) throw new Error("no test server: run the tests by `npm test`, or by jest from the root of the project");
  return url;
}

/** Names a database of the run's server. */
export function databaseUrl(name: string): string {
  const url = new URL(testServerUrl());
  url.pathname = `/${name}`;
  return url.href;
}

/**
 * Makes a database of its own for a test file, cloned from the migrated template.
 * @param kind which schema; `empty` has none
 */
export async function createTestDatabase(kind: "main" | "stats" | "empty"): Promise<TestDatabase> {
  const name = `test_${kind}_${randomBytes(6).toString("hex")}`;
  const template = kind === "empty" ? "template0" : `template_${kind}`;
  await asAdmin((admin) => admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${template}`));
  const url = databaseUrl(name);
  const sql = postgres(url, { max: 4, onnotice: () => {} });
  return {
    url,
    name,
    sql,
    async drop() {
      await sql.end({ timeout: 1 });
      await asAdmin((admin) => admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

/** Ends every other client's connection to a database, as a restart or an administrator would. Returns how many. */
export async function terminateConnections(database: TestDatabase): Promise<number> {
  return asAdmin(async (admin) => {
    const rows = await admin`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = ${database.name} AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;
    return rows.length;
  });
}

/** Runs one piece of work as the server's administrator, on a connection that ends with it. */
async function asAdmin<T>(work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const admin = postgres(databaseUrl("postgres"), { max: 1, onnotice: () => {} });
  try {
    return await work(admin);
  } finally {
    await admin.end({ timeout: 1 });
  }
}
