// One embedded server for the whole run, with a migrated template of each database; every test file clones its own.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "@linkfence/db";
import { startLocalPostgres } from "@linkfence/local-postgres";

/** A test database needs to survive nothing, so it need not wait for the disk. */
const UNSAFE_BUT_FAST = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" };

export async function setup() {
  const directory = mkdtempSync(join(tmpdir(), "linkfence-tests-"));
  const server = await startLocalPostgres({
    dataDir: join(directory, "postgres"),
    databases: ["template_main", "template_stats"],
    settings: UNSAFE_BUT_FAST,
  });
  await migrate(server.url("template_main"), "main");
  await migrate(server.url("template_stats"), "stats");
  process.env.LINKFENCE_TEST_SERVER = server.url("postgres");
  globalThis.linkfenceTests = { server, directory };
}

export { setup as default };
