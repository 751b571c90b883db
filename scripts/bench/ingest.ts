// Clicks into the statistics database, as redirect processes send them and roll-ups included, beside what the database
// alone does with the same rows: INSERT ... SELECT inside the server, and COPY.
import { Agent, request } from "node:http";
import { migrate } from "@linkfence/db/migrate";
import { type RunningService, startService, waitUntilReady } from "@linkfence/testkit";
import type postgres from "postgres";
import type { Bench, Subject } from "./bench-subject.ts";
import { type ClickLoad, makeBodies, type Spread } from "./click-load.ts";
import { cpuOf, cpuOfServer } from "./cpu-time.ts";
import { median } from "./numbers.ts";
import { withSql } from "./own-server.ts";

const DATABASE = "ingest";
/** Batches under way at once, as of a fleet that has something to catch up with. */
const MANY = 20;
/** Three redirect processes, each with a batch under way. */
const THREE = 3;
const ROUNDS = 3;
/** Above this many clicks a round takes minutes, and one says as much as three. */
const ONE_ROUND_FROM = 3_000_000;
/** Clicks of a comparison of codes: seconds each. */
const CODES_CLICKS = 200_000;
/** Half of what the server alone does with the rows. */
const SHARE_MIN = 0.5;
/** All clicks on one code may be this much slower than clicks on many. */
const HOT_MIN = 0.9;
const ROLLUPS = "click_hour, click_day, owner_hour";
const COLUMNS =
  "click_id, link_version, clicked_at, received_at, bot, prefetch, code, owner, referrer_host, browser, os, device, country";

/** Sends all of them, `width` batches at a time. Returns clicks a second. Rejects when one is not stored. */
async function send(ingest: RunningService, load: ClickLoad, width: number, seed: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: width });
  const bodies = makeBodies(load, seed, Date.now());
  const startedAt = performance.now();
  const sender = async () => {
    for (let next = bodies.next(); !next.done; next = bodies.next())
      await post(`${ingest.url}/v1/clicks`, agent, next.value);
  };
  try {
    await Promise.all(Array.from({ length: width }, sender));
  } finally {
    agent.destroy();
  }
  return (load.clicks * 1000) / (performance.now() - startedAt);
}

function post(url: string, agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
    const call = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume().once("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the ingest answered ${response.statusCode}`));
      });
    });
    call.once("error", reject);
    call.end(body);
  });
}

/** The rows that were stored, put in again by the server alone, in both ways. Returns rows a second. */
async function measureYardsticks(sql: postgres.Sql, file: string): Promise<{ insert: number; copy: number }> {
  await sql.unsafe("DROP TABLE IF EXISTS bench_row");
  await sql.unsafe(`CREATE UNLOGGED TABLE bench_row AS SELECT ${COLUMNS} FROM click ORDER BY click_id`);
  const [row] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM bench_row`;
  const rows = row?.n ?? 0;
  await sql.unsafe(`COPY bench_row TO '${file}'`);
  const time = async (statement: string) => {
    await sql.unsafe("TRUNCATE click");
    await sql.unsafe("CHECKPOINT");
    const startedAt = performance.now();
    await sql.unsafe(statement);
    return (rows * 1000) / (performance.now() - startedAt);
  };
  const insert = await time(`INSERT INTO click (${COLUMNS}) SELECT ${COLUMNS} FROM bench_row`);
  const copy = await time(`COPY click (${COLUMNS}) FROM '${file}'`);
  await sql.unsafe("DROP TABLE bench_row");
  return { insert, copy };
}

async function empty(sql: postgres.Sql): Promise<void> {
  await sql.unsafe(`TRUNCATE click, ${ROLLUPS}`);
  await sql.unsafe("CHECKPOINT");
}

/** Nothing was lost on the way, and everything was added up. */
async function judgeRows(sql: postgres.Sql, clicks: number): Promise<void> {
  const [row] = await sql<{ rows: number; added: number }[]>`
    SELECT (SELECT count(*)::int FROM click) AS rows,
           (SELECT sum(people_q0 + people_q1 + people_q2 + people_q3 + bots_q0 + bots_q1 + bots_q2 + bots_q3
                       + prefetches_q0 + prefetches_q1 + prefetches_q2 + prefetches_q3)::int FROM click_hour) AS added`;
  if (row?.rows !== clicks || row.added !== clicks)
    throw new Error(`${clicks} clicks became ${row?.rows} rows that add up to ${row?.added}`);
}

async function measureIngest(
  { results, server, clicks: load, size, tell }: Bench,
  sql: postgres.Sql,
  ingest: RunningService,
) {
  const clicks = load.count;
  const rates = { ingest: [] as number[], insert: [] as number[], copy: [] as number[] };
  const rounds = clicks >= ONE_ROUND_FROM ? 1 : ROUNDS;
  for (let round = 0; round < rounds; round += 1) {
    await empty(sql);
    const before = [await cpuOfServer(server.pid()), await cpuOf(ingest.pid)];
    rates.ingest.push(await send(ingest, { clicks, codes: size.links, spread: load.spread }, MANY, round + 1));
    const after = [await cpuOfServer(server.pid()), await cpuOf(ingest.pid)];
    const used = after.map((ms, i) => ((ms - (before[i] ?? 0)) * 1000) / clicks);
    tell(`round ${round + 1}: µs of processor a click: database ${used[0]?.toFixed(1)}, ingest ${used[1]?.toFixed(1)}`);
    await judgeRows(sql, clicks);
    const yardsticks = await measureYardsticks(sql, `/tmp/linkfence-bench-${process.pid}-${round}.copy`);
    rates.insert.push(yardsticks.insert);
    rates.copy.push(yardsticks.copy);
  }
  const ratio = (yardstick: readonly number[]) =>
    median(rates.ingest.map((rate, round) => rate / (yardstick[round] ?? Number.NaN)));
  results.figure("clicks stored and added up", median(rates.ingest), "a second");
  results.figure("the same rows by INSERT ... SELECT inside the server", median(rates.insert), "a second");
  results.figure("the same rows by COPY", median(rates.copy), "a second");
  results.figure("clicks ÷ COPY", ratio(rates.copy));
  results.atLeast("clicks ÷ INSERT ... SELECT", ratio(rates.insert), SHARE_MIN);
}

/** Whether many on one code wait for each other. */
async function measureHotCode({ results, size }: Bench, sql: postgres.Sql, ingest: RunningService): Promise<void> {
  const rates: Record<Spread, number[]> = { one: [], uniform: [], zipf: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const spread of ["one", "uniform"] as const) {
      await empty(sql);
      const load = { clicks: CODES_CLICKS, codes: size.links, spread };
      rates[spread].push(await send(ingest, load, THREE, 100 + round));
    }
  }
  const three = `from ${THREE} senders`;
  results.figure(`clicks on one code, ${three}`, median(rates.one), "a second");
  results.figure(`clicks on ${size.links.toLocaleString("en")} codes, ${three}`, median(rates.uniform), "a second");
  const ratios = rates.one.map((rate, round) => rate / (rates.uniform[round] ?? Number.NaN));
  results.atLeast(`on one code ÷ on many, ${three}`, median(ratios), HOT_MIN);
}

export const ingest: Subject = {
  shows: "how many clicks are stored and added up in a second, beside what the database does with the rows alone",
  links: 100_000,
  async run(bench) {
    const { server, results } = bench;
    const url = await server.startEmpty(DATABASE);
    await migrate(url, "stats");
    const service = await startService("click-ingest", { STATS_DATABASE_URL: url });
    await waitUntilReady(service);
    results.noteLoad("before");
    await withSql(url, 1, async (sql) => {
      await measureIngest(bench, sql, service);
      await measureHotCode(bench, sql, service);
    });
    results.noteLoad("after");
    await service.stop();
  },
};
