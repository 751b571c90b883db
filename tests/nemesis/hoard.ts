import postgres from "postgres";

/** More than any server of a run accepts. */
const MOST = 200;

/** Connections that somebody takes and does nothing with, until the server has no more to give. */
export function createHoard(url: string) {
  const held: postgres.Sql[] = [];
  return {
    async take(): Promise<void> {
      for (let taken = 0; taken < MOST; taken += 1) {
        // Nothing but what is asked here: an error in the driver's own question for types could be caught by nobody.
        const settings = { max: 1, fetch_types: false, onnotice: () => {}, connect_timeout: 1, backoff: () => 1 };
        const sql = postgres(url, settings);
        held.push(sql);
        const refused = await sql`SELECT 1`.then(
          () => false,
          () => true,
        );
        if (refused) return;
      }
    },
    async leave(): Promise<void> {
      await Promise.all(held.splice(0).map((sql) => sql.end({ timeout: 0 })));
    },
  };
}
