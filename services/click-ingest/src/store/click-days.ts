// The days of clicks, each a partition of its own. A click can be stored once its day has one; partitions are made some
// days ahead, and for a day within the retention when its first click comes. What the database said of a day is
// remembered until it says something else (CK001), so that storing costs no question more.
import { arrayLiteral, type Database, errorCode } from "@linkfence/db";
import { dayOf } from "../domain/click.ts";

export type ClickDaysOptions = {
  /** UTC days before today that are kept. */
  retentionDays: number;
  /** Deadline of making partitions, in ms. Dropping one has that of the database's calls. */
  timeoutMs: number;
  /** ms since 1970 */
  now?: () => number;
};
export type ClickDays = ReturnType<typeof createClickDays>;

/** A week and a day: a service whose maker of partitions is broken stores for another week. */
const DAYS_AHEAD = 8;
/** A lock was not to be had in time (PostgreSQL manual, appendix A). */
const LOCK_TIMEOUT = "55P03";
/** 9999-12-31, after which years are written otherwise. No such day is ever made. */
const LAST_DAY = 2_932_896;

/** What a day is to a click of it. */
export type DayState = "open" | "late" | "ahead";

/** Creates the keeper of days. Every call rejects with the database's error. */
export function createClickDays(database: Database, { retentionDays, timeoutMs, now = Date.now }: ClickDaysOptions) {
  const open = new Set<number>();
  const counts = { dropped: 0 };
  let heldUp = false;

  /** Makes the partitions of these days and of those ahead, as far as they may have one. */
  async function make(days: readonly number[]): Promise<void> {
    const dates = arrayLiteral(days.filter((day) => day <= LAST_DAY).map(dateOf));
    const endsAt = performance.now() + timeoutMs;
    for (;;) {
      try {
        const rows = await database.run(
          (sql) => sql<{ day: number }[]>`
            SELECT day - date '1970-01-01' AS day
              FROM make_click_days(${dates}, ${DAYS_AHEAD}, ${retentionDays}) AS day`,
          Math.max(1, endsAt - performance.now()),
        );
        for (const { day } of rows) open.add(day);
        return;
      } catch (error) {
        // Another one makes them, which takes some tenths of a second. Each attempt waits for it at the server: no busy loop.
        if (errorCode(error) !== LOCK_TIMEOUT || performance.now() >= endsAt) throw error;
      }
    }
  }

  return {
    /** Says of each of these days (since 1970) whether its clicks can be stored; makes the partitions that are missing. */
    async open(days: ReadonlySet<number>): Promise<Map<number, DayState>> {
      const unknown = [...days].filter((day) => !open.has(day));
      if (unknown.length > 0) await make(unknown);
      const today = dayOf(now());
      return new Map([...days].map((day) => [day, open.has(day) ? "open" : day > today ? "ahead" : "late"]));
    },

    /** Forgets what it knows of days: one of them has lost its partition. */
    forget(): void {
      open.clear();
    },

    /** Makes the partitions of the coming days, and drops all whose clicks are no longer kept, one after the other. */
    async maintain(): Promise<void> {
      await make([]);
      for (;;) {
        const rows = await database
          .run(
            (sql) => sql<{ day: number | null }[]>`SELECT drop_click_day(${retentionDays}) - date '1970-01-01' AS day`,
          )
          .catch((error: unknown) => {
            heldUp = errorCode(error) === LOCK_TIMEOUT;
            throw error;
          });
        heldUp = false;
        const day = rows[0]?.day ?? null;
        if (day === null) return;
        open.delete(day);
        counts.dropped += 1;
      }
    },
    /** Whether somebody who reads the clicks kept the last one of them from being dropped. */
    isHeldUp: () => heldUp,
    stats: () => ({ ...counts }),
  };
}

/** `YYYY-MM-DD` of a number of days since 1970. */
function dateOf(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}
