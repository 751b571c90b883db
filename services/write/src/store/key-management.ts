// Keys are made, replaced and revoked by the database's own functions (migration 0006), which run one after the other.
// Secrets are drawn here and leave with the answer; what is stored is a digest.
import { type ApiKey, type MintedKey, Problem } from "@linkfence/contracts";
import type { Database, Sql } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import type { KeyDraft } from "../domain/key-draft.ts";
import { keyColumns } from "./key-rows.ts";
import { mintKey } from "./key-secret.ts";
import { expiryValues } from "./link-rows.ts";
import { retryTransient } from "./retry.ts";

/** What the functions say. */
export type KeyOutcome = keyof Counts["keys"];
type Refusal = Exclude<KeyOutcome, "created" | "rotated" | "revoked" | "already-revoked">;
type MadeRow = { outcome: "created" | "rotated" | Refusal } & ApiKey;

/** Which key, and whose keys the caller reaches: null for everybody's. */
export type KeyTarget = { id: string; reach: string | null };

export type KeyManagement = ReturnType<typeof createKeyManagement>;

/**
 * Creates the management of keys. `by` is always the id of the key that is used; all calls reject with a Problem where a
 * rule decided (`unauthorized` where that key was revoked in the meantime), else with the database's error.
 */
export function createKeyManagement(db: Database, counts: Pick<Counts, "keys">) {
  /** Finds a key within reach. */
  async function find({ id, reach }: KeyTarget): Promise<ApiKey | undefined> {
    const [key] = await db.read(
      (sql) => sql<ApiKey[]>`
        SELECT ${keyColumns(sql)} FROM api_key WHERE id = ${id} AND (${reach}::text IS NULL OR owner = ${reach})`,
    );
    return key;
  }

  /** Makes a key. Rejects with `too-many-keys`. */
  function create({ owner, name, scopes, expiry }: KeyDraft, by: string): Promise<MintedKey> {
    const { at, seconds } = expiryValues(expiry);
    return make(
      (sql, id, secretHash) => sql`
        create_api_key(${id}, ${secretHash}::bytea, ${owner}, ${name}, ${[...scopes]}::text[],
                       ${at}::text::timestamptz, ${seconds}::int8, ${by})`,
    );
  }

  /** Makes the successor of a key. Rejects with `not-found`, `key-not-usable`, `too-many-keys`. */
  function rotate({ id: old, reach }: KeyTarget, overlapSeconds: number, by: string): Promise<MintedKey> {
    return make(
      (sql, id, secretHash) => sql`
        rotate_api_key(${old}, ${reach}, ${id}, ${secretHash}::bytea, ${overlapSeconds}::int, ${by})`,
    );
  }

  async function make(call: (sql: Sql, id: string, secretHash: Uint8Array) => Fragment): Promise<MintedKey> {
    const { id, text, secretHash } = mintKey();
    const [row] = await retryTransient(() =>
      db.run(
        (sql) => sql<MadeRow[]>`
          SELECT outcome, ${keyColumns(sql)}
            FROM (SELECT outcome, (made).* FROM ${call(sql, id, secretHash)}) AS made`,
      ),
    );
    if (!row) throw new Error("a function of the database returned no row");
    const { outcome, ...key } = row;
    counts.keys[outcome] += 1;
    if (outcome !== "created" && outcome !== "rotated") throw refusal(outcome);
    return { ...key, secret: text };
  }

  /** Revokes a key; one that is revoked already stays as it is. Rejects with `not-found`, `last-admin-key`. */
  async function revoke({ id, reach }: KeyTarget, by: string): Promise<void> {
    const [row] = await retryTransient(() =>
      db.run((sql) => sql<{ outcome: KeyOutcome }[]>`SELECT revoke_api_key(${id}, ${reach}, ${by}) AS outcome`),
    );
    if (!row) throw new Error("a function of the database returned no row");
    const { outcome } = row;
    counts.keys[outcome] += 1;
    if (outcome !== "revoked" && outcome !== "already-revoked") throw refusal(outcome as Refusal);
  }

  return { find, create, rotate, revoke };
}

type Fragment = ReturnType<typeof keyColumns>;

const REFUSALS: Record<Refusal, [ConstructorParameters<typeof Problem>[0], string]> = {
  "not-found": ["not-found", "you have no key with this id"],
  unauthorized: ["unauthorized", "the key is unknown, expired or revoked"],
  outlives: [
    "insufficient-scope",
    "the key that is used ends before: one without the scope admin makes none that ends later than itself",
  ],
  "too-many-keys": ["too-many-keys", "the owner has 1,000 usable keys: revoke one that is not needed"],
  "last-admin-key": [
    "last-admin-key",
    "this is the last usable admin key, and without it nobody could manage this installation: make another first",
  ],
  "not-usable": ["key-not-usable", "the key is revoked or expired: make a new one"],
  replaced: ["key-not-usable", "the key has been replaced already: rotate its successor, which is its replacedBy"],
};

/** Why a key was not made or revoked. */
function refusal(outcome: Refusal): Problem {
  return new Problem(...REFUSALS[outcome]);
}

/** An unknown key and one out of reach look the same. */
export function keyNotFound(): Problem {
  return refusal("not-found");
}
