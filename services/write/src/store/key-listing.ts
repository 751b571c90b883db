import type { ApiKey, KeyPage } from "@linkfence/contracts";
import type { Database } from "@linkfence/db";
import { cutPage, readCursors } from "./cursors.ts";
import { keyColumns } from "./key-rows.ts";
import { isBehind } from "./page-rows.ts";

export type KeyListRequest = { owner: string; limit: number; after: string | null };

export type KeyListing = ReturnType<typeof createKeyListing>;

/** Creates the listing of keys. */
export function createKeyListing(db: Database) {
  /**
   * Reads one page of an owner's keys, newest first, with those that are revoked or expired. Rejects with a Problem
   * `invalid-cursor`, or with the database's error.
   */
  async function list({ owner, limit, after }: KeyListRequest): Promise<KeyPage> {
    const cursors = await readCursors(db);
    const listing = { keysOf: owner };
    const start = after === null ? null : cursors.read(after, listing);
    const rows = await db.read(
      (sql) => sql<ApiKey[]>`
        SELECT ${keyColumns(sql)} FROM api_key
         WHERE owner COLLATE "C" = ${owner} ${start ? sql`AND ${isBehind(sql, start, "id")}` : sql``}
         ORDER BY created_at DESC, id COLLATE "C" DESC LIMIT ${limit + 1}`,
    );
    const { items, end } = cutPage(rows, limit);
    return { items, next: end && cursors.issue({ createdAt: end.createdAt, code: end.id }, listing) };
  }

  return { list };
}
