import type { Database, TransactionSql } from "@linkfence/db";

type StoredKey = { id: string; owner: string; scopes: string[]; secretHash: Uint8Array };

/** A key that can still be used, and whether its last use is to be written again. */
export type ActiveKey = StoredKey & { useIsDue: boolean };

/** What is stored of a new key; `secretHash` has 32 bytes. */
export type NewKey = StoredKey & { name: string };

/** Held while the first key is made, so that of several starters one makes it and the others find it. */
const FIRST_KEY_LOCK = 7106917;

export type KeyStore = ReturnType<typeof createKeyStore>;

/** Creates the store of API keys. */
export function createKeyStore(db: Database) {
  /** Finds a key that is neither revoked nor expired. Asked at every call, so that a revoked key stops at once. */
  async function findActive(id: string): Promise<ActiveKey | undefined> {
    const [key] = await db.read(
      (sql) => sql<ActiveKey[]>`
        SELECT id, owner, scopes, secret_hash AS "secretHash",
               coalesce(last_used_at < clock_timestamp() - interval '5 minutes', true) AS "useIsDue"
          FROM api_key
         WHERE id = ${id} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`,
    );
    return key;
  }

  /**
   * Adds an admin key, unless there is a usable one already.
   * @param force adds it in any case
   * @param prepare makes the key; called under the lock, before the key is stored, and not at all when none is needed
   * @returns the key, or undefined when there was one
   */
  function addAdminKey(force: boolean, prepare: () => Promise<NewKey>): Promise<NewKey | undefined> {
    return db.transaction(async (sql) => {
      await sql`SELECT pg_advisory_xact_lock(${FIRST_KEY_LOCK})`;
      if ((await hasAdminKey(sql)) && !force) return undefined;
      const key = await prepare();
      await sql`
        INSERT INTO api_key (id, owner, name, scopes, secret_hash)
        VALUES (${key.id}, ${key.owner}, ${key.name}, ${key.scopes}::text[], ${key.secretHash})`;
      return key;
    });
  }

  /** Writes that keys were used just now, of each once in five minutes. Returns how many were due. */
  async function touch(ids: string[], timeoutMs: number): Promise<number> {
    const [row] = await db.run(
      (sql) => sql<{ touched: number }[]>`SELECT touch_api_keys(${ids}::text[]) AS touched`,
      timeoutMs,
    );
    return row?.touched ?? 0;
  }

  return { findActive, addAdminKey, touch };
}

async function hasAdminKey(sql: TransactionSql): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    SELECT EXISTS (SELECT FROM api_key WHERE 'admin' = ANY (scopes) AND revoked_at IS NULL
                      AND (expires_at IS NULL OR expires_at > clock_timestamp())) AS found`;
  return row?.found ?? false;
}
