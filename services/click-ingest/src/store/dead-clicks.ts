import { arrayLiteral, type Database } from "@linkfence/db";
import type { DeadLetter } from "../domain/dead-letter.ts";

export type DeadClicksOptions = {
  /** Dead letters at the most, and bytes of their payloads. */
  rowsMax: number;
  bytesMax: number;
  /** Deadline of keeping those of one request, in ms. */
  timeoutMs: number;
};
export type DeadClicks = ReturnType<typeof createDeadClicks>;

/** Where dead letters are kept. Every call rejects with the database's error. */
export function createDeadClicks(database: Database, { rowsMax, bytesMax, timeoutMs }: DeadClicksOptions) {
  /** As it was when the database was last asked. */
  let size = { rows: 0, bytes: 0 };

  return {
    /**
     * Keeps dead letters, in one transaction. One with the payload of another adds to that one's attempts.
     * @param sender who sent them
     * @returns one truth a letter: false where there was no room for it
     */
    async bury(sender: string, letters: readonly DeadLetter[]): Promise<readonly boolean[]> {
      const column = (name: keyof DeadLetter) => arrayLiteral(letters.map((letter) => letter[name]));
      const rows = await database.run(
        (sql) => sql<{ kept: boolean[]; row_count: number; byte_count: number }[]>`
          SELECT kept, row_count, byte_count
            FROM bury_clicks(${column("clickId")}, ${column("reason")}, ${column("sqlstate")}, ${column("detail")},
                             ${column("payload")}, ${sender}, ${rowsMax}, ${bytesMax})`,
        timeoutMs,
      );
      const [answer] = rows;
      if (answer?.kept.length !== letters.length) throw new Error("the database lost account of dead letters");
      size = { rows: answer.row_count, bytes: answer.byte_count };
      return answer.kept;
    },

    /**
     * Finds those that the database refused before, by their payloads, and adds to their attempts.
     * @returns one truth a payload: whether it is a dead letter
     */
    async buryAgain(sender: string, payloads: readonly string[]): Promise<readonly boolean[]> {
      const rows = await database.run(
        (sql) => sql<{ again: boolean[] }[]>`SELECT bury_clicks_again(${arrayLiteral(payloads)}, ${sender}) AS again`,
        timeoutMs,
      );
      return rows[0]?.again ?? [];
    },

    /** Told how much is kept by whoever keeps some in a transaction of another kind. */
    noteSize(now: { rows: number; bytes: number }): void {
      size = now;
    },

    /** Counts anew what is kept: an operator may have settled some of it. */
    async measure(): Promise<void> {
      const rows = await database.run(
        (sql) => sql<{ rows: number; bytes: number }[]>`
          SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM dead_click`,
      );
      if (rows[0]) size = rows[0];
    },
    stats: () => ({ ...size, rowsMax, bytesMax }),
  };
}
