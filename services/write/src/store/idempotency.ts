// One key, one creation: the key is locked, the links are made and the answer is kept in one transaction, so there is no
// moment at which one of them is there without the others. Whoever comes meanwhile waits for the end of that transaction:
// in memory and for its answer, where it is of the same process; there one request of a key at a time asks the database.
// A first try never waits in the database; those that have to wait for a lock share a few connections, so that keys that
// stay locked cannot take the pool away from everybody else.
import { Problem } from "@linkfence/contracts";
import type { Database, Sql, TransactionSql } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import { createFollowers, type Ending } from "./followers.ts";
import { createWaitingRoom } from "./waiting-room.ts";

/** Calls that take a key, as the database knows them. A key of one of them says nothing to the other. */
export type KeyedCall = "POST /v1/links" | "POST /v1/links:batch";

/** `digest` is SHA-256 of what was asked. */
export type KeyedRequest = { owner: string; call: KeyedCall; key: string; digest: Uint8Array };

/** An answer as it is kept; `body` is JSON text. */
export type KeptAnswer = { status: number; location: string | null; body: string };
export type Answer = KeptAnswer & { replayed: boolean };

/** What the database says to a request with a key. */
export type KeyedRow = { outcome: "created" | "replayed" } & KeptAnswer;
type HeldRow = KeyedRow | { outcome: "reused" } | { outcome: "in-use" };

/**
 * Makes the statements of one request, in one transaction. Resolves with the row that says what became of it, or undefined
 * where nothing is kept and nothing was created.
 * @param waitMs how long it may wait for the key, 0 for not at all
 */
export type KeyedAttempt = (waitMs: number) => Promise<HeldRow | undefined>;

/** How the request of a digest ended. */
type Outcome = { digest: Uint8Array; row: HeldRow | undefined };

/**
 * Who finds no place to wait for a lock looks again after so long, in ms, and then after twice as long each time: a key may
 * have come free behind others that stay locked, and five looks a wait burden nobody.
 */
const FIRST_LOOK_MS = 250;

export type IdempotencyOptions = {
  db: Database;
  counts: Pick<Counts, "idempotency">;
  /** How long a request waits for a key that is in use, in ms; one that got its turn then has a database call left. */
  waitMs: number;
  /** Connections that may wait for keys at a time. With 0 nobody waits in the database, but looks now and then. */
  maxWaiting: number;
  /** Deadline of a database call in ms; what it waits for a key comes on top. */
  queryTimeoutMs: number;
};

export type Idempotency = ReturnType<typeof createIdempotency>;

/** Creates the keeper of answers. */
export function createIdempotency({ db, counts, waitMs, maxWaiting, queryTimeoutMs }: IdempotencyOptions) {
  const room = createWaitingRoom(maxWaiting);
  const followers = createFollowers<Outcome>();

  /**
   * Makes an attempt, behind those of this process under the same key, unless one of them came to an answer for this
   * request too; and further ones that wait where the key is in use.
   * @returns the answer, or undefined where nothing is kept and nothing was created
   * @throws Problem `idempotency-key-reused`, `idempotency-key-in-use`; else what the attempt throws
   */
  async function once({ call, key, owner, digest }: KeyedRequest, attempt: KeyedAttempt): Promise<Answer | undefined> {
    const endsAt = performance.now() + waitMs;
    const done = await followers.follow(`${call} ${key} ${owner}`, {
      timeoutMs: waitMs,
      work: async () => ({ digest, row: await persist(attempt, endsAt) }),
      hear: (ending) => hearOf(ending, digest),
    });
    return conclude(done ? done.row : { outcome: "in-use" });
  }

  async function persist(attempt: KeyedAttempt, endsAt: number): Promise<HeldRow | undefined> {
    const left = () => Math.max(1, Math.floor(endsAt - performance.now()));
    let row = await attempt(0);
    for (let pause = FIRST_LOOK_MS; row?.outcome === "in-use" && left() > 1; pause *= 2) {
      const waited = await room.run(Math.min(pause, left()), async () => ({ row: await attempt(left()) }));
      row = waited ? waited.row : await attempt(0);
    }
    return row;
  }

  function conclude(row: HeldRow | undefined): Answer | undefined {
    if (row === undefined) return undefined;
    counts.idempotency[row.outcome] += 1;
    if (row.outcome === "reused" || row.outcome === "in-use") throw refusal(row.outcome);
    const { outcome, status, location, body } = row;
    return { status, location, body, replayed: outcome === "replayed" };
  }

  /** Looks what is kept for a request, as a transaction of its own. */
  async function look(request: KeyedRequest, wait: number): Promise<HeldRow | undefined> {
    const [held] = await db.run((sql) => sql<HeldRow[]>`SELECT * FROM ${takeKey(sql, request, wait)}`, deadline(wait));
    return held;
  }

  /** Finds the answer to a request, without creating anything. Throws as `once` does. */
  function find(request: KeyedRequest): Promise<Answer | undefined> {
    return once(request, (wait) => look(request, wait));
  }

  /** Removes expired records, `limit` at the most. Returns how many. */
  async function sweep(limit: number): Promise<number> {
    const [row] = await db.run((sql) => sql<{ swept: number }[]>`SELECT sweep_idempotency_records(${limit}) AS swept`);
    return row?.swept ?? 0;
  }

  /** Deadline in ms of a call that may wait so long for a key. */
  function deadline(wait: number): number {
    return queryTimeoutMs + wait;
  }

  /** Requests that wait: for the lock, with a connection, and in memory, for such a connection or for another request. */
  function stats() {
    const { inside, waiting } = room.stats();
    return { lock: inside, memory: waiting + followers.waiting() };
  }

  return { once, look, find, sweep, deadline, stats };
}

/**
 * What one request under a key says to another one that waited for it. What was kept is the answer to all requests of
 * its digest, and refuses the others. Where it kept nothing, or failed, another one has to try for itself.
 */
function hearOf(ending: Ending<Outcome>, digest: Uint8Array): Ending<Outcome> | undefined {
  if ("error" in ending || ending.value.row === undefined) return undefined;
  const { row, digest: other } = ending.value;
  const same = Buffer.compare(digest, other) === 0;
  if (row.outcome === "in-use" || (row.outcome === "reused" && !same)) return undefined;
  if (!same) return { value: { digest, row: { outcome: "reused" } } };
  return { value: { digest, row: row.outcome === "created" ? { ...row, outcome: "replayed" } : row } };
}

/** A key, as the table of what is kept under it; the call of a function (migration 0004 says what it does). */
export function takeKey(sql: Sql | TransactionSql, { owner, call, key, digest }: KeyedRequest, waitMs: number) {
  return sql`take_idempotency_key(${owner}, ${call}, ${key}, ${digest}::bytea, ${waitMs}::int)`;
}

/** Takes a key at the beginning of a transaction. Resolves with what is kept, or undefined when the key is ours now. */
export async function takeKeyFirst(sql: TransactionSql, request: KeyedRequest, waitMs: number) {
  const [held] = await sql<HeldRow[]>`SELECT * FROM ${takeKey(sql, request, waitMs)}`;
  return held;
}

/** Keeps an answer under a key that was taken in this transaction. */
export async function keepAnswer(sql: TransactionSql, request: KeyedRequest, answer: KeptAnswer): Promise<void> {
  const { owner, call, key, digest } = request;
  await sql`
    INSERT INTO idempotency_record (owner, call, key, request_digest, status, location, body)
    VALUES (${owner}, ${call}, ${key}, ${digest}, ${answer.status}, ${answer.location}, ${answer.body})`;
}

function refusal(outcome: "reused" | "in-use"): Problem {
  const [code, rule, detail] =
    outcome === "reused"
      ? (["idempotency-key-reused", "reused", "was sent with another body before: use a new key"] as const)
      : (["idempotency-key-in-use", "in-use", "is in use by a request that is under way: try again"] as const);
  return new Problem(code, `the Idempotency-Key ${detail}`, [{ field: "Idempotency-Key", rule, detail }]);
}
