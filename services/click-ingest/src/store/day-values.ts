import type { Database } from "@linkfence/db";

/** A day has no more rows by the hour than five a person: below this there is nothing to save. */
const PEOPLE_MIN = 200;
/** Each reads some thousand rows at the most and writes some hundred: a second in all. */
const DAYS_AT_ONCE = 50;
/** Clicks that come late come within days, from a spool that was cut off. Older days are looked at after a start alone. */
const LATE_DAYS = 8;
const DAY_MS = 86_400_000;

/**
 * Adds up the values of busy days that are over.
 * @param now ms since 1970
 */
export function createDayValues(database: Database, now: () => number) {
  let first = "-infinity";
  let added = 0;

  return {
    /** Does all there is to do. Rejects with the database's error; what was done by then is kept. */
    async maintain(): Promise<void> {
      const next = new Date(now() - LATE_DAYS * DAY_MS).toISOString().slice(0, 10);
      for (let count = DAYS_AT_ONCE; count === DAYS_AT_ONCE; ) {
        const [row] = await database.run(
          (sql) => sql<{ count: number }[]>`
            SELECT add_up_click_days(${first}::text::date, ${PEOPLE_MIN}::int, ${DAYS_AT_ONCE}::int) AS count`,
        );
        count = row?.count ?? 0;
        added += count;
      }
      first = next;
    },
    stats: () => ({ added }),
  };
}
