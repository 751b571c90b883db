// What a file is made of, as the server writes it: COPY reads the clicks, makes cells or lines of them, and sends bytes. No
// row becomes an object here, so that a file of ten million costs little more than the server's reading them.
import { EXPORT_COLUMNS, type ExportFormat, isCode } from "@linkfence/contracts";
import { arrayLiteral, quoteLiteral } from "@linkfence/db";

/** What is read. Times are in ms since 1970; all clicks counted for the owner where there are no codes. */
export type ExportSelection = { owner: string; codes: readonly string[] | null; from: number | null; to: number };

/** Where each column comes from. Texts are quoted, and defused, in CSV; an empty one is unknown. */
const SOURCES: Record<(typeof EXPORT_COLUMNS)[number], { sql: string; text: boolean }> = {
  id: { sql: "click_id", text: false },
  clickedAt: { sql: `to_char(clicked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`, text: false },
  code: { sql: "code", text: true },
  version: { sql: "link_version", text: false },
  referrer: { sql: "referrer_host", text: true },
  browser: { sql: "browser", text: true },
  system: { sql: "os", text: true },
  device: { sql: "device", text: true },
  country: { sql: "country", text: true },
  bot: { sql: "bot", text: false },
  prefetch: { sql: "prefetch", text: false },
};

/** Statement that writes the file of a selection. */
export function exportStatement(selection: ExportSelection, format: ExportFormat): string {
  return format === "csv" ? csvStatement(selection) : linesStatement(selection);
}

/** Statement that counts about as many rows, from the roll-ups: whole hours, and nothing older than `keptFrom` (ms). */
export function estimateStatement({ owner, codes, from, to }: ExportSelection, keptFrom: number): string {
  const source =
    codes === null ? `owner_hour WHERE owner = ${quoteLiteral(owner)}` : `click_hour WHERE ${codesAre(codes)}`;
  const time = (ms: number) => `to_timestamp(${ms / 1000})`;
  const counters = ["people", "bots", "prefetches"].flatMap((kind) => [0, 1, 2, 3].map((part) => `${kind}_q${part}`));
  return `SELECT coalesce(sum(${counters.join(" + ")}), 0)::float8 AS rows FROM ${source}
             AND hour > ${time(Math.max(from ?? 0, keptFrom))} - interval '1 hour' AND hour < ${time(to)}`;
}

/** RFC 4180 with LF, which becomes CRLF on its way; unknown is an empty cell without quotes. */
function csvStatement(selection: ExportSelection): string {
  const cells = EXPORT_COLUMNS.map((name) => {
    const { sql, text } = SOURCES[name];
    return `${text ? defusedCell(sql) : cellOf(name, sql)} AS "${name}"`;
  });
  const quoted = EXPORT_COLUMNS.filter((name) => SOURCES[name].text).map((name) => `"${name}"`);
  return `COPY (SELECT ${cells.join(", ")} ${clicks(selection)})
            TO STDOUT WITH (FORMAT csv, HEADER true, FORCE_QUOTE (${quoted.join(", ")}))`;
}

/** Truths are words in both forms. */
const cellOf = (name: string, sql: string) => (name === "bot" || name === "prefetch" ? `${sql}::text` : sql);

/** One JSON object a line. JSON has no such character outside its escapes, so that nothing of it is quoted once more. */
function linesStatement(selection: ExportSelection): string {
  const members = EXPORT_COLUMNS.map((name) => {
    const { sql, text } = SOURCES[name];
    return `${text ? `nullif(${sql}, '')` : sql} AS "${name}"`;
  });
  return `COPY (SELECT row_to_json(line) FROM (SELECT ${members.join(", ")} ${clicks(selection)}) AS line)
            TO STDOUT WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')`;
}

/** In the order of their ids, which is that of their times. */
function clicks({ owner, codes, from, to }: ExportSelection): string {
  const whose = codes === null ? `owner = ${quoteLiteral(owner)}` : codesAre(codes);
  const start = from === null ? "" : `AND click_id >= '${firstId(from)}'`;
  return `FROM click WHERE ${whose} ${start} AND click_id < '${firstId(to)}' ORDER BY click_id`;
}

function codesAre(codes: readonly string[]): string {
  const odd = codes.find((code) => !isCode(code));
  if (odd !== undefined) throw new TypeError("an export names a code that none can be");
  return `code = ANY (${quoteLiteral(arrayLiteral(codes))})`;
}

/** The first id that a click of this millisecond can have (RFC 9562 section 5.7). */
function firstId(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** What spreadsheets take for the beginning of a formula (OWASP, CSV Injection), and the same in full width. */
const FORMULA = "=+@＝＋－＠-";
/** What is passed over before it, or may be: control characters, spaces of all widths, and what has no width. */
const UNSEEN = "\\u0001-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u2064\\u3000\\ufeff";
/**
 * A text cell that no spreadsheet runs: an apostrophe goes before a formula, and before what begins with a tab or a line
 * break; also behind what a spreadsheet of another language parts cells by. Nearly every cell is of none of those
 * characters, which costs a third of looking for each.
 */
function defusedCell(column: string): string {
  const first = `regexp_replace(${column}, '^([\\t\\r\\n]|[${UNSEEN}]*[${FORMULA}])', '''\\&')`;
  const every = `regexp_replace(${first}, '([;,|\\t\\r\\n"][${UNSEEN}]*)([${FORMULA}])', '\\1''\\2', 'g')`;
  return `CASE WHEN ${column} ~ '^[A-Za-z0-9_.][A-Za-z0-9_. /:-]*$' THEN ${column}
               WHEN ${column} = '' THEN NULL ELSE ${every} END`;
}
