import { arrayLiteral, type Database } from "@linkfence/db";
import type { RefusalReason } from "../domain/click.ts";

export type Refusal = {
  reason: RefusalReason;
  /** The click as it came, as JSON: by it, one that comes again is known. */
  payload: string;
  /** When it was, in ms since 1970. */
  at: number;
};
export type Refusals = ReturnType<typeof createRefusals>;

/** Where it is kept how many clicks were refused. Rejects with the database's error. */
export function createRefusals(database: Database) {
  return {
    /** Counts clicks among those that were dropped. One that was counted before is not counted again. */
    async note(refusals: readonly Refusal[]): Promise<void> {
      const column = (name: keyof Refusal) => arrayLiteral(refusals.map((refusal) => refusal[name]));
      await database.run(
        (sql) => sql`SELECT note_refusals(${column("payload")}, ${column("reason")}, ${column("at")})`,
      );
    },
  };
}
