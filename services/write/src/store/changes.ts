// The log of changes as its owners read it. The lock in revoke_links makes the order of seq the order of the commits: once
// a change is seen, none with a smaller number will ever come, and who goes on behind the last one seen misses nothing.
import type { LinkChange } from "@linkfence/contracts";
import type { Database } from "@linkfence/db";
import { utcText } from "./link-rows.ts";

export type ChangeRange = {
  owner: string;
  /** Changes with a greater `seq` only. */
  after: number;
  /** And with none beyond this; absent: whatever there is. */
  until?: number;
  /** Changes at the most. */
  limit: number;
};

/** What is known at one instant: the greatest number in the log, and those of some keys that can be used. */
export type Glance = { head: number; keys: readonly { id: string; owner: string; scopes: readonly string[] }[] };

type GlanceRow = { head: number } & (Glance["keys"][number] | { id: null; owner: null; scopes: null });

export type ChangeStore = ReturnType<typeof createChangeStore>;

/** Creates the reader of the log. Its functions reject with the database's error. */
export function createChangeStore(db: Database) {
  /**
   * Reads the first changes of a range, in order: one statement, which costs the same however long the log is.
   * @param timeoutMs where it is to end sooner than others
   */
  async function readRange(range: ChangeRange, timeoutMs?: number): Promise<LinkChange[]> {
    const { owner, after, until = Number.MAX_SAFE_INTEGER, limit } = range;
    const rows = await db.read(
      (sql) => sql<Omit<LinkChange, "type">[]>`
        SELECT seq, code, version, ${utcText(sql, "changed_at")} AS "changedAt", changed_by AS "changedBy"
          FROM owner_changes(${owner}, ${after}::bigint, ${until}::bigint, ${limit}::int) ORDER BY seq`,
      timeoutMs,
    );
    return rows.map(({ seq, ...change }) => ({ seq, type: "revoked", ...change }));
  }

  /**
   * Looks at the head of the log and at keys, all in one snapshot: where a change is seen that was made after a key was
   * revoked, the key is seen revoked.
   */
  async function glance(keyIds: readonly string[]): Promise<Glance> {
    const rows = await db.read(
      (sql) => sql<GlanceRow[]>`
        SELECT log.head, k.id, k.owner, k.scopes
          FROM (SELECT coalesce(max(seq), 0) AS head FROM link_change) AS log
          LEFT JOIN api_key k ON k.id = ANY (${[...keyIds]}::text[]) AND k.revoked_at IS NULL
                             AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())`,
    );
    const [first] = rows;
    if (!first) throw new Error("an aggregate returned no row");
    return { head: first.head, keys: rows.flatMap((row) => (row.id === null ? [] : [row])) };
  }

  return { readRange, glance };
}
