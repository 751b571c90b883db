// Brings a database to the newest schema. Safe when any number of processes start at once: node-pg-migrate holds a
// session advisory lock, later comers wait for it, and the lock goes with the connection when a process dies.
import { fileURLToPath } from "node:url";
import { runner } from "node-pg-migrate";
import { Client } from "pg";

export type DatabaseName = "main" | "stats";

/** A migration on a large table may take minutes; waiting for another process that runs one must outlast it. */
const LOCK_WAIT_MS = 300_000;
/** A distinct lock for each kind, so that both may live in one database server without waiting for each other. */
const LOCKS: Record<DatabaseName, number> = { main: 7106901, stats: 7106902 };

/**
 * Runs what is missing, all of it in one transaction.
 * @param url connection URL of the database, with a role that may create tables
 * @param name which set of migrations
 * @returns the names of the migrations that were run now, in order
 * @throws the database's error; nothing is changed then
 */
export async function migrate(url: string, name: DatabaseName): Promise<string[]> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    lock_timeout: LOCK_WAIT_MS,
    application_name: "linkfence-migrate",
  });
  // Without a listener a lost connection would end the process; the query under way rejects anyway.
  client.on("error", () => {});
  await client.connect();
  try {
    const done = await runner({
      dbClient: client,
      dir: fileURLToPath(new URL(`../migrations/${name}`, import.meta.url)),
      migrationsTable: "schema_migration",
      direction: "up",
      singleTransaction: true,
      advisoryLockMode: "wait",
      lockValue: LOCKS[name],
      log: () => {},
    });
    return done.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}
