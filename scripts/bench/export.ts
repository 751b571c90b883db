// An export of millions of clicks: how fast its file is written, beside COPY of the same query by the server alone; how much
// memory it takes; and how much is left to redirects and to clicks meanwhile.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { withSnapshot } from "@linkfence/db";
import { migrate } from "@linkfence/db/migrate";
import { type RunningService, readMetric, startService, waitFor, waitUntilReady } from "@linkfence/testkit";
import type postgres from "postgres";
import { exportStatement } from "../../services/click-ingest/src/store/export-query.ts";
import { startExporter } from "../../tests/evidence/exporter.ts";
import { forgetPeak, readMemory } from "../../tests/evidence/process-memory.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import { runClosedLoop } from "./closed-loop.ts";
import { median } from "./numbers.ts";
import { type OwnServer, withSql } from "./own-server.ts";
import { openSeeded, pickActive } from "./seed.ts";
import { sendClicks } from "./send-clicks.ts";

const DAY_MS = 86_400_000;
const DAYS = 10;
const FIRST_DAY = "2026-01-01";
const FROM = Date.parse(`${FIRST_DAY}T00:00Z`);
const TO = FROM + DAYS * DAY_MS;
const OWNER = "ann";
const ORDERED = { orderedBy: "bench", idempotencyKey: null, digest: "0".repeat(64) };
/** All clicks that `openClicks` makes. */
export const WHOLE_ORDER = { ...ORDERED, owner: OWNER, codes: null, from: FROM, to: TO, gzip: false };
const ROUNDS = 3;
/** Above this many clicks a round takes minutes, and one says as much as three. */
const ONE_ROUND_FROM = 3_000_000;
/** Rounds beside redirects and clicks, each of them once with an export and once without. */
const SIDE_ROUNDS = 5;
const SIDE_SECONDS = 4;
const CLIENTS = 64;
const SIDE_CLICKS = 60_000;
const SIDE_SENDERS = 20;
const CODES = 1000;
const MIB = 1024 ** 2;
/** Aims: half of what COPY alone does, 64 MiB more than an idle process has, and a tenth of what others do. */
const SHARE_MIN = 0.5;
const MEMORY_MAX = 64;
const OTHERS_MIN = 0.9;
/** An export of a hundred million takes minutes. */
const TIMEOUT_MS = 3_600_000;

/** Finds the database of so many clicks, or makes it. */
export async function openClicks(server: OwnServer, clicks: number, tell: (text: string) => void): Promise<string> {
  const name = `exported_${clicks}`;
  const admin = await server.start("postgres");
  const found = await withSql(admin, 1, (sql) => sql`SELECT FROM pg_database WHERE datname = ${name}`);
  if (found.length > 0) return server.start(name);
  const unfinished = "unfinished_exported";
  const url = await server.startEmpty(unfinished);
  await migrate(url, "stats");
  await withSql(url, 1, (sql) => fill(sql, clicks, tell));
  await withSql(admin, 1, (sql) => sql.unsafe(`ALTER DATABASE ${unfinished} RENAME TO ${name}`));
  return server.start(name);
}

/** Rows as clicks leave them, without roll-ups: of those an export reads an estimate alone. */
async function fill(sql: postgres.Sql, clicks: number, tell: (text: string) => void): Promise<void> {
  for (let day = 0; day < DAYS; day += 1) {
    await sql`SELECT attach_click_day(${FIRST_DAY}::text::date + ${day}::int)`;
    await sql`
      INSERT INTO click (click_id, link_version, clicked_at, code, owner, referrer_host, browser, os, device, country, bot,
                         prefetch)
      SELECT (lpad(to_hex(at), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 3)
                || lpad(to_hex(n), 12, '0'))::uuid, 1, to_timestamp(at / 1000.0), 'code' || n % 10000, ${OWNER},
             CASE WHEN n % 2 = 0 THEN '' ELSE 'www.site-' || n % 97 || '.example' END, 'Chrome', 'Windows', 'desktop',
             (ARRAY['DE', 'US', 'FR', 'NL'])[1 + n % 4], n % 50 = 0, false
        FROM (SELECT n, ${FROM + day * DAY_MS}::bigint + n::bigint * ${DAY_MS}::bigint / ${clicks / DAYS}::float8::bigint AS at
                FROM generate_series(0, ${Math.floor(clicks / DAYS) - 1}::int) AS n) AS drawn`;
    tell(`${day + 1} of ${DAYS} days`);
  }
  await sql`VACUUM (ANALYZE) click`;
}

/** Reads what a statement says, and throws it away. Returns ms. */
async function copyAway(url: string, statement: string): Promise<number> {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  const snapshot = {
    url,
    applicationName: "bench",
    connectTimeoutMs: 10_000,
    timeoutMs: TIMEOUT_MS,
    signal: new AbortController().signal,
  };
  const startedAt = performance.now();
  await withSnapshot(snapshot, (at) => pipeline(at.copy(statement), sink));
  return performance.now() - startedAt;
}

async function openExporter(url: string, directory: string) {
  const settings = { EXPORT_DIR: directory, EXPORT_TIMEOUT_MS: String(TIMEOUT_MS), EXPORT_WORKERS: "1" };
  const exporter = await startExporter(url, settings);
  await waitUntilReady(exporter.service);
  return exporter;
}
type Exporter = Awaited<ReturnType<typeof openExporter>>;

/** @param to end of its period */
async function write(exporter: Exporter, format: "csv" | "jsonl", wanted: number, to = TO): Promise<number> {
  const { id } = await exporter.order({ ...WHOLE_ORDER, to, format });
  const job = await exporter.ended(id);
  if (job.state !== "SUCCEEDED" || job.rows !== wanted)
    throw new Error(`the export is ${job.state}, ${job.rows} rows: ${job.error?.detail}`);
  return Date.parse(job.finishedAt ?? "") - Date.parse(job.startedAt ?? "");
}

async function measureFiles({ results, clicks, tell }: Bench, url: string, exporter: Exporter): Promise<void> {
  const wanted = Math.floor(clicks.count / DAYS) * DAYS;
  const { pid } = exporter.service;
  // What every first file takes is not what a larger one takes.
  await write(exporter, "csv", wanted / DAYS, FROM + DAY_MS);
  const idle = (await readMemory(pid, "VmRSS")) / MIB;
  await forgetPeak(pid).catch(() => {});
  const ms = { csv: [] as number[], jsonl: [] as number[], copy: [] as number[], plain: [] as number[] };
  const statement = exportStatement(WHOLE_ORDER, "csv");
  const plain = "COPY (SELECT * FROM click ORDER BY click_id) TO STDOUT WITH (FORMAT csv)";
  const rounds = clicks.count >= ONE_ROUND_FROM ? 1 : ROUNDS;
  for (let round = 0; round < rounds; round += 1) {
    tell(`round ${round + 1} of ${rounds}`);
    ms.csv.push(await write(exporter, "csv", wanted));
    ms.copy.push(await copyAway(url, statement));
    ms.plain.push(await copyAway(url, plain));
    ms.jsonl.push(await write(exporter, "jsonl", wanted));
  }
  const rate = (times: readonly number[]) => (wanted * 1000) / median(times);
  results.figure("clicks written to CSV", rate(ms.csv), "a second");
  results.figure("clicks written to JSON Lines", rate(ms.jsonl), "a second");
  results.figure("COPY of the same query, thrown away", rate(ms.copy), "a second");
  results.figure("COPY of the table's columns as they are, thrown away", rate(ms.plain), "a second");
  results.atLeast("CSV ÷ COPY of the same query", median(ms.copy.map((each, i) => each / (ms.csv[i] ?? 0))), SHARE_MIN);
  results.figure("CSV ÷ COPY of the columns as they are", median(ms.plain.map((each, i) => each / (ms.csv[i] ?? 0))));
  results.figure("memory of the idle process", idle, "MiB");
  results.atMost("memory at the peak above that, MiB", (await readMemory(pid, "VmHWM")) / MIB - idle, MEMORY_MAX);
}

/** Measures something while an export is written and while none is, in turn. Returns the median of the ratios. */
async function beside(exporter: Exporter, measure: () => Promise<number>): Promise<number> {
  const ratios: number[] = [];
  await measure();
  for (let round = 0; round < SIDE_ROUNDS; round += 1) {
    const rates = { calm: 0, busy: 0 };
    for (const way of round % 2 === 0 ? (["calm", "busy"] as const) : (["busy", "calm"] as const)) {
      const job = way === "busy" ? await exporter.order({ ...WHOLE_ORDER, format: "csv" }) : undefined;
      if (job) await exporter.until(job.id, ({ rows }) => rows > 0);
      rates[way] = await measure();
      if (job && (await exporter.until(job.id, () => true)).state !== "RUNNING")
        throw new Error("the export was over before what was measured beside it; ask for more --clicks");
      if (job) await exporter.cancel(job.id);
    }
    ratios.push(rates.busy / rates.calm);
  }
  return median(ratios);
}

async function measureOthers(
  { results }: Bench,
  exporter: Exporter,
  redirect: RunningService,
  codes: readonly string[],
) {
  const requests = codes.map((code) => `GET /${code} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\n\r\n`);
  let asked = 0;
  const next = () => requests[asked++ % requests.length] ?? "";
  const redirects = await beside(exporter, () =>
    runClosedLoop({ url: redirect.url, clients: CLIENTS, seconds: SIDE_SECONDS, next, status: 302 }),
  );
  results.atLeast("redirects during an export ÷ without one", redirects, OTHERS_MIN);
  await waitFor("the last clicks", async () => (await readMetric(redirect, "linkfence_clicks_in_flight")) === 0);
  let seed = 1;
  const clicks = await beside(exporter, () => {
    seed += 1;
    return sendClicks(exporter.service, { clicks: SIDE_CLICKS, codes: CODES, spread: "zipf" }, SIDE_SENDERS, seed);
  });
  results.atLeast("clicks stored during an export ÷ without one", clicks, OTHERS_MIN);
}

export const exported: Subject = {
  shows: "how fast an export's file is written, what memory it takes, and what it leaves to redirects and clicks",
  links: 20_000,
  async run(bench) {
    const { server, size, clicks, results, tell } = bench;
    const mainUrl = await openSeeded(server, size, tell);
    const codes = await pickActive(mainUrl, CODES);
    const url = await openClicks(server, clicks.count, tell);
    const directory = await mkdtemp(join(tmpdir(), "linkfence-bench-export-"));
    const exporter = await openExporter(url, directory);
    await mkdir(join(directory, "spool"));
    const redirect = await startService("redirect", {
      DATABASE_URL: mainUrl,
      CLICK_INGEST_URL: exporter.service.url,
      CLICK_SPOOL_DIR: join(directory, "spool"),
      CACHE_TTL_MS: "3600000",
    });
    try {
      await waitUntilReady(redirect);
      results.noteLoad("before");
      await measureFiles(bench, url, exporter);
      await measureOthers(bench, exporter, redirect, codes);
      results.noteLoad("after");
    } finally {
      await redirect.stop();
      await exporter.service.stop();
      await rm(directory, { recursive: true });
    }
  },
};
