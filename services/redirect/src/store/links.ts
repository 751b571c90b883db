import type { Database } from "@linkfence/db";
import type { LinkRow } from "../domain/entry.ts";

type Row = { target: string | null; state: "ACTIVE" | "REVOKED"; version: number; remaining_ms: number | null };

/** What a header field can carry as it is (RFC 9110 section 5.5); the write service stores nothing else. */
const SENDABLE = /^[\x20-\x7e]+$/;

/** A row that did not come through the write service. Sending it would fail, and end the process with it. */
export class UnsendableTarget extends Error {
  constructor(code: string) {
    super(`the stored target of ${code} holds characters that no Location field can carry`);
    this.name = "UnsendableTarget";
  }
}

/**
 * Reads one link by its code; null when there is none. One query, under the pool's deadline.
 * Rejects with the database's error, or with `UnsendableTarget`.
 */
export function createLinkReader(database: Database): (code: string) => Promise<LinkRow | null> {
  return async (code) => {
    const [row] = await database.read<Row[]>(
      (sql) => sql<Row[]>`SELECT target, state, version, remaining_ms FROM redirect_link WHERE code = ${code}`,
    );
    if (!row) return null;
    if (row.target !== null && !SENDABLE.test(row.target)) throw new UnsendableTarget(code);
    return { target: row.target, state: row.state, version: row.version, remainingMs: row.remaining_ms };
  };
}
