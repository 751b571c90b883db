// What a loop does that only inserts: the rows of `click` in batches as redirect processes send them, arrays as literals,
// over one connection and one statement after the other. No HTTP, nothing is judged, and nothing is added up.
import { CLICK_BATCH_LIMIT } from "@linkfence/contracts";
import { arrayLiteral } from "@linkfence/db";
import type postgres from "postgres";

/** Each column of a click with the type of its array, as the loop sends them. */
const COLUMNS = {
  click_id: "uuid",
  link_version: "bigint",
  clicked_at: "bigint",
  bot: "boolean",
  prefetch: "boolean",
  code: "text",
  owner: "text",
  referrer_host: "text",
  browser: "text",
  os: "text",
  device: "text",
  country: "text",
} as const;
type Column = keyof typeof COLUMNS;
const NAMES = Object.keys(COLUMNS) as Column[];

/** A row to insert; `clicked_at` is in ms since 1970. */
export type BareRow = Readonly<Record<Column, string | number | boolean | null>>;

/** Rows that are read at a time while the clock stands: a few seconds' work, in some 20 MB. */
const PIECE = 50_000;

/** The insert of one batch into this table. */
function insertInto(table: string): string {
  const parameters = NAMES.map((name, place) => `$${place + 1}::${COLUMNS[name]}[]`);
  const values = NAMES.map((name) =>
    name === "clicked_at" ? "timestamptz 'epoch' + clicked_at * interval '1 ms'" : name,
  );
  return `INSERT INTO ${table} (${NAMES.join(", ")})
    SELECT ${values.join(", ")} FROM unnest(${parameters.join(", ")}) AS batch(${NAMES.join(", ")})
    ON CONFLICT DO NOTHING`;
}

/** Inserts rows, a batch at a time. Returns the ms that it took. */
export async function insertBare(sql: postgres.Sql, table: string, rows: readonly BareRow[]): Promise<number> {
  const statement = insertInto(table);
  const batches = Array.from({ length: Math.ceil(rows.length / CLICK_BATCH_LIMIT) }, (_, n) => {
    const batch = rows.slice(n * CLICK_BATCH_LIMIT, (n + 1) * CLICK_BATCH_LIMIT);
    return NAMES.map((name) => batch.map((row) => textOf(row[name])));
  });
  const startedAt = performance.now();
  for (const columns of batches)
    await sql.unsafe(
      statement,
      columns.map((column) => arrayLiteral(column)),
      { prepare: true },
    );
  return performance.now() - startedAt;
}

const textOf = (value: BareRow[Column]) => (typeof value === "boolean" ? String(value) : value);

/**
 * Empties `click`, and inserts the rows of another table of its shape into it, in the order of their ids.
 * @param reader a connection of its own, which reads while the clock stands
 * @returns rows a second
 */
export async function insertAgain(sql: postgres.Sql, reader: postgres.Sql, from: string): Promise<number> {
  await sql.unsafe("TRUNCATE click");
  await sql.unsafe("CHECKPOINT");
  const selected = NAMES.map((name) =>
    name === "clicked_at" ? "(extract(epoch FROM clicked_at) * 1000)::bigint AS clicked_at" : name,
  );
  const pieces = reader.unsafe<BareRow[]>(`SELECT ${selected.join(", ")} FROM ${from} ORDER BY click_id`).cursor(PIECE);
  let [rows, ms] = [0, 0];
  for await (const piece of pieces) {
    ms += await insertBare(sql, "click", piece);
    rows += piece.length;
  }
  return (rows * 1000) / ms;
}
