// The first line of a CSV file says what its columns are. Of our own files every column must be known; exports of other
// products have columns that nothing here corresponds to, which are named in the answer.
import { type FieldFault, type ImportMapping, Problem } from "@linkfence/contracts";
import { MAPPINGS } from "./import-mapping.ts";

/** Far more columns than any export has. */
const MAX_COLUMNS = 200;
/** A name comes from the caller: as much of it as a person needs is repeated. */
const NAME_MAX = 100;

/** The names of the columns as the mapping knows them, in order, and those that it does not carry over, as written. */
export type Columns = { names: readonly string[]; ignored: readonly string[] };

/** Letter case, blanks, hyphens and underscores make no difference between names. */
export function normalizeColumn(name: string): string {
  return name.toLowerCase().replace(/[\s_-]+/g, "");
}

/**
 * Reads the names of the columns.
 * @param header the fields of the first record
 * @throws Problem 400 that names the column
 */
export function readColumns(mapping: ImportMapping, header: readonly string[]): Columns {
  if (header.length > MAX_COLUMNS) throw refuse("columns", `must have at most ${MAX_COLUMNS} columns`);
  const { carries, target } = MAPPINGS[mapping];
  const names = header.map(normalizeColumn);
  const ignored: string[] = [];
  for (const [i, name] of names.entries()) {
    const shown = shownName(header[i] ?? "", i);
    if (carries.includes(name)) {
      if (names.indexOf(name) < i) throw refuse("duplicate-column", `must name the column ${shown} once`);
    } else if (mapping === "linkfence") {
      const hint = name.includes(";") || name.includes("\t") ? "; part columns by commas" : "";
      throw refuse("unknown-column", `has the column ${shown}, which is none of ${carries.join(", ")}${hint}`);
    } else ignored.push(shown);
  }
  if (!target.some((name) => names.includes(name)))
    throw refuse("missing-column", `must have a column ${target.join(" or ")}: the first line names the columns`);
  return { names, ignored };
}

function shownName(name: string, index: number): string {
  const trimmed = name.trim();
  return trimmed === "" ? `number ${index + 1} (without a name)` : trimmed.slice(0, NAME_MAX);
}

function refuse(rule: string, detail: string): Problem {
  const fault: FieldFault = { field: "header", rule, detail };
  return new Problem("invalid-request", `the header ${detail}`, [fault]);
}
