// An embedded server of the benchmark's own, in a directory that is given, and kept, or in a temporary one.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type LocalPostgres, startLocalPostgres } from "@linkfence/local-postgres";
import postgres from "postgres";

/** A cluster that was not closed properly replays up to 8 GB of log, and a clean stop writes what is in memory. */
const TIMEOUT_MS = 300_000;
/** Nothing is lost but time where a seeding breaks off: it starts anew. Room for a few sorts of ten million rows. */
const SEEDING = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  autovacuum: "off",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h",
  shared_buffers: "1GB",
  maintenance_work_mem: "1GB",
};
/** As a usual one, with room for fifty light processes, each of which has two connections, beside the services. */
const SERVING = { max_connections: "200" };

export type OwnServer = Awaited<ReturnType<typeof openOwnServer>>;

/**
 * Opens the directory; the server is started when it is asked for.
 * @param directory where clusters are kept; null for a temporary one, which goes with the run
 */
export async function openOwnServer(directory: string | null) {
  const root = directory === null ? await mkdtemp(join(tmpdir(), "linkfence-bench-")) : resolve(directory);
  await mkdir(root, { recursive: true });
  let server: { running: LocalPostgres; seeding: boolean } | undefined;

  async function stop(): Promise<void> {
    await server?.running.stop();
    server = undefined;
  }

  /** Starts it, or starts it anew where it runs with other settings. Returns the URL of a database. */
  async function start(database: string, { seeding = false } = {}): Promise<string> {
    if (server?.seeding !== seeding) await stop();
    server ??= {
      seeding,
      running: await startLocalPostgres({
        dataDir: root,
        startTimeoutMs: TIMEOUT_MS,
        stopTimeoutMs: TIMEOUT_MS,
        settings: seeding ? SEEDING : SERVING,
      }),
    };
    return server.running.url(database);
  }

  return {
    start,
    /** The same for a database of this name that is new and empty. */
    async startEmpty(database: string): Promise<string> {
      await withSql(await start("postgres"), 1, async (sql) => {
        await sql.unsafe(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
        await sql.unsafe(`CREATE DATABASE ${database}`);
      });
      return start(database);
    },
    /** Number of its main process, where it runs. */
    pid: () => server?.running.pid,
    async close(): Promise<void> {
      await stop();
      if (directory === null) await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** Runs `work` on connections that end with it. */
export async function withSql<T>(url: string, max: number, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
