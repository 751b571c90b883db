// Orders of exports, as their owners see them. Every statement names the owner: another one's job is not there.
import { type ExportCancellation, type ExportJob, type ExportOrder, isExportId } from "@linkfence/contracts";
import { arrayLiteral, type Database } from "@linkfence/db";
import { describeJob, type ExportKeeping, type JobRow, jobColumns } from "./export-rows.ts";

export type ExportBounds = {
  /** Waiting jobs of one owner at the most. */
  ownerMax: number;
  /** Waiting jobs at the most. */
  totalMax: number;
};
export type ExportStore = ReturnType<typeof createExportStore>;

/** `replayed`: the owner ordered the same under the same key before. `reused`: the key, for something else. */
export type OrderOutcome = "created" | "replayed" | "reused" | "owner-full" | "full";
export type Ordered =
  | { outcome: "created" | "replayed"; job: ExportJob }
  | { outcome: Exclude<OrderOutcome, "created" | "replayed"> };

/** Creates the store. Every call rejects with the database's error. */
export function createExportStore(database: Database, bounds: ExportBounds, keeping: ExportKeeping) {
  async function find(owner: string, id: string): Promise<ExportJob | undefined> {
    if (!isExportId(id)) return undefined;
    const [row] = await database.read(
      (sql) => sql<JobRow[]>`
        SELECT ${jobColumns(sql, keeping)} FROM export_job WHERE id = ${id}::uuid AND owner = ${owner}`,
    );
    return row && describeJob(row);
  }

  return {
    /** Takes an order, unless as many wait as may. */
    async order(order: ExportOrder): Promise<Ordered> {
      const { owner, orderedBy, idempotencyKey, digest, from, to, format, gzip } = order;
      const codes = order.codes && arrayLiteral([...new Set(order.codes)].sort());
      const [row] = await database.run(
        (sql) => sql<{ outcome: OrderOutcome; job_id: string | null }[]>`
          SELECT outcome, job_id FROM order_export(
            ${owner}, ${orderedBy}, ${idempotencyKey}, ${digest}, ${codes}, ${from}::bigint, ${to}::bigint, ${format}, ${gzip},
            ${bounds.ownerMax}::int, ${bounds.totalMax}::int)`,
      );
      if (!row) throw new Error("order_export gave no answer");
      const { outcome, job_id } = row;
      if (outcome !== "created" && outcome !== "replayed") return { outcome };
      const job = await find(owner, job_id ?? "");
      if (!job) throw new Error("the export was removed while it was ordered");
      return { outcome, job };
    },

    /** A job of this owner. */
    find,

    /** Jobs of an owner, newest first, `limit` at the most; of those ordered before the one with that number, if any. */
    async list(owner: string, { limit, before }: { limit: number; before: number | null }): Promise<ExportJob[]> {
      const rows = await database.read(
        (sql) => sql<JobRow[]>`
          SELECT ${jobColumns(sql, keeping)} FROM export_job
           WHERE owner = ${owner} AND (${before}::bigint IS NULL OR number < ${before}::bigint)
           ORDER BY number DESC LIMIT ${limit}::int`,
      );
      return rows.map(describeJob);
    },

    /** Cancels a job of this owner that has not ended. */
    async cancel(owner: string, id: string): Promise<ExportCancellation | undefined> {
      if (!isExportId(id)) return undefined;
      const [row] = await database.run(
        (sql) => sql<{ outcome: ExportCancellation["outcome"] | null }[]>`
          SELECT cancel_export(${id}::uuid, ${owner}) AS outcome`,
      );
      const job = await find(owner, id);
      return row?.outcome && job ? { outcome: row.outcome, job } : undefined;
    },
  };
}
