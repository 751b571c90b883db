import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, findFreePorts, startService, waitUntilReady } from "@linkfence/testkit";

export type Exporter = Awaited<ReturnType<typeof startExporter>>;

/** Starts a click-ingest that exports, on a database and a directory of its own. */
export async function startExporter(env: Record<string, string> = {}) {
  const stats = await createTestDatabase("stats");
  const directory = await mkdtemp(join(tmpdir(), "linkfence-exports-"));
  const PORT = String(await findFreePorts(1));
  const start = async (other: Record<string, string> = {}) => {
    const settings = { STATS_DATABASE_URL: stats.url, EXPORT_DIR: directory, QUERY_TIMEOUT_MS: "10000", PORT };
    const started = await startService("click-ingest", { ...settings, ...env, ...other });
    await waitUntilReady(started);
    return started;
  };
  let ingest = await start();
  return {
    url: ingest.url,
    ingest: () => ingest,
    /** Starts a successor of one that has ended, on the same port, where so told with some other settings. */
    async restart(other?: Record<string, string>): Promise<void> {
      ingest = await start(other);
    },
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
