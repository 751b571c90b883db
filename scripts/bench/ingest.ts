// Clicks into the statistics database, as redirect processes send them and roll-ups included, beside a loop that only
// inserts the same rows, and beside what the database alone does with them: INSERT ... SELECT inside the server, and COPY.
import { migrate } from "@linkfence/db/migrate";
import { type RunningService, startService, waitUntilReady } from "@linkfence/testkit";
import type postgres from "postgres";
import { insertAgain } from "./bare-loop.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import type { Spread } from "./click-load.ts";
import { cpuOf, cpuOfServer } from "./cpu-time.ts";
import { partCores } from "./database-core.ts";
import { median, ratios, spreadOf } from "./numbers.ts";
import { withSql } from "./own-server.ts";
import { sendClicks } from "./send-clicks.ts";

const DATABASE = "ingest";
/** Batches under way at once, as of a fleet that has something to catch up with. */
const MANY = 20;
/** Three redirect processes, each with a batch under way. */
const THREE = 3;
const ROUNDS = 5;
/** Two rates on codes, and so many rounds of both. */
const CODES_ROUNDS = 3;
/** From this many clicks on a round takes minutes: one is measured, and only the loop beside it. */
const ONE_ROUND_FROM = 3_000_000;
/** Clicks of a comparison of codes: seconds each. */
const CODES_CLICKS = 200_000;
/** Half of what the loop does with the rows. */
const SHARE_MIN = 0.5;
/** All clicks on one code may be this much slower than clicks on many. */
const HOT_MIN = 0.9;
const ROLLUPS = "click_hour, click_day, owner_hour";
const COLUMNS =
  "click_id, link_version, clicked_at, received_at, bot, prefetch, code, owner, referrer_host, browser, os, device, country";

/** The rows that were stored, put in again by the server alone, in both ways. Returns rows a second. */
async function measureServerAlone(sql: postgres.Sql, file: string): Promise<{ insert: number; copy: number }> {
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

type Connections = { sql: postgres.Sql; reader: postgres.Sql };

async function measureIngest(bench: Bench, { sql, reader }: Connections, ingest: RunningService) {
  const { results, clicks: load, tell } = bench;
  const rates = { ingest: [] as number[], loop: [] as number[], insert: [] as number[], copy: [] as number[] };
  const large = load.count >= ONE_ROUND_FROM;
  for (let round = 0; round < (large ? 1 : ROUNDS); round += 1) {
    rates.ingest.push(await measureRound(bench, sql, ingest, round));
    await sql.unsafe("DROP TABLE IF EXISTS bench_row");
    await sql.unsafe(`CREATE UNLOGGED TABLE bench_row AS SELECT ${COLUMNS} FROM click ORDER BY click_id`);
    rates.loop.push(await insertAgain(sql, reader, "bench_row"));
    tell(
      `round ${round + 1}: ${rates.ingest.at(-1)?.toFixed(0)} and, by the loop, ${rates.loop.at(-1)?.toFixed(0)} a second`,
    );
    if (large) continue;
    const alone = await measureServerAlone(sql, `/tmp/linkfence-bench-${process.pid}-${round}.copy`);
    rates.insert.push(alone.insert);
    rates.copy.push(alone.copy);
  }
  await sql.unsafe("DROP TABLE bench_row");
  results.figure("clicks stored and added up", median(rates.ingest), "a second");
  results.figure("the same rows by a loop that only inserts", median(rates.loop), "a second");
  if (!large) {
    results.figure("the same rows by INSERT ... SELECT inside the server", median(rates.insert), "a second");
    results.figure("clicks ÷ COPY", median(ratios(rates.ingest, rates.copy)));
    results.figure("clicks ÷ INSERT ... SELECT", median(ratios(rates.ingest, rates.insert)));
  }
  const { median: share, low, high } = spreadOf(ratios(rates.ingest, rates.loop));
  results.figure("clicks ÷ loop, lowest and highest round", `${low.toFixed(2)} and ${high.toFixed(2)}`);
  results.atLeast("clicks ÷ loop", share, SHARE_MIN);
}

/** Returns clicks a second. */
async function measureRound(
  { server, clicks, size, tell }: Bench,
  sql: postgres.Sql,
  ingest: RunningService,
  round: number,
) {
  await empty(sql);
  const before = [await cpuOfServer(server.pid()), await cpuOf(ingest.pid)];
  const load = { clicks: clicks.count, codes: size.links, spread: clicks.spread };
  const rate = await sendClicks(ingest, load, MANY, round + 1);
  const after = [await cpuOfServer(server.pid()), await cpuOf(ingest.pid)];
  const used = after.map((ms, i) => ((ms - (before[i] ?? 0)) * 1000) / clicks.count);
  tell(`round ${round + 1}: µs of processor a click: database ${used[0]?.toFixed(1)}, ingest ${used[1]?.toFixed(1)}`);
  await judgeRows(sql, clicks.count);
  return rate;
}

/** Whether many on one code wait for each other. */
async function measureHotCode({ results, size }: Bench, sql: postgres.Sql, ingest: RunningService): Promise<void> {
  const rates: Record<Spread, number[]> = { one: [], uniform: [], zipf: [] };
  for (let round = 0; round < CODES_ROUNDS; round += 1) {
    for (const spread of ["one", "uniform"] as const) {
      await empty(sql);
      const load = { clicks: CODES_CLICKS, codes: size.links, spread };
      rates[spread].push(await sendClicks(ingest, load, THREE, 100 + round));
    }
  }
  const three = `from ${THREE} senders`;
  results.figure(`clicks on one code, ${three}`, median(rates.one), "a second");
  results.figure(`clicks on ${size.links.toLocaleString("en")} codes, ${three}`, median(rates.uniform), "a second");
  results.atLeast(`on one code ÷ on many, ${three}`, median(ratios(rates.one, rates.uniform)), HOT_MIN);
}

export const ingest: Subject = {
  shows: "how many clicks are stored and added up in a second, beside a loop that only inserts the same rows",
  links: 100_000,
  async run(bench) {
    const { server, results } = bench;
    const url = await server.startEmpty(DATABASE);
    await migrate(url, "stats");
    const service = await startService("click-ingest", { STATS_DATABASE_URL: url });
    await waitUntilReady(service);
    results.noteLoad("before");
    await withSql(url, 1, (reader) =>
      withSql(url, 1, async (sql) => {
        const parted = await partCores(server.pid(), [service.pid]);
        results.figure("the database", parted ? "has a core to itself" : "shares all cores");
        await measureIngest(bench, { sql, reader }, service);
        if (bench.clicks.count < ONE_ROUND_FROM) await measureHotCode(bench, sql, service);
      }),
    );
    results.noteLoad("after");
    await service.stop();
  },
};
