// One batch of lines, one transaction: the links, the errors, and how far the import has come. Nothing is created that is
// not written down as done, and nothing is written down that was not done. The row of the import is locked first, so that
// a try whose answer was lost has ended by then, one way or the other, and is found out.
import { IMPORT_ERRORS_KEPT, type ImportError, Problem } from "@linkfence/contracts";
import type { Database, TransactionSql } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import type { NewCode } from "../domain/code.ts";
import { type JudgedLine, type LineDraft, lineError } from "../domain/import-line.ts";
import { countCreated, createBatchInserter } from "./batch-insert.ts";
import { type ImportRow, importRowColumns } from "./import-rows.ts";
import type { Author } from "./link-rows.ts";
import { aliasTaken } from "./refusals.ts";

/** Up to where a file was read: bytes, their SHA-256, and the last line. */
export type FilePosition = { bytes: number; digest: Uint8Array; line: number };

export type ImportBatch = {
  /** The import as it was behind the last batch. */
  row: ImportRow;
  author: Author;
  lines: readonly JudgedLine[];
  /** Up to where the file is decided with this batch. */
  to: FilePosition;
  /** Names of JSON members that are not carried over, so far. */
  ignored: readonly string[];
  /** Whether the file ends here. */
  done: boolean;
};

/** What became of one draft. */
type LineOutcome = "created" | "already" | Problem;

export type ImportBatchOptions = {
  db: Database;
  newCode: NewCode;
  counts: Pick<Counts, "created" | "collisions" | "imports">;
  /** Deadline of a batch in ms. */
  timeoutMs: number;
};

export type ImportBatches = ReturnType<typeof createImportBatches>;

/** Creates the store of batches. */
export function createImportBatches({ db, newCode, counts, timeoutMs }: ImportBatchOptions) {
  const insertBatch = createBatchInserter({ newCode, counts });

  /**
   * Carries a batch out, once, however often it is called with the same one.
   * @returns the import as it is now
   * @throws Problem `import-in-use` when a later upload of the import has begun; else the database's error
   */
  async function commit(batch: ImportBatch): Promise<ImportRow> {
    let count = () => {};
    const row = await db.transaction(async (sql) => {
      const kept = await lockRow(sql, batch);
      if (kept) return kept;
      const drafts = batch.lines.flatMap((line) => ("draft" in line ? [line.draft] : []));
      let outcomes: LineOutcome[] = [];
      if (batch.row.dryRun) outcomes = await tryDrafts(sql, batch, drafts);
      else {
        const { owner, keyId } = batch.author;
        const inserted = await insertBatch(sql, drafts, { owner, keyId, importId: batch.row.id });
        outcomes = await settleTaken(
          sql,
          batch,
          drafts,
          inserted.map((it) => (it instanceof Problem ? it : "created")),
        );
        count = () => countCreated(counts, inserted);
      }
      const summary = summarize(batch.lines, outcomes);
      count = both(count, () => countLines(counts, summary, batch.row));
      return writeProgress(sql, batch, summary);
    }, timeoutMs);
    count();
    return row;
  }

  /** Removes what a trial run kept of its aliases, `limit` of them; says how many. */
  async function forgetAliases(id: string, limit: number): Promise<number> {
    const rows = await db.run(
      (sql) => sql`
        DELETE FROM import_alias WHERE import_id = ${id} AND alias IN
          (SELECT a.alias FROM import_alias a WHERE a.import_id = ${id} LIMIT ${limit}) RETURNING 1`,
      timeoutMs,
    );
    return rows.length;
  }

  return { commit, forgetAliases };
}

function both(first: () => void, second: () => void) {
  return () => {
    first();
    second();
  };
}

/** Undefined where the batch is still to be carried out; the row where it was, and only its answer was lost. */
async function lockRow(sql: TransactionSql, { row, to, done }: ImportBatch): Promise<ImportRow | undefined> {
  const [now] = await sql<ImportRow[]>`SELECT ${importRowColumns(sql)} FROM import WHERE id = ${row.id} FOR UPDATE`;
  if (now?.attempt !== row.attempt) throw importInUse();
  if (now.bytes === to.bytes && (!done || now.finishedAt !== null)) return now;
  if (now.bytes !== row.bytes) throw new Error("an import stands where none of its batches ended");
  return undefined;
}

/** An alias that is taken counts as done where an earlier line of this import created it with the same target. */
async function settleTaken(
  sql: TransactionSql,
  { row, author }: ImportBatch,
  drafts: readonly LineDraft[],
  outcomes: readonly LineOutcome[],
): Promise<LineOutcome[]> {
  const taken = drafts.filter((_draft, i) => isTaken(outcomes[i])).map(({ alias }) => alias);
  if (taken.length === 0) return [...outcomes];
  const own = await sql<{ code: string; target: string }[]>`
    SELECT code, target FROM link
     WHERE code = ANY (${taken}::text[]) AND owner = ${author.owner} AND import_id = ${row.id}`;
  const targets = new Map(own.map(({ code, target }) => [code, target]));
  return drafts.map(({ alias, target }, i) => {
    const outcome = outcomes[i] ?? "created";
    return isTaken(outcome) && targets.get(alias ?? "") === target ? "already" : outcome;
  });
}

function isTaken(outcome: LineOutcome | undefined): boolean {
  return outcome instanceof Problem && outcome.code === "alias-taken";
}

/** What creating would have come to. Aliases of earlier lines are kept aside, so that a later line finds them taken. */
async function tryDrafts(
  sql: TransactionSql,
  { row }: ImportBatch,
  drafts: readonly LineDraft[],
): Promise<LineOutcome[]> {
  const wanted = drafts.flatMap(({ alias, target }) => (alias === null ? [] : [{ alias, target }]));
  if (wanted.length === 0) return drafts.map(() => "created");
  const aliases = wanted.map(({ alias }) => alias);
  const taken = await sql<{ code: string }[]>`SELECT code FROM link WHERE code = ANY (${aliases}::text[])`;
  const codes = new Set(taken.map(({ code }) => code));
  const free = JSON.stringify(wanted.filter(({ alias }) => !codes.has(alias)));
  const claimed = await sql<{ alias: string }[]>`
    INSERT INTO import_alias (import_id, alias, target)
    SELECT ${row.id}::uuid, alias, target FROM json_to_recordset(${free}::text::json) AS item (alias text, target text)
    ON CONFLICT DO NOTHING RETURNING alias`;
  const unused = new Set(claimed.map(({ alias }) => alias));
  const earlier = await sql<{ alias: string; target: string }[]>`
    SELECT alias, target FROM import_alias WHERE import_id = ${row.id} AND alias = ANY (${aliases}::text[])`;
  const targets = new Map(earlier.map(({ alias, target }) => [alias, target]));
  return drafts.map(({ alias, target }) => {
    if (alias === null || unused.delete(alias)) return "created";
    return targets.get(alias) === target ? "already" : aliasTaken(alias);
  });
}

type Summary = { created: number; already: number; errors: ImportError[] };

function summarize(lines: readonly JudgedLine[], outcomes: readonly LineOutcome[]): Summary {
  const each = outcomes.values();
  const summary: Summary = { created: 0, already: 0, errors: [] };
  for (const line of lines) {
    const outcome = "error" in line ? line.error : each.next().value;
    if (outcome === undefined) throw new Error("the store returned fewer outcomes than drafts");
    if (outcome === "created" || outcome === "already") summary[outcome] += 1;
    else summary.errors.push(outcome instanceof Problem ? lineError(line.line, outcome) : outcome);
  }
  return summary;
}

function countLines({ imports }: Pick<Counts, "imports">, { created, already, errors }: Summary, row: ImportRow): void {
  imports.lines.created += created;
  imports.lines.already += already;
  imports.lines.refused += errors.length;
  imports.refusals["long-line"] += errors.filter(({ rule }) => rule === "too-long").length;
  imports.errorsDropped += errors.length - keptOf(errors, row).length;
}

/** The errors that there is room for. */
function keptOf(errors: readonly ImportError[], { errorsKept }: ImportRow): readonly ImportError[] {
  return errors.slice(0, IMPORT_ERRORS_KEPT - errorsKept);
}

/** Both in one statement: the errors there is room for, and the row. */
async function writeProgress(sql: TransactionSql, batch: ImportBatch, summary: Summary): Promise<ImportRow> {
  const { row, to, ignored, done } = batch;
  const { created, already, errors } = summary;
  const kept = keptOf(errors, row);
  const [now] = await sql<ImportRow[]>`
    WITH kept AS (
      INSERT INTO import_error (import_id, line, field, rule, code, detail)
      SELECT ${row.id}::uuid, line, field, rule, code, detail FROM json_to_recordset(${JSON.stringify(kept)}::text::json)
        AS item (line bigint, field text, rule text, code text, detail text)
    )
    UPDATE import
       SET bytes = ${to.bytes}, digest = ${to.digest}, last_line = ${to.line},
           lines = lines + ${created + already + errors.length}, created = created + ${created},
           already = already + ${already}, refused = refused + ${errors.length},
           errors_kept = errors_kept + ${kept.length}, ignored_columns = ${[...ignored]}::text[],
           updated_at = clock_timestamp(), finished_at = CASE WHEN ${done} THEN clock_timestamp() END
     WHERE id = ${row.id} RETURNING ${importRowColumns(sql)}`;
  if (!now) throw new Error("an import has gone away");
  return now;
}

export function importInUse(): Problem {
  return new Problem("import-in-use", "this import is being uploaded by another request: wait for its end");
}
