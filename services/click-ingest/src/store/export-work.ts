// Jobs as those see them who do them. A worker holds a job by its token; each call says whether it still does.
import type { ExportFault, ExportFormat, ExportState } from "@linkfence/contracts";
import { arrayLiteral, type Database } from "@linkfence/db";
import { EXPORT_ATTEMPTS_MAX } from "../domain/export-fault.ts";
import type { ExportSelection } from "./export-query.ts";

/** A job that this worker holds, until another token is given out for it. */
export type HeldJob = ExportSelection & {
  id: string;
  token: number;
  attempts: number;
  format: ExportFormat;
  gzip: boolean;
  /** Name of the file that is to be written, which nobody else has. */
  file: string;
};
export type Progress = { rows: number; bytes: number; estimated: number | null };
export type ExportWork = ReturnType<typeof createExportWork>;

/** Jobs that are removed in one transaction. */
const REMOVED_AT_ONCE = 1000;

/** Creates what workers ask. Every call rejects with the database's error. */
export function createExportWork(
  database: Database,
  { leaseMs, keptSeconds }: { leaseMs: number; keptSeconds: number },
) {
  /** Whether the job was still held, as the function says. */
  async function held(call: Parameters<typeof database.run<{ held: boolean }[]>>[0]): Promise<boolean> {
    const [row] = await database.run(call);
    return row?.held === true;
  }

  return {
    leaseMs,

    /** Takes the next job, for a file of this name; undefined where none waits whose owner has none running. */
    async claim(worker: string, file: string): Promise<HeldJob | undefined> {
      const [job] = await database.run(
        (sql) => sql<HeldJob[]>`
          SELECT id, token, attempts, owner, codes, from_ms AS "from", to_ms AS "to", format, gzip, file
            FROM claim_export(${worker}, ${file}, ${leaseMs}::int, ${EXPORT_ATTEMPTS_MAX}::int)`,
      );
      return job;
    },

    /** Tells how far it has come, and holds the job for another lease. */
    extend: ({ id, token, file }: HeldJob, { rows, bytes, estimated }: Progress) =>
      held(
        (sql) => sql`
          SELECT extend_export(${id}::uuid, ${token}, ${file}, ${leaseMs}::int, ${rows}::bigint, ${bytes}::bigint,
                               ${estimated}::bigint) AS held`,
      ),

    /** The file is whole. */
    finish: ({ id, token, file }: HeldJob, { rows, bytes }: Omit<Progress, "estimated">) =>
      held(
        (sql) => sql`SELECT finish_export(${id}::uuid, ${token}, ${file}, ${rows}::bigint, ${bytes}::bigint) AS held`,
      ),

    /** The attempt has failed; another one may begin after so many ms, or never where that is null. */
    fail: ({ id, token, file }: HeldJob, fault: ExportFault, detail: string, againMs: number | null) =>
      held(
        (sql) => sql`
          SELECT fail_export(${id}::uuid, ${token}, ${file}, ${fault}, ${detail}, ${againMs}::int,
                             ${EXPORT_ATTEMPTS_MAX}::int) AS held`,
      ),

    /** Gives it back unfinished; the attempt does not count. */
    release: ({ id, token, file }: HeldJob) =>
      held((sql) => sql`SELECT release_export(${id}::uuid, ${token}, ${file}) AS held`),

    /** Removes all jobs that are no longer kept. Returns how many. */
    async removeOld(): Promise<number> {
      let removed = 0;
      for (;;) {
        const [row] = await database.run(
          (sql) =>
            sql<{ count: number }[]>`SELECT remove_exports(${keptSeconds}::bigint, ${REMOVED_AT_ONCE}::int) AS count`,
        );
        removed += row?.count ?? 0;
        if ((row?.count ?? 0) < REMOVED_AT_ONCE) return removed;
      }
    },

    /** Those of the names that are a job's: of one that is running, or has succeeded. */
    async named(names: readonly string[]): Promise<Set<string>> {
      const rows = await database.read(
        (sql) => sql<{ file: string }[]>`SELECT file FROM export_job WHERE file = ANY (${arrayLiteral(names)}::text[])`,
      );
      return new Set(rows.map(({ file }) => file));
    },

    /** How many jobs are in each state, and the bytes of their files. */
    async measure(): Promise<{ jobs: Partial<Record<ExportState, number>>; bytes: number }> {
      const rows = await database.read(
        (sql) => sql<{ state: ExportState; count: number; bytes: number }[]>`
          SELECT state, count(*) AS count, coalesce(sum(bytes) FILTER (WHERE file IS NOT NULL), 0)::bigint AS bytes
            FROM export_job GROUP BY state`,
      );
      return {
        jobs: Object.fromEntries(rows.map(({ state, count }) => [state, count])),
        bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
      };
    },

    /** Bytes of all files but that of one job; of those that are being written what was told of them last. */
    async bytesBeside(id: string): Promise<number> {
      const [row] = await database.read(
        (sql) => sql<{ bytes: number }[]>`
          SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM export_job WHERE file IS NOT NULL AND id <> ${id}::uuid`,
      );
      return row?.bytes ?? 0;
    },

    /** Name of the directory of this database's files. */
    async directory(): Promise<string> {
      const [row] = await database.read((sql) => sql<{ id: string }[]>`SELECT id FROM export_store`);
      if (!row) throw new Error("export_store is empty");
      return row.id;
    },
  };
}
