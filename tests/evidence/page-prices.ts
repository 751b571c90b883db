// What a page of a listing may cost in buffers of 8 KB, whatever the depth, and what it does cost.
import type { Sql } from "@linkfence/db";
import postgres from "postgres";
import { SCAN_MAX } from "../../services/write/src/store/page-rows.ts";

/** Links of a page. */
export const LIMIT = 20;
/** Levels of a B-tree at the most: with a hundred entries a page, four hold a hundred million. */
const HEIGHT = 4;
/** Both states are read. A link of the page may cost an index page and a table page of its own. */
const plain = 2 * (HEIGHT + 2 * (LIMIT + 1));
/** A scan that finds nothing, and the search for its edge. */
const scan = 2 * (HEIGHT + 2 * SCAN_MAX);

/** The greatest prices. By tag each link is also looked up by its code; a page that is not full looks for the edge of the scan as well. */
export const PRICE = {
  plain,
  /** What a page may cost more than the first one: where it begins, each of the two indexes may turn a page at every level. */
  turns: 2 * HEIGHT,
  byTag: plain + (HEIGHT + 1) * (LIMIT + 1),
  scan,
  scanByTag: scan + (HEIGHT + 1) * SCAN_MAX,
};

export type Planner = ReturnType<typeof createPlanner>;

/**
 * Explains the very statements that the service sends.
 * @param kind `generic` is the one that the server keeps for a prepared statement: it does not know who the owner is and
 * how many links they have; `custom` is made for the parameters, as the first few executions are
 */
export function createPlanner(url: string, kind: "generic" | "custom" = "generic") {
  let sent: { text: string; values: unknown[] } = { text: "", values: [] };
  const debug = (_connection: number, text: string, values: unknown[]) => {
    sent = { text, values };
  };
  const sql = postgres(url, { max: 1, debug, fetch_types: false, onnotice: () => {} });

  /** Returns the buffers that a statement touches. */
  async function explain(statement: (sql: Sql) => PromiseLike<unknown>): Promise<number> {
    await sql.unsafe(`SET plan_cache_mode = force_${kind}_plan`);
    await statement(sql as unknown as Sql);
    const { text, values } = sent;
    const literals = values.map((value) => `'${String(value).replaceAll("'", "''")}'`).join(", ");
    await sql.unsafe(`PREPARE page AS ${text}`);
    const [row] = await sql.unsafe<{ "QUERY PLAN": { Plan: Record<string, number> }[] }[]>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page ${literals === "" ? "" : `(${literals})`}`,
    );
    await sql`DEALLOCATE page`;
    const plan = row?.["QUERY PLAN"][0]?.Plan;
    return (plan?.["Shared Hit Blocks"] ?? Number.NaN) + (plan?.["Shared Read Blocks"] ?? Number.NaN);
  }

  return { explain, end: () => sql.end({ timeout: 1 }) };
}
