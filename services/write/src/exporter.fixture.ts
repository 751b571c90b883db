import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, startService, waitUntilReady } from "@linkfence/testkit";

export type Exporter = Awaited<ReturnType<typeof startExporter>>;

/** Starts a click-ingest that exports, on a database and a directory of its own. */
export async function startExporter(env: Record<string, string> = {}) {
  const stats = await createTestDatabase("stats");
  const directory = await mkdtemp(join(tmpdir(), "linkfence-exports-"));
  const ingest = await startService("click-ingest", {
    STATS_DATABASE_URL: stats.url,
    EXPORT_DIR: directory,
    QUERY_TIMEOUT_MS: "10000",
    ...env,
  });
  await waitUntilReady(ingest);
  return {
    url: ingest.url,
    ingest,
    stats,
    directory,
    async stop(): Promise<void> {
      await ingest.stop();
      await stats.drop();
      await rm(directory, { recursive: true });
    },
  };
}

/** Starts one that writes nothing: what is ordered waits. */
export const startIdleExporter = () => startExporter({ EXPORT_WORKERS: "0" });
