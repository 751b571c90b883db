import { readFile } from "node:fs/promises";
import type { TestDatabase } from "./database.ts";

/** Runs one of the files that set roles and rights up where the product is deployed, by its name in `infra/postgres`. */
export async function runRights(
  sql: Pick<TestDatabase["sql"], "unsafe">,
  name: "roles" | "grants-main" | "grants-stats",
): Promise<void> {
  await sql.unsafe(await readFile(new URL(`../../../infra/postgres/${name}.sql`, import.meta.url), "utf8"));
}
