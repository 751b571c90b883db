// How an import is read in SQL.
import type { Import } from "@linkfence/contracts";
import type { Sql, TransactionSql } from "@linkfence/db";
import { utcText } from "./link-rows.ts";

type AnySql = Sql | TransactionSql;

/** An import as the database holds it. */
export type ImportRow = Omit<Import, "state"> & {
  /** Header of a CSV file, as its mapping knows the names; null for JSON. */
  columns: string[] | null;
  attempt: number;
  /** SHA-256 of the first `bytes` bytes of the file. */
  digest: Uint8Array;
  lastLine: number;
  errorsKept: number;
};

export function importColumns(sql: AnySql) {
  return sql`
    id, mapping, format, dry_run AS "dryRun", lines, created, already, refused, bytes,
    ignored_columns AS "ignoredColumns", ${utcText(sql, "started_at")} AS "startedAt",
    ${utcText(sql, "finished_at")} AS "finishedAt"`;
}

/** The same with what a continuation needs. */
export function importRowColumns(sql: AnySql) {
  return sql`
    ${importColumns(sql)}, columns, attempt, digest, last_line AS "lastLine", errors_kept AS "errorsKept"`;
}

/**
 * The state that is told. Whether somebody is at work is read from the lock itself (PostgreSQL manual, section 54.12, has
 * how the number of an advisory lock is shown): a process that died wrote nothing down.
 */
export function importState(sql: AnySql) {
  return sql`
    CASE WHEN finished_at IS NOT NULL THEN 'DONE'
         WHEN EXISTS (SELECT FROM pg_locks l
                       WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                         AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                         AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('import ' || id, 0))
         THEN 'RUNNING' ELSE 'INTERRUPTED' END AS state`;
}

export function presentRow(row: ImportRow, state: Import["state"]): Import {
  const { columns: _c, attempt: _a, digest: _d, lastLine: _l, errorsKept: _e, ...told } = row;
  return { ...told, state };
}
