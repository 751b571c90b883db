import type { Click } from "@linkfence/contracts";
import { type Database, errorCode, type Sql, type TransactionSql } from "@linkfence/db";
import { dayOf } from "../domain/click.ts";
import type { Stored } from "../queue/writer.ts";
import { toColumns } from "./click-columns.ts";
import type { ClickDays } from "./click-days.ts";
import { toRollUpColumns } from "./roll-up-columns.ts";

export type ClickStore = ReturnType<typeof createClickStore>;

export type ClickStoreOptions = {
  database: Database;
  days: Pick<ClickDays, "open" | "forget">;
  /** Different values of a code, a dimension and a day at the most; further ones count as `other`. */
  valuesMax: number;
};

/** The day of a click had no partition when it was to be stored. */
export const NO_DAY = "CK001";
/** A datetime beyond what can be stored (PostgreSQL manual, appendix A). */
export const DATETIME_OVERFLOW = "22008";

/** Where clicks are kept. Every call rejects with the database's error; see `judgeFailure`. */
export function createClickStore({ database, days, valuesMax }: ClickStoreOptions) {
  return {
    /**
     * Stores clicks and adds them up, in one transaction and one round trip, whatever their number: each
     * parameter but one is an array.
     */
    async insert(clicks: readonly Click[]): Promise<Stored> {
      const states = await days.open(new Set(clicks.map(({ at }) => dayOf(at))));
      const stateOf = ({ at }: Click) => states.get(dayOf(at));
      if (clicks.some((click) => stateOf(click) === "ahead")) throw aheadOfTime();
      const timely = [...states.values()].every((state) => state === "open")
        ? clicks
        : clicks.filter((click) => stateOf(click) === "open");
      const fresh = new Set(timely.map(({ id }) => id));
      const late = new Set(timely.length === clicks.length ? [] : clicks.filter(isNot(fresh)).map(({ id }) => id));
      if (timely.length === 0) return { fresh, late };
      for (const id of await store(timely)) fresh.delete(id);
      return { fresh, late };
    },

    /** Says whether the schema is there, in the version that this code needs. */
    async hasSchema(timeoutMs: number): Promise<boolean> {
      const rows = await database.run(
        (sql) => sql<{ ready: boolean }[]>`
          SELECT to_regclass('click_hour') IS NOT NULL
             AND to_regproc('store_counted_clicks') IS NOT NULL
             AND to_regproc('note_refusals') IS NOT NULL AS ready`,
        timeoutMs,
      );
      return rows[0]?.ready === true;
    },
  };

  /** Returns the ids that had been stored before. */
  async function store(clicks: readonly Click[]): Promise<readonly string[]> {
    try {
      const rows = await database.run((sql) => callStore(sql, clicks, valuesMax));
      return rows[0]?.before ?? [];
    } catch (error) {
      if (errorCode(error) === NO_DAY) days.forget();
      throw error;
    }
  }
}

/**
 * Stores clicks within a transaction of the caller's.
 * @returns the ids that had been stored before
 * @throws the database's error
 */
export async function storeClicks(
  sql: TransactionSql,
  clicks: readonly Click[],
  valuesMax: number,
): Promise<readonly string[]> {
  const rows = await callStore(sql, clicks, valuesMax);
  return rows[0]?.before ?? [];
}

function callStore(sql: Sql | TransactionSql, clicks: readonly Click[], valuesMax: number) {
  const columns = toColumns(clicks);
  const adds = toRollUpColumns(clicks);
  return sql<{ before: string[] }[]>`
    SELECT store_counted_clicks(
             ${columns.ids}, ${columns.versions}, ${columns.times}, ${columns.codes}, ${columns.owners},
             ${columns.referrers}, ${columns.browsers}, ${columns.systems}, ${columns.devices}, ${columns.countries},
             ${columns.bots}, ${columns.prefetches},
             ${adds.dayCodes}, ${adds.days}, ${adds.dayPeople},
             ${adds.hourCodes}, ${adds.hours}, ${adds.hourOwners}, ${adds.hourCounts}, ${adds.hourCells},
             ${adds.hourRecent}, ${adds.hourlyOwners}, ${adds.ownerHours}, ${adds.ownerCounts}, ${valuesMax}) AS before`;
}

const isNot =
  (ids: ReadonlySet<string>) =>
  ({ id }: Click) =>
    !ids.has(id);

/** Said of a day so far ahead that the database makes no partition for it, in the database's own terms. */
function aheadOfTime(): Error {
  return Object.assign(new Error("the day is further ahead than days are made"), { code: DATETIME_OVERFLOW });
}
