import { setTimeout as pause } from "node:timers/promises";
import { makeAdminKey } from "./api-keys.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { PATIENT, type RunningService, startService } from "./services.ts";

export type StackOptions = {
  /** Redirect processes; default 1. */
  redirects?: number;
  redirectEnv?: Record<string, string>;
  writeEnv?: Record<string, string>;
  ingestEnv?: Record<string, string>;
  /** Changes the database URLs that the services get, to put a proxy in between. */
  through?: { main?: (url: string) => string; stats?: (url: string) => string };
};

export type Stack = {
  main: TestDatabase;
  stats: TestDatabase;
  ingest: RunningService;
  write: RunningService;
  redirects: RunningService[];
  adminKey: string;
  /** Stops the services in the order that loses no click, and removes both databases. */
  stop(): Promise<void>;
};

/** Starts the whole product as processes of their own, on databases of its own, and waits until all of it is ready. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const { redirects: count = 1, through = {} } = options;
  const [main, stats] = await Promise.all([createTestDatabase("main"), createTestDatabase("stats")]);
  const mainUrl = through.main?.(main.url) ?? main.url;
  const statsUrl = through.stats?.(stats.url) ?? stats.url;
  const adminKey = await makeAdminKey(main.url);
  const ingest = await startService("click-ingest", { STATS_DATABASE_URL: statsUrl, ...options.ingestEnv });
  const shared = { DATABASE_URL: mainUrl, CLICK_INGEST_URL: ingest.url, ...PATIENT };
  const redirects = await Promise.all(
    Array.from({ length: count }, () => startService("redirect", { ...shared, ...options.redirectEnv })),
  );
  const publicUrl = redirects[0]?.url ?? "http://127.0.0.1:7000";
  const write = await startService("write", { ...shared, PUBLIC_BASE_URL: publicUrl, ...options.writeEnv });
  await Promise.all([...redirects, write, ingest].map(waitUntilReady));
  return {
    main,
    stats,
    ingest,
    write,
    redirects,
    adminKey,
    async stop() {
      await Promise.all([write, ...redirects].map((service) => service.stop()));
      await ingest.stop();
      await Promise.all([main.drop(), stats.drop()]);
    },
  };
}

/** A start takes some hundred milliseconds. */
const LOOK_EVERY_MS = 10;

/** Asks `/readyz` until it says yes. Rejects with its last reason after 30 s. */
export async function waitUntilReady(service: RunningService): Promise<void> {
  const endsAt = performance.now() + 30_000;
  let last = "no answer";
  while (performance.now() < endsAt) {
    const response = await fetch(`${service.opsUrl}/readyz`).catch(() => null);
    if (response?.status === 200) return;
    if (response) last = await response.text();
    await pause(LOOK_EVERY_MS);
  }
  throw new Error(`not ready: ${last}\n${service.output()}`);
}

/** Reads one number from a service's metrics page: the sample of that name, or with those labels as printed. */
export async function readMetric(service: RunningService, sample: string): Promise<number> {
  const page = await (await fetch(`${service.opsUrl}/metrics`)).text();
  const line = page.split("\n").find((text) => text.startsWith(`${sample} `));
  if (!line) throw new Error(`no metric ${sample}`);
  return Number(line.slice(sample.length + 1));
}
