// What the statistics of one link cost, over four hundred days by day: for a link with few clicks and for one with ten times
// as many, from roll-ups and from the clicks themselves; in buffers and in milliseconds.
import { createDatabase, type Sql } from "@linkfence/db";
import { migrate } from "@linkfence/db/migrate";
import type postgres from "postgres";
import { createDayValues } from "../../services/click-ingest/src/store/day-values.ts";
import { createStatsStore } from "../../services/click-ingest/src/store/stats.ts";
import { selectSums } from "../../services/click-ingest/src/store/stats-rows.ts";
import { createPlanner, type Planner } from "../../tests/evidence/page-prices.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import { median, percentile } from "./numbers.ts";
import { type OwnServer, withSql } from "./own-server.ts";

const QUARTER_MS = 900_000;
const DAYS = 400;
const DAY_MS = 86_400_000;
const TOP = 10;
/** Both start at a midnight of UTC. */
const FIRST_DAY = "2025-01-01";
const FROM_QUARTER = Date.parse(`${FIRST_DAY}T00:00Z`) / QUARTER_MS;
const EDGES = Array.from({ length: DAYS + 1 }, (_, day) => FROM_QUARTER + (day * DAY_MS) / QUARTER_MS);
const REQUEST = { edges: EDGES, top: TOP, stepped: true };
const FEW = "few";
const MANY = "many";
/** Ten times the clicks may find a few more values in an hour, and not ten times as many rows. */
const GROWTH_MAX = 5;
const ROUNDS = { rollUps: 100, raw: 5 };

/** Finds the database of so many clicks, or makes it with the functions that the service stores clicks by. */
async function openClicks(server: OwnServer, clicks: number, tell: (text: string) => void): Promise<string> {
  const name = `clicks_${clicks}`;
  const admin = await server.start("postgres");
  const found = await withSql(admin, 1, (sql) => sql`SELECT FROM pg_database WHERE datname = ${name}`);
  if (found.length === 0) {
    const unfinished = "unfinished_clicks";
    await withSql(admin, 1, async (sql) => {
      await sql.unsafe(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`);
      await sql.unsafe(`CREATE DATABASE ${unfinished}`);
    });
    const url = await server.start(unfinished);
    await migrate(url, "stats");
    await withSql(url, 1, (sql) => fill(sql, clicks, tell));
    await withSql(admin, 1, (sql) => sql.unsafe(`ALTER DATABASE ${unfinished} RENAME TO ${name}`));
  } else tell(`${name} is there already`);
  return server.start(name);
}

/** Most clicks of a day and at a time come from few places, as it is. */
async function fill(sql: postgres.Sql, clicks: number, tell: (text: string) => void): Promise<void> {
  for (let day = 0; day < DAYS; day += 1) {
    await sql`SELECT attach_click_day(${FIRST_DAY}::text::date + ${day}::int)`;
    for (const [code, count] of [
      [FEW, clicks / DAYS / 10],
      [MANY, clicks / DAYS],
    ] as const)
      await sql`
        SELECT store_clicks(array_agg(id ORDER BY id), array_agg(1::bigint ORDER BY id), array_agg(at ORDER BY id),
                            array_agg(${code}::text ORDER BY id), array_agg('ann'::text ORDER BY id),
                            array_agg('site' || (100 * power(r1, 3))::int || '.example' ORDER BY id),
                            array_agg('Browser ' || (8 * r2 * r2)::int ORDER BY id),
                            array_agg('System ' || (6 * r2 * r3)::int ORDER BY id),
                            array_agg((ARRAY['desktop', 'mobile', 'tablet'])[1 + (2 * r3)::int] ORDER BY id),
                            array_agg(chr(65 + (5 * r1 * r3)::int) || chr(65 + (5 * r2)::int) ORDER BY id),
                            array_agg(r1 < 0.1 ORDER BY id), array_agg(r2 < 0.02 ORDER BY id), 100)
          FROM (SELECT at, r1, r2, r3,
                       (lpad(to_hex(at), 12, '0') || '7' || substr(h, 1, 3) || '8' || substr(h, 4, 15))::uuid AS id
                  FROM (SELECT extract(epoch FROM ${FIRST_DAY}::text::date)::bigint * 1000
                                 + ${day}::bigint * ${DAY_MS}::bigint + (random() * ${DAY_MS - 1}::float8)::bigint AS at,
                               md5(random()::text || n) AS h, random() AS r1, random() AS r2, random() AS r3
                          FROM generate_series(1, ${Math.max(1, Math.round(count))}::int) AS n) AS drawn) AS click`;
    if (day % 40 === 39) tell(`${day + 1} of ${DAYS} days`);
  }
  await sql`VACUUM (ANALYZE) click_hour, click`;
}

/** The same question to the clicks themselves. */
function selectRaw(sql: Sql, code: string) {
  const [from, to] = [FROM_QUARTER, EDGES.at(-1) ?? 0].map((quarter) => (quarter * QUARTER_MS) / 1000);
  return sql`
    SELECT date_trunc('day', clicked_at, 'UTC') AS day, referrer_host, browser, os, device, country, bot, prefetch,
           count(*) AS clicks
      FROM click WHERE code = ${code} AND clicked_at >= to_timestamp(${from ?? 0}::float8)
                   AND clicked_at < to_timestamp(${to ?? 0}::float8)
     GROUP BY GROUPING SETS ((date_trunc('day', clicked_at, 'UTC'), bot, prefetch), (referrer_host), (browser), (os), (device),
                             (country))`;
}

/** As the service does it by itself. */
async function addUpDays(url: string): Promise<void> {
  const db = createDatabase({ url, applicationName: "bench", max: 1, queryTimeoutMs: 600_000 });
  await createDayValues(db, Date.now).maintain();
  await db.close();
  await withSql(url, 1, (sql) => sql`VACUUM (ANALYZE) click_day_value, click_day_added`);
}

async function priceInBuffers({ results }: Bench, url: string, planner: Planner): Promise<void> {
  const literal = `{${EDGES.join(",")}}`;
  const rolled = (code: string, top: number) =>
    planner.explain((sql) => selectSums(sql, { code }, { ...REQUEST, top, literal }));
  await withSql(url, 1, (sql) => sql`TRUNCATE click_day_value, click_day_added`);
  results.figure(
    "buffers before days are added up, a tenth and all",
    `${await rolled(FEW, TOP)}, ${await rolled(MANY, TOP)}`,
  );
  await addUpDays(url);
  const [few, many] = [await rolled(FEW, TOP), await rolled(MANY, TOP)];
  const [seriesFew, seriesMany] = [await rolled(FEW, 0), await rolled(MANY, 0)];
  const raw = { few: await planner.explain((sql) => selectRaw(sql, FEW)), many: 0 };
  raw.many = await planner.explain((sql) => selectRaw(sql, MANY));
  results.figure("buffers from roll-ups, a tenth of the clicks", few);
  results.figure("buffers from roll-ups, all clicks", many);
  results.figure("buffers of the series alone, a tenth and all", `${seriesFew}, ${seriesMany}`);
  results.figure("buffers from the clicks themselves, a tenth and all", `${raw.few}, ${raw.many}`);
  results.atMost("buffers of the series, all ÷ a tenth of the clicks", seriesMany / seriesFew, 1.5);
  results.atMost("buffers with values, all ÷ a tenth of the clicks", many / few, GROWTH_MAX);
}

async function measureTimes({ results }: Bench, url: string): Promise<void> {
  const db = createDatabase({ url, applicationName: "bench", max: 1, queryTimeoutMs: 600_000 });
  const store = createStatsStore(db);
  const time = async (work: () => Promise<unknown>, rounds: number) => {
    const times: number[] = [];
    for (let round = -1; round < rounds; round += 1) {
      const startedAt = performance.now();
      await work();
      if (round >= 0) times.push(performance.now() - startedAt);
    }
    return { p50: median(times), p99: percentile(times, 0.99) };
  };
  const rolled = await time(() => store.readLink(MANY, REQUEST), ROUNDS.rollUps);
  const raw = await time(() => db.run((sql) => selectRaw(sql, MANY)), ROUNDS.raw);
  await db.close();
  results.figure("from roll-ups, p50", rolled.p50, "ms");
  results.figure("from roll-ups, p99", rolled.p99, "ms");
  results.figure("from the clicks themselves, p50", raw.p50, "ms");
  results.figure("from the clicks themselves, the slowest", raw.p99, "ms");
  results.figure("the clicks themselves ÷ roll-ups, p99", raw.p99 / rolled.p99);
}

export const statistics: Subject = {
  shows: "what four hundred days of a link's statistics cost, from roll-ups and from the clicks themselves",
  links: 20_000,
  async run(bench) {
    const url = await openClicks(bench.server, bench.clicks.count, bench.tell);
    bench.results.noteLoad("before");
    const planner = createPlanner(url);
    await priceInBuffers(bench, url, planner);
    await planner.end();
    await measureTimes(bench, url);
    bench.results.noteLoad("after");
  },
};
