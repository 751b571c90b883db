// Creation under an Idempotency-Key. A single link takes one statement: key, link and answer in one round trip. The
// answer is rendered by the database, as only that can keep it in the statement that creates what it tells of.
import type { Database, Sql } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import type { NewCode } from "../domain/code.ts";
import type { LinkDraft } from "../domain/link.ts";
import { type BatchOutcome, countCreated, createBatchInserter } from "./batch-insert.ts";
import {
  type Answer,
  type Idempotency,
  type KeptAnswer,
  type KeyedRequest,
  type KeyedRow,
  keepAnswer,
  takeKey,
  takeKeyFirst,
} from "./idempotency.ts";
import { type Author, insertLink, type LinkRow, linkColumns } from "./link-rows.ts";
import { aliasTaken, CODE_TRIES, codeSpaceExhausted } from "./refusals.ts";
import { retryTransient } from "./retry.ts";

export type KeyedLinkOptions = {
  db: Database;
  idempotency: Idempotency;
  newCode: NewCode;
  counts: Pick<Counts, "created" | "collisions">;
  /** Configured origin of short URLs, with the slash behind it. */
  shortUrlBase: string;
};

export type KeyedLinkStore = ReturnType<typeof createKeyedLinkStore>;

/** Who creates under which key. */
export type Keyed = { author: Author; request: KeyedRequest };

/** Creates the store. Its functions throw what `Idempotency.once` throws, and what creation without a key throws. */
export function createKeyedLinkStore({ db, idempotency, newCode, counts, shortUrlBase }: KeyedLinkOptions) {
  const insertBatch = createBatchInserter({ newCode, counts });

  /** Creates one link, or answers what was answered before. */
  async function create(draft: LinkDraft, keyed: Keyed): Promise<Answer> {
    const { alias, codeLength } = draft;
    for (let tries = 0; tries < CODE_TRIES; tries++) {
      const row: LinkRow = { code: alias ?? newCode(codeLength), kind: alias === null ? "RANDOM" : "ALIAS", draft };
      const answer = await createUnder(row, keyed);
      if (answer) {
        if (!answer.replayed) counts.created[row.kind] += 1;
        return answer;
      }
      if (alias !== null) throw aliasTaken(alias);
      counts.collisions += 1;
    }
    throw codeSpaceExhausted(draft);
  }

  /** Undefined where the code is taken; nothing is kept then. */
  function createUnder(row: LinkRow, { author, request }: Keyed): Promise<Answer | undefined> {
    return idempotency.once(request, (waitMs) =>
      retryTransient(async () => {
        const [made] = await db.run(
          (sql) => createOnce(sql, { row, author, request, waitMs, shortUrlBase }),
          idempotency.deadline(waitMs),
        );
        return made;
      }),
    );
  }

  /**
   * Creates many links in one transaction, or answers what was answered before.
   * @param render makes the answer out of one outcome for each draft, in order; it is called before the commit
   */
  async function createBatch(
    drafts: readonly LinkDraft[],
    keyed: Keyed,
    render: (outcomes: readonly BatchOutcome[]) => string,
  ): Promise<Answer> {
    let outcomes: readonly BatchOutcome[] = [];
    const attempt = (waitMs: number) =>
      db.transaction(async (sql) => {
        const held = await takeKeyFirst(sql, keyed.request, waitMs);
        if (held) return held;
        outcomes = await insertBatch(sql, drafts, keyed.author);
        const kept: KeptAnswer = { status: 200, location: null, body: render(outcomes) };
        await keepAnswer(sql, keyed.request, kept);
        return { outcome: "created" as const, ...kept };
      }, idempotency.deadline(waitMs));
    // A replay needs no transaction of five round trips, and most of those who come late are replays.
    const answer = await idempotency.once(keyed.request, async (waitMs) => {
      const held = waitMs === 0 ? await idempotency.look(keyed.request, 0) : undefined;
      return held ?? retryTransient(() => attempt(waitMs));
    });
    if (!answer) throw new Error("a batch came to no answer");
    if (!answer.replayed) countCreated(counts, outcomes);
    return answer;
  }

  return { create, createBatch, find: idempotency.find };
}

type OnceStatement = Keyed & { row: LinkRow; waitMs: number; shortUrlBase: string };

/**
 * Takes the key; where nothing is kept under it, creates the link and keeps the answer. No row where the code is taken.
 * The parts depend on one another, which is what makes their order sure (PostgreSQL manual, section 7.8.4).
 */
function createOnce(sql: Sql, { row, author, request, waitMs, shortUrlBase }: OnceStatement) {
  const { owner, call, key, digest } = request;
  // Lets redirect processes forget that they saw no such code; nobody can have asked for a random one.
  const hint = row.kind === "ALIAS" ? sql`pg_notify('link_created', '')::text` : sql`NULL::text`;
  return sql<KeyedRow[]>`
    WITH held AS MATERIALIZED (SELECT * FROM ${takeKey(sql, request, waitMs)}),
    created AS (
      ${insertLink(sql, row, author)} WHERE NOT EXISTS (SELECT FROM held)
      ON CONFLICT (code) DO NOTHING RETURNING ${linkColumns(sql, shortUrlBase)}
    ),
    answered AS MATERIALIZED (
      SELECT 201::smallint AS status, '/v1/links/' || code AS location, row_to_json(created)::text AS body FROM created
    ),
    kept AS (
      INSERT INTO idempotency_record (owner, call, key, request_digest, status, location, body)
      SELECT ${owner}, ${call}, ${key}, ${digest}::bytea, status, location, body FROM answered
    )
    SELECT outcome, status, location, body, NULL::text AS hint FROM held
    UNION ALL
    SELECT 'created', status, location, body, ${hint} FROM answered`;
}
