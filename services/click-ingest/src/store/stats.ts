import type { Database } from "@linkfence/db";

export type StatsStore = ReturnType<typeof createStatsStore>;

/** Reads what the clicks add up to. */
export function createStatsStore(database: Database) {
  return {
    /** Counts the stored clicks of a code; a code that has none, 0. Rejects with the database's error. */
    async countClicks(code: string): Promise<number> {
      const rows = await database.run(
        (sql) => sql<{ total: number }[]>`SELECT count(*) AS total FROM click WHERE code = ${code}`,
      );
      return rows[0]?.total ?? 0;
    },
  };
}
