// The redirect as it runs for visitors, with everything on: freshness, capture of clicks, spool, the real ingest and a real
// database. It has the server's core to itself; all that stands behind it is on the load's, and gives way to the load.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { migrate } from "@linkfence/db/migrate";
import { type RunningService, readMetric, startService, waitUntilReady } from "@linkfence/testkit";
import type { Bench } from "./bench-subject.ts";
import { createRandom, createZipf } from "./click-load.ts";
import { type Cores, demote, pin, pinWithChildren } from "./cores.ts";
import { withSql } from "./own-server.ts";
import type { Rounds, Target } from "./rounds.ts";
import { openSeeded, pickActive } from "./seed.ts";

const DATABASE = "redirect_hot";
/** The ingest stores fewer clicks in a second than redirects are answered: some seconds' worth wait. */
const SETTLE_MS = 120_000;
const LOOK_MS = 100;
/** Different codes, and how many requests follow Zipf's law before they begin anew: each is asked for in ever new places. */
export const CODES = 100_000;
const SEQUENCE = 200_000;
const SEED = 8;
const LOST_REASONS = ["ring-full", "spool-full", "batch-refused", "stopped", "damaged"];

/** As of a browser that follows a link from a page. */
export const BROWSER_HEADERS = {
  "User-Agent":
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
  Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
  "Accept-Encoding": "gzip, deflate, br, zstd",
  "Accept-Language": "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
  Referer: "https://www.example.org/news/today",
  "sec-ch-ua": '"Chromium";v="131", "Not_A Brand";v="24"',
  "sec-ch-ua-mobile": "?0",
  "sec-ch-ua-platform": '"Windows"',
  "Sec-Fetch-Dest": "document",
  "Sec-Fetch-Mode": "navigate",
  "Sec-Fetch-Site": "cross-site",
  "Upgrade-Insecure-Requests": "1",
};
/** What a visitor sends at the least. */
export const FEW_HEADERS = { "User-Agent": BROWSER_HEADERS["User-Agent"] };

export type RedirectWorld = Awaited<ReturnType<typeof openRedirectWorld>>;

/** A run of redirect-hot. */
export type Hot = {
  bench: Bench;
  world: RedirectWorld;
  program: Rounds["program"];
  cores: Cores;
  /** Redirects that the load has counted, and clicks that came beside them from nowhere. */
  answered: number;
  beside: number;
};

/** Files of codes and of the paths to ask for: one code, all codes once, and codes as often as visitors ask for them. */
export async function writeCodes(root: string, codes: readonly string[]) {
  const pick = createZipf(codes.length, createRandom(SEED));
  const sequence = Array.from({ length: SEQUENCE }, () => codes[pick()] ?? "");
  const files = { one: codes.slice(0, 1), all: codes, zipf: sequence, known: codes };
  const path = (name: keyof typeof files) => join(root, name);
  for (const [name, list] of Object.entries(files))
    await writeFile(join(root, name), list.map((code) => `${name === "known" ? "" : "/"}${code}\n`).join(""));
  return { one: path("one"), all: path("all"), zipf: path("zipf"), known: path("known"), count: codes.length };
}

/** What is behind redirects: a database for their clicks and the ingest, on the load's core, both giving way to the load. */
export async function openClickSide({ server }: Pick<Bench, "server">, cores: Cores) {
  const statsUrl = await server.startEmpty(DATABASE);
  await migrate(statsUrl, "stats");
  // Also where it was started before the cores were dealt out: what it starts from now on is there too.
  const database = server.pid() ?? process.pid;
  await pin(database, cores.load);
  await demote(database);
  const ingest = await startService("click-ingest", { STATS_DATABASE_URL: statsUrl });
  await waitUntilReady(ingest);
  await demote(ingest.pid);
  return { statsUrl, ingest };
}

/**
 * Starts a redirect process with everything on.
 * @param on the cores that it may use: one, or a list such as `0,1`
 * @param root where its spool goes
 */
export async function startRedirect(
  { url, ingest, root }: { url: string; ingest: RunningService; root: string },
  on: number | string,
  env: Record<string, string> = {},
) {
  const spool = await mkdtemp(join(root, "spool-"));
  const redirect = await startService("redirect", {
    DATABASE_URL: url,
    CLICK_INGEST_URL: ingest.url,
    CLICK_SPOOL_DIR: spool,
    CACHE_MAX_ENTRIES: "1000000",
    CACHE_TTL_MS: "3600000",
    ...env,
  });
  await waitUntilReady(redirect);
  await pinWithChildren(redirect.pid, on);
  const target: Target = {
    name: "redirect",
    port: Number(new URL(redirect.url).port),
    pid: redirect.pid,
    settle: () => settle(redirect),
  };
  return { redirect, target };
}

/** Starts it on a seeded database. `env` changes settings of the redirect; of so many links codes are asked for at the most. */
export async function openRedirectWorld(
  bench: Bench,
  cores: Cores,
  { env = {}, codes: wanted = CODES }: { env?: Record<string, string>; codes?: number } = {},
) {
  const url = await openSeeded(bench.server, bench.size, bench.tell);
  const root = await mkdtemp(join(tmpdir(), "linkfence-bench-redirect-"));
  const codes = await writeCodes(root, await pickActive(url, wanted));
  const { statsUrl, ingest } = await openClickSide(bench, cores);
  const { redirect, target } = await startRedirect({ url, ingest, root }, cores.server, env);
  return {
    ...{ url, statsUrl, codes, ingest, redirect, target },
    background: { servers: [bench.server.pid()], processes: [ingest.pid] },
    async close(): Promise<void> {
      await redirect.stop();
      await ingest.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Waits until every click is stored. */
export async function settle(redirect: RunningService): Promise<void> {
  const endsAt = performance.now() + SETTLE_MS;
  while ((await readMetric(redirect, "linkfence_clicks_in_flight")) > 0) {
    if (performance.now() > endsAt) throw new Error(`clicks were not stored within ${SETTLE_MS / 1000} s`);
    await pause(LOOK_MS);
  }
}

/** Clicks that a redirect process has dropped, for whatever reason. */
export async function readDropped(redirect: RunningService): Promise<number> {
  const samples = LOST_REASONS.map((reason) => `linkfence_clicks_dropped_total{reason="${reason}"}`);
  const counts = await Promise.all(samples.map((sample) => readMetric(redirect, sample)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What redirect processes have answered, and what became of it: all of it, once nothing is under way any more. */
export async function readLedger({ redirect, statsUrl }: Pick<RedirectWorld, "redirect" | "statsUrl">) {
  const read = (sample: string) => readMetric(redirect, sample);
  return {
    answered: await read('linkfence_answers_total{outcome="redirect"}'),
    accepted: await read("linkfence_clicks_accepted_total"),
    dropped: await readDropped(redirect),
    rows: await countClicks(statsUrl),
  };
}

/** Clicks that are stored. */
export async function countClicks(statsUrl: string): Promise<number> {
  const [row] = await withSql(statsUrl, 1, (sql) => sql<{ rows: number }[]>`SELECT count(*)::int AS rows FROM click`);
  return row?.rows ?? Number.NaN;
}
