import type { Database } from "@linkfence/db";
import type { LinkRow } from "../domain/entry.ts";

type Row = { target: string | null; state: "ACTIVE" | "REVOKED"; version: number; remaining_ms: number | null };

/** Reads one link by its code; null when there is none. One query, under the pool's deadline. */
export function createLinkReader(database: Database): (code: string) => Promise<LinkRow | null> {
  return async (code) => {
    const [row] = await database.read<Row[]>(
      (sql) => sql<Row[]>`SELECT target, state, version, remaining_ms FROM redirect_link WHERE code = ${code}`,
    );
    if (!row) return null;
    return { target: row.target, state: row.state, version: row.version, remainingMs: row.remaining_ms };
  };
}
