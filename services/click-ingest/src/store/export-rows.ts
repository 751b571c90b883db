// How a job is read from its row.
import type { ExportJob } from "@linkfence/contracts";
import type { Sql } from "@linkfence/db";

export type ExportKeeping = {
  /** How long a job and its file are kept once it has ended. */
  keptSeconds: number;
};

/** Times are in ms since 1970, or RFC 3339 in UTC with microseconds. */
export type JobRow = Omit<ExportJob, "error" | "file"> & {
  token: number;
  place: string | null;
  finishedMs: number | null;
  fault: NonNullable<ExportJob["error"]>["code"] | null;
  faultDetail: string | null;
  faultAt: string | null;
};

/** The columns of a job. */
export function jobColumns(sql: Sql, { keptSeconds }: ExportKeeping) {
  const text = (column: ReturnType<typeof sql>) =>
    sql`to_char((${column}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
  return sql`
    id, number, owner, ordered_by AS "orderedBy", codes, from_ms AS "from", to_ms AS "to", format, gzip, state, attempts,
    rows_done AS rows, rows_estimated AS "rowsEstimated", bytes, token, fault, fault_detail AS "faultDetail",
    (SELECT s.id::text FROM export_store s) || '/' || file AS place, ${text(sql`fault_at`)} AS "faultAt",
    ${text(sql`created_at`)} AS "createdAt", ${text(sql`started_at`)} AS "startedAt",
    ${text(sql`finished_at`)} AS "finishedAt", (extract(epoch FROM finished_at) * 1000)::bigint AS "finishedMs",
    ${text(sql`finished_at + ${keptSeconds}::float8 * interval '1 second'`)} AS "expiresAt"`;
}

/** A job as it is told. Only one that has succeeded has a file. */
export function describeJob(row: JobRow): ExportJob {
  const { token, place, finishedMs, fault, faultDetail, faultAt, ...rest } = row;
  const whole = row.state === "SUCCEEDED" && place !== null;
  return {
    ...rest,
    error: fault === null ? null : { code: fault, detail: faultDetail ?? "", at: faultAt ?? rest.createdAt },
    file: whole ? { place, bytes: rest.bytes, etag: `"${rest.id}-${token}"`, at: finishedMs ?? 0 } : null,
  };
}
