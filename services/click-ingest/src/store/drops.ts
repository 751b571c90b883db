import type { DropReport } from "@linkfence/contracts";
import { arrayLiteral, type Database } from "@linkfence/db";

export type DropStore = ReturnType<typeof createDropStore>;

/** Where it is kept how many clicks were dropped on their way. Rejects with the database's error. */
export function createDropStore(database: Database) {
  return {
    /** Takes a report. One that comes twice or late counts once. */
    async note({ incarnation, since, totals }: DropReport): Promise<void> {
      const reasons = arrayLiteral(totals.map(({ reason }) => reason));
      const counts = arrayLiteral(totals.map(({ total }) => total));
      await database.run((sql) => sql`SELECT note_drops(${incarnation}, ${since}::bigint, ${reasons}, ${counts})`);
    },
  };
}
