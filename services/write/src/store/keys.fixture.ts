// A database of its own with the stores of keys, for their tests.
import { createDatabase } from "@linkfence/db";
import { createTestDatabase } from "@linkfence/testkit";
import { createCounts } from "../counts.ts";
import type { KeyDraft } from "../domain/key-draft.ts";
import { createKeyStore } from "./api-keys.ts";
import { createKeyListing } from "./key-listing.ts";
import { createKeyManagement } from "./key-management.ts";
import { mintKey } from "./key-secret.ts";

/** The lock under which keys are made and revoked, as the schema names it. */
export const KEY_LOCK = 7106931;

export type KeyWorld = Awaited<ReturnType<typeof startKeyWorld>>;

export async function startKeyWorld() {
  const database = await createTestDatabase("main");
  const { sql } = database;
  const db = createDatabase({ url: database.url, applicationName: "test", max: 18, queryTimeoutMs: 20_000 });
  const counts = createCounts();

  /** Puts a key in as the first one is. Returns its id. */
  async function add(owner: string, scopes: string[] = ["keys"], expiresAt: string | null = null): Promise<string> {
    const { id, secretHash } = mintKey();
    await sql`INSERT INTO api_key (id, owner, name, scopes, secret_hash, expires_at)
      VALUES (${id}, ${owner}, 'put in', ${scopes}, ${secretHash}, ${expiresAt}::text::timestamptz)`;
    return id;
  }

  /** Takes the lock out of the functions that change keys. */
  async function removeLock(): Promise<void> {
    const [row] = await sql<{ text: string }[]>`
      SELECT pg_get_functiondef('begin_key_change(text)'::regprocedure) AS text`;
    const lock = `PERFORM pg_advisory_xact_lock(${KEY_LOCK});`;
    if (!row?.text.includes(lock)) throw new Error("there is no lock to take out");
    await sql.unsafe(row.text.replace(lock, ""));
  }

  return {
    ...database,
    db,
    counts,
    keys: createKeyStore(db),
    management: createKeyManagement(db, counts),
    listing: createKeyListing(db),
    add,
    removeLock,
    draft: (owner: string, over: Partial<KeyDraft> = {}): KeyDraft => ({
      owner,
      name: "n",
      scopes: ["keys"],
      expiry: { kind: "never" },
      ...over,
    }),
    /** Resolves when so many statements wait for a lock. */
    async waiting(number: number): Promise<void> {
      for (let found = -1; found < number; ) {
        const [row] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`;
        found = row?.n ?? 0;
      }
    },
    async usableAdminKeys(): Promise<number> {
      const [row] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM api_key
        WHERE 'admin' = ANY (scopes) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;
      return row?.n ?? -1;
    },
    async usableKeys(owner: string): Promise<number> {
      const [row] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM api_key
        WHERE owner = ${owner} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;
      return row?.n ?? -1;
    },
    async stop(): Promise<void> {
      await db.close();
      await database.drop();
    },
  };
}

/** The code of the Problem that a call rejects with, or `done`. */
export function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "done",
    (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : String(error)),
  );
}
