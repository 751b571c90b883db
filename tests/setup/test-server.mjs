// One embedded server with a migrated template of each database, of which every user clones its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "@linkfence/db/migrate";
import { startLocalPostgres } from "@linkfence/local-postgres";

/** Starts it and tells the testkit where it is. `settings` are the server's own, as strings. */
export async function startTestServer(settings) {
  const directory = mkdtempSync(join(tmpdir(), "linkfence-tests-"));
  const server = await startLocalPostgres({
    dataDir: join(directory, "postgres"),
    databases: ["template_main", "template_stats"],
    settings: { max_connections: "300", ...settings },
  });
  await migrate(server.url("template_main"), "main");
  await migrate(server.url("template_stats"), "stats");
  process.env.LINKFENCE_TEST_SERVER = server.url("postgres");
  return {
    async stop() {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
