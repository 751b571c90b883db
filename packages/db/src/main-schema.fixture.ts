// The main database's schema made step by step, for tests of single migrations and of the rights on what they make.
import { readdir, readFile } from "node:fs/promises";
import { runRights, type TestDatabase } from "@linkfence/testkit";

type Sql = Pick<TestDatabase["sql"], "unsafe">;

const directory = new URL("../migrations/main/", import.meta.url);

/** Runs the migrations whose file names say so, in their order; all of them unless `which` says otherwise. */
export async function runMigrations(sql: Sql, which: (name: string) => boolean = () => true): Promise<void> {
  for (const name of (await readdir(directory)).sort())
    if (which(name)) await sql.unsafe(await readFile(new URL(name, directory), "utf8"));
}

/** Sets an empty database up as it is deployed: roles, the schema made by its owner, and the rights. The owner stays. */
export async function setUpAsDeployed(sql: Sql): Promise<void> {
  await runRights(sql, "roles");
  await sql.unsafe("SET SESSION AUTHORIZATION linkfence_owner");
  await runMigrations(sql);
  await runRights(sql, "grants-main");
}
