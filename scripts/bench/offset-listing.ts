import type { Database, Sql } from "@linkfence/db";
import { linkColumns, type StoredLink } from "../../services/write/src/store/link-rows.ts";
import type { LinkListing } from "../../services/write/src/store/listing.ts";

/** A page by OFFSET, in the order of the real listing and by the same index, both states merged: as good as it gets. */
export function selectOffsetPage(sql: Sql, owner: string, { limit, offset }: { limit: number; offset: number }) {
  const inState = (state: string) => sql`
    SELECT *, code COLLATE "C" AS place FROM link WHERE owner COLLATE "C" = ${owner} AND state = ${sql.unsafe(state)}`;
  return sql<StoredLink[]>`
    SELECT ${linkColumns(sql)} FROM (${inState("'ACTIVE'")} UNION ALL ${inState("'REVOKED'")}) AS either
     ORDER BY created_at DESC, place DESC LIMIT ${limit} OFFSET ${offset}`;
}

/** Creates a listing whose cursor is the number of links before the page. It knows no filters. */
export function createOffsetListing(db: Database): LinkListing {
  return {
    async list({ owner, limit, after }) {
      const offset = Number(after ?? 0);
      const rows = await db.read((sql) => selectOffsetPage(sql, owner, { limit: limit + 1, offset }));
      return { items: rows.slice(0, limit), next: rows.length > limit ? String(offset + limit) : null };
    },
  };
}
