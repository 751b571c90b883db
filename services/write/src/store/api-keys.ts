import type { Database, TransactionSql } from "@linkfence/db";
import { createGatherer } from "./gatherer.ts";

type StoredKey = { id: string; owner: string; scopes: string[]; secretHash: Uint8Array };

/** A key that can still be used, and whether its last use is to be written again. */
export type ActiveKey = StoredKey & { useIsDue: boolean };

/** What is stored of a new key; `secretHash` has 32 bytes. */
export type NewKey = StoredKey & { name: string };

/** Held while the first key is made, so that of several starters one makes it and the others find it. */
const FIRST_KEY_LOCK = 7106917;

export type KeyStore = ReturnType<typeof createKeyStore>;

/**
 * Look-ups under way at a time, each for whoever came since the last one began. Two, so that one that hangs holds up half
 * of those who come.
 */
const LOOK_UPS = { lanes: 2, maxCalls: 256 };

/**
 * Creates the store of API keys.
 * @param timeoutMs a look-up that took longer is given up
 */
export function createKeyStore(db: Database, timeoutMs = 2000) {
  /** Looks keys up, and nothing else: what is found is kept nowhere. */
  async function lookUp(ids: readonly string[], leftMs: number): Promise<(ActiveKey | undefined)[]> {
    const keys = await db.read(
      (sql) => sql<ActiveKey[]>`
        SELECT id, owner, scopes, secret_hash AS "secretHash",
               coalesce(last_used_at < clock_timestamp() - interval '5 minutes', true) AS "useIsDue"
          FROM api_key
         WHERE id = ANY (${[...new Set(ids)]}::text[]) AND revoked_at IS NULL
           AND (expires_at IS NULL OR expires_at > clock_timestamp())`,
      leftMs,
    );
    const byId = new Map(keys.map((key) => [key.id, key]));
    return ids.map((id) => byId.get(id));
  }

  /** Finds a key that is neither revoked nor expired. Asked anew for every call, so that a revoked key stops at once. */
  const findActive = createGatherer<string, ActiveKey | undefined>({
    ...LOOK_UPS,
    timeoutMs,
    now: () => performance.now(),
    work: lookUp,
  });

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
