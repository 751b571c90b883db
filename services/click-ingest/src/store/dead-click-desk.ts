// What an operator does with dead letters: looks at them, has them stored after all, or throws them away.
import { arrayLiteral, classifyError, type Database, errorCode } from "@linkfence/db";
import { dayOf } from "../domain/click.ts";
import { judgeClick } from "../judge-click.ts";
import { createClickDays } from "./click-days.ts";
import { storeClicks } from "./clicks.ts";

export type DeadClick = {
  id: number;
  clickId: string | null;
  reason: string;
  sqlstate: string | null;
  attempts: number;
  firstAt: string;
  lastAt: string;
  sender: string;
  detail: string;
  payload: string;
};

/**
 * What became of a dead letter that was to be stored: it is now, or was before, and is a letter no more; or it stays one,
 * as it is still wrong, its day is no longer, or the database refused it again; or there is none of that number.
 */
export type ReplayOutcome = "stored" | "duplicate" | "wrong" | "late" | "refused" | "unknown";

export type DeadClickDeskOptions = {
  database: Database;
  /** As the ingest has them. */
  retentionDays: number;
  valuesMax: number;
  /** Deadline of making the day of a click, in ms. */
  timeoutMs: number;
  /** ms since 1970 */
  now?: () => number;
};

/** Creates the desk. Every call rejects with the database's error where that is nobody's fault. */
export function createDeadClickDesk(options: DeadClickDeskOptions) {
  const { database, valuesMax, now = Date.now } = options;
  const days = createClickDays(database, options);

  async function show(id: number): Promise<DeadClick | undefined> {
    const [row] = await database.read(
      (sql) => sql<DeadClick[]>`SELECT ${columns(sql)} FROM dead_click WHERE id = ${id}`,
    );
    return row;
  }

  /** Stores the click and removes its letter, in one transaction: one that is cut off has done neither, or both. */
  async function settle(id: number, click: Parameters<typeof storeClicks>[1][number]): Promise<ReplayOutcome> {
    return database.transaction(async (sql) => {
      const gone = await sql`DELETE FROM dead_click WHERE id = ${id} RETURNING id`;
      if (gone.length === 0) return "unknown";
      const before = await storeClicks(sql, [click], valuesMax);
      return before.length === 0 ? "stored" : "duplicate";
    });
  }

  return {
    show,
    /** Lists the oldest letters after one, without what they hold. */
    async list({ after, limit }: { after: number; limit: number }): Promise<DeadClick[]> {
      return database.read(
        (sql) => sql<DeadClick[]>`
          SELECT ${columns(sql)} FROM dead_click WHERE id > ${after} ORDER BY id LIMIT ${limit}`,
      );
    },

    /** Has one stored after all. Doing so twice, or beside another who does, stores and counts it once. */
    async replay(id: number): Promise<ReplayOutcome> {
      const letter = await show(id);
      if (!letter) return "unknown";
      const judged = judgeClick(JSON.parse(letter.payload), now());
      if ("letter" in judged) return "wrong";
      const day = dayOf(judged.click.at);
      if ((await days.open(new Set([day]))).get(day) !== "open") return "late";
      try {
        return await settle(id, judged.click);
      } catch (error) {
        if (classifyError(error) !== "fatal") throw error;
        const detail = error instanceof Error ? error.message : "";
        await database.run(
          (sql) => sql`
            UPDATE dead_click SET attempts = attempts + 1, last_at = now(), sqlstate = ${errorCode(error)}, detail = ${detail}
             WHERE id = ${id}`,
        );
        return "refused";
      }
    },

    /** Throws letters away. Returns the numbers of those that were there. */
    async discard(ids: readonly number[]): Promise<number[]> {
      const rows = await database.run(
        (sql) => sql<{ id: number }[]>`
          DELETE FROM dead_click WHERE id = ANY (${arrayLiteral(ids)}::bigint[]) RETURNING id`,
      );
      return rows.map(({ id }) => id);
    },
  };
}

type Fragments = Parameters<Parameters<Database["read"]>[0]>[0];

function columns(sql: Fragments) {
  return sql`
    id, click_id AS "clickId", reason, sqlstate, attempts, to_json(first_at) #>> '{}' AS "firstAt",
    to_json(last_at) #>> '{}' AS "lastAt", sender, detail, payload`;
}
