import type { Click } from "@linkfence/contracts";
import { arrayLiteral, type Database } from "@linkfence/db";

export type ClickStore = ReturnType<typeof createClickStore>;

/** Where clicks are kept. Every call rejects with the database's error; see `judgeFailure`. */
export function createClickStore(database: Database) {
  return {
    /**
     * Stores clicks in one transaction and one round trip, whatever their number: six parameters, each an array.
     * @returns the ids that were new; the others had been stored before
     */
    async insert(clicks: readonly Click[]): Promise<Set<string>> {
      const ids = arrayLiteral(clicks.map(({ id }) => id));
      const codes = arrayLiteral(clicks.map(({ code }) => code));
      const versions = arrayLiteral(clicks.map(({ version }) => version));
      const times = arrayLiteral(clicks.map(({ at }) => at));
      const hosts = arrayLiteral(clicks.map(({ referrerHost }) => referrerHost));
      const agents = arrayLiteral(clicks.map(({ userAgent }) => userAgent));
      const rows = await database.run(
        (sql) => sql<{ click_id: string }[]>`
          SELECT click_id FROM insert_clicks(${ids}, ${codes}, ${versions}, ${times}, ${hosts}, ${agents}) AS click_id`,
      );
      return new Set(rows.map(({ click_id }) => click_id));
    },

    /** Says whether the schema is there, in the version that this code needs. */
    async hasSchema(timeoutMs: number): Promise<boolean> {
      const rows = await database.run(
        (sql) => sql<{ ready: boolean }[]>`
          SELECT to_regclass('click') IS NOT NULL
             AND to_regprocedure('insert_clicks(uuid[],text[],bigint[],bigint[],text[],text[])') IS NOT NULL AS ready`,
        timeoutMs,
      );
      return rows[0]?.ready === true;
    },
  };
}
