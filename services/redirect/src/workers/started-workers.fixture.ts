// A primary and its workers as real processes, a database with a link, and an ingest that keeps what it is sent.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Click } from "@linkfence/contracts";
import {
  createTestDatabase,
  type RunningService,
  readMetric,
  startService,
  until,
  waitUntilReady,
} from "@linkfence/testkit";

export const AWAY = { CLICK_INGEST_URL: "http://127.0.0.1:9" };

/** Starts all of it but the workers. */
export async function prepareWorkers() {
  const database = await createTestDatabase("main");
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    VALUES ('abc', 'https://example.com/', 'ann', 'ALIAS', 'k')`;
  let clicks: Click[] = [];
  const ingest = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const batch = (JSON.parse(Buffer.concat(chunks).toString()) as { clicks: Click[] }).clicks;
    clicks.push(...batch);
    const received = batch.length;
    response.end(JSON.stringify({ received, inserted: received, duplicate: 0, refused: 0 }));
  });
  await new Promise<void>((resolve) => ingest.listen(0, "127.0.0.1", resolve));
  const ingestUrl = `http://127.0.0.1:${(ingest.address() as AddressInfo).port}`;
  let directory = "";
  let started: RunningService[] = [];

  const settings = (): Record<string, string> => ({
    ...{ DATABASE_URL: database.url, CLICK_INGEST_URL: ingestUrl, CLICK_SPOOL_DIR: directory },
    ...{ CLICK_FLUSH_TIMEOUT_MS: "500", CACHE_MAX_ENTRIES: "1000", QUERY_TIMEOUT_MS: "10000" },
  });

  return {
    database,
    settings,
    directory: () => directory,
    clicks: () => clicks,
    /** Before each test. */
    async begin(): Promise<void> {
      clicks = [];
      started = [];
      // Those of processes that were killed.
      await database.sql`DELETE FROM redirect_instance`;
      directory = await mkdtemp(join(tmpdir(), "linkfence-workers-"));
    },
    /** After each test. */
    async end(): Promise<void> {
      await Promise.all(started.map((each) => each.stop()));
      await rm(directory, { recursive: true });
    },
    /** Starts so many workers, and waits until all of them are ready. */
    async start(workers: number, env: Record<string, string> = {}): Promise<RunningService> {
      const service = await startService("redirect", { ...settings(), REDIRECT_WORKERS: `${workers}`, ...env });
      started.push(service);
      await waitUntilReady(service);
      return service;
    },
    registered: () =>
      database.sql<{ address: string }[]>`SELECT address FROM redirect_instance ORDER BY address`.then((rows) =>
        rows.map(({ address }) => address),
      ),
    async close(): Promise<void> {
      ingest.close();
      ingest.closeAllConnections();
      await database.drop();
    },
  };
}

/** Process numbers of the workers that became ready so far, the latest of each number. */
export function pidsOf(service: RunningService): Map<number, number> {
  const ready = service.records().filter(({ message }) => message === "a worker is ready");
  return new Map(ready.map(({ worker, pid }) => [Number(worker), Number(pid)]));
}

export const countReady = (service: RunningService) => readMetric(service, 'linkfence_workers{phase="ready"}');

/** Asks for a reload, and waits for its end. */
export async function reload(service: RunningService): Promise<"done" | "failed"> {
  const count = async (outcome: string) => readMetric(service, `linkfence_reloads_total{outcome="${outcome}"}`);
  const before = { done: await count("done"), failed: await count("failed") };
  service.kill("SIGHUP");
  await until(async () => (await count("done")) + (await count("failed")) > before.done + before.failed);
  return (await count("done")) > before.done ? "done" : "failed";
}

/** Whether a process is there still. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
