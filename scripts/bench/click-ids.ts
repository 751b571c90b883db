// What it is worth that a click's id begins with its time: the same rows by the same loop into two equal tables, once with
// the ids that redirect processes make and once with random ones.
import { migrate } from "@linkfence/db/migrate";
import type postgres from "postgres";
import { type BareRow, insertBare } from "./bare-loop.ts";
import type { Bench, Subject } from "./bench-subject.ts";
import { makeBatches } from "./click-load.ts";
import { partCores } from "./database-core.ts";
import { median, ratios, spreadOf } from "./numbers.ts";
import { withSql } from "./own-server.ts";

const DATABASE = "click_ids";
const ROUNDS = 5;
/** From this many clicks on a round takes minutes, and one is measured. */
const ONE_ROUND_FROM = 3_000_000;
const SHARE_MIN = 1.4;
/** Rows that are made at a time while the clock stands. */
const PIECE = 50_000;
/** The other columns are as long as they usually are. */
const REST = { bot: false, browser: "Chrome", os: "Windows", device: "desktop" };
const IDS = ["timed", "random"] as const;

function* makeRows({ clicks, size }: Bench, seed: number, random: boolean): Generator<BareRow[]> {
  let piece: BareRow[] = [];
  const load = { clicks: clicks.count, codes: size.links, spread: clicks.spread };
  for (const batch of makeBatches(load, seed, Date.now())) {
    for (const click of batch)
      piece.push({
        ...REST,
        click_id: random ? crypto.randomUUID() : click.id,
        link_version: click.version,
        clicked_at: click.at,
        prefetch: click.prefetch ?? false,
        code: click.code,
        owner: click.owner ?? null,
        referrer_host: click.referrerHost ?? "",
        country: click.country ?? "",
      });
    if (piece.length < PIECE) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

/** Returns rows a second, into a table of the shape of `click` without its days, as random ids have none. */
async function measure(bench: Bench, sql: postgres.Sql, seed: number, random: boolean): Promise<number> {
  await sql.unsafe("DROP TABLE IF EXISTS bench_click");
  await sql.unsafe("CREATE TABLE bench_click (LIKE click INCLUDING ALL)");
  await sql.unsafe("CHECKPOINT");
  let ms = 0;
  for (const piece of makeRows(bench, seed, random)) ms += await insertBare(sql, "bench_click", piece);
  return (bench.clicks.count * 1000) / ms;
}

export const clickIds: Subject = {
  shows: "how many rows of clicks a loop inserts in a second when their ids begin with the time, beside random ids",
  links: 100_000,
  async run(bench) {
    const { server, results, clicks, tell } = bench;
    const url = await server.startEmpty(DATABASE);
    await migrate(url, "stats");
    results.noteLoad("before");
    const rates = { timed: [] as number[], random: [] as number[] };
    await withSql(url, 1, async (sql) => {
      await sql`SELECT 1`;
      const parted = await partCores(server.pid(), []);
      results.figure("the database", parted ? "has a core to itself" : "shares all cores");
      for (let round = 0; round < (clicks.count >= ONE_ROUND_FROM ? 1 : ROUNDS); round += 1) {
        // The order turns, so that neither has the server that is always the warmer one.
        for (const ids of round % 2 === 0 ? IDS : [...IDS].reverse())
          rates[ids].push(await measure(bench, sql, round + 1, ids === "random"));
        tell(
          `round ${round + 1}: ${rates.timed.at(-1)?.toFixed(0)} and, random, ${rates.random.at(-1)?.toFixed(0)} a second`,
        );
      }
    });
    results.noteLoad("after");
    results.figure("rows with ids that begin with the time", median(rates.timed), "a second");
    results.figure("rows with random ids", median(rates.random), "a second");
    const { median: share, low, high } = spreadOf(ratios(rates.timed, rates.random));
    results.figure("time-ordered ÷ random, lowest and highest round", `${low.toFixed(2)} and ${high.toFixed(2)}`);
    results.atLeast("time-ordered ÷ random", share, SHARE_MIN);
  },
};
