// Creation never looks first: the primary key decides who gets a code, and only a row that came back was created.
// What an owner says about a link is all that an update here touches; revocation is the SQL function's.
import type { RevocationState } from "@linkfence/contracts";
import { classifyError, type Database, errorCode } from "@linkfence/db";
import type { Counts } from "../counts.ts";
import type { NewCode } from "../domain/code.ts";
import type { LinkDraft } from "../domain/link.ts";
import type { MetadataChange } from "../domain/metadata.ts";
import { type BatchOutcome, countCreated, createBatchInserter } from "./batch-insert.ts";
import { createGatherer } from "./gatherer.ts";
import {
  type Author,
  type AuthoredRow,
  insertLink,
  insertLinks,
  type LinkRow,
  linkColumns,
  type StoredLink,
  utcText,
} from "./link-rows.ts";
import { aliasTaken, CODE_TRIES, codeSpaceExhausted } from "./refusals.ts";
import { retryTransient } from "./retry.ts";

const UNIQUE_VIOLATION = "23505";

export type RevokedCode =
  | { code: string; outcome: "revoked" | "already-revoked"; version: number; seq: number; epoch: string }
  | { code: string; outcome: "not-found"; version: -1; seq: null; epoch: string };

export type StoredRevocation = Omit<RevocationState, "effective"> & { epoch: string };

/** Statements under way at a time, each for whoever came since the last one began; a statement has 1.5 MB at the most. */
const CREATIONS = { lanes: 2, maxCalls: 64 };

export type LinkStoreOptions = {
  db: Database;
  /** Deadline in ms of the creation of one link; 2 s where it is absent. */
  timeoutMs?: number;
  newCode: NewCode;
  counts: Pick<Counts, "created" | "collisions" | "revoked">;
  /** Deadline in ms of the revocation of many links; by default that of any call. */
  batchTimeoutMs?: number;
};

export type LinkStore = ReturnType<typeof createLinkStore>;

/** Creates the store of links. Its functions reject with a `Problem` where a rule decided, else with the database's error. */
export function createLinkStore({ db, newCode, counts, timeoutMs = 2000, batchTimeoutMs }: LinkStoreOptions) {
  const insertBatch = createBatchInserter({ newCode, counts });

  /** Creates one link. Rejects with `alias-taken` or `code-space-exhausted`. */
  async function create(draft: LinkDraft, author: Author): Promise<StoredLink> {
    const { alias } = draft;
    const link = await (alias === null ? createRandom(draft, author) : createAlias(alias, draft, author));
    counts.created[link.kind] += 1;
    return link;
  }

  async function createRandom(draft: LinkDraft, author: Author): Promise<StoredLink> {
    for (let tries = 0; tries < CODE_TRIES; tries++) {
      const created = await insertRandom({ code: newCode(draft.codeLength), kind: "RANDOM", draft, author });
      if (created) return created;
      counts.collisions += 1;
    }
    throw codeSpaceExhausted(draft);
  }

  /** Undefined where the code is taken, also by another one of the same statement. */
  const insertRandom = createGatherer<AuthoredRow, StoredLink | undefined>({
    ...CREATIONS,
    timeoutMs,
    now: () => performance.now(),
    work: insertRows,
  });

  async function insertTogether(rows: readonly AuthoredRow[], leftMs: number) {
    const created = await retryTransient(() => db.run((sql) => insertLinks(sql, rows), leftMs));
    const byCode = new Map(created.map((link) => [link.code, link]));
    return rows.map(({ code }) => {
      const link = byCode.get(code);
      byCode.delete(code);
      return link;
    });
  }

  /** What the database refuses of one must not be refused of its neighbours. */
  async function insertRows(rows: readonly AuthoredRow[], leftMs: number) {
    try {
      return await insertTogether(rows, leftMs);
    } catch (error) {
      if (rows.length === 1 || classifyError(error) !== "fatal") throw error;
      return rows.map(async (row) => (await insertTogether([row], leftMs))[0]);
    }
  }

  /** The notification, in the same transaction, lets redirect processes forget that they saw no such code. */
  async function createAlias(code: string, draft: LinkDraft, author: Author): Promise<StoredLink> {
    const row: LinkRow = { code, kind: "ALIAS", draft };
    try {
      const [created] = await retryTransient(() =>
        db.run(
          (sql) => sql<(StoredLink & { hint: unknown })[]>`
            ${insertLink(sql, row, author)} RETURNING ${linkColumns(sql)}, pg_notify('link_created', '') AS hint`,
        ),
      );
      if (!created) throw new Error("an INSERT returned no row");
      const { hint: _, ...link } = created;
      return link;
    } catch (error) {
      throw errorCode(error) === UNIQUE_VIOLATION ? aliasTaken(code) : error;
    }
  }

  /**
   * Creates many links in one transaction: one statement for all of them, and one more for the random codes among
   * them that were taken. Of two equal aliases the first wins.
   * @returns for each draft, in order, the link or why there is none
   */
  async function createBatch(drafts: readonly LinkDraft[], author: Author): Promise<BatchOutcome[]> {
    const outcomes = await retryTransient(() => db.transaction((sql) => insertBatch(sql, drafts, author)));
    countCreated(counts, outcomes);
    return outcomes;
  }

  /** Finds a link of one owner; undefined for an unknown code and for a link of somebody else. */
  async function find(code: string, owner: string): Promise<StoredLink | undefined> {
    const [link] = await db.read(
      (sql) => sql<StoredLink[]>`SELECT ${linkColumns(sql)} FROM link WHERE code = ${code} AND owner = ${owner}`,
    );
    return link;
  }

  /** Those of the codes that are links of one owner, in whatever state. */
  async function findOwn(codes: readonly string[], owner: string): Promise<Set<string>> {
    const rows = await db.read(
      (sql) => sql<{ code: string }[]>`
        SELECT code FROM link WHERE code = ANY (${[...codes]}::text[]) AND owner = ${owner}`,
    );
    return new Set(rows.map(({ code }) => code));
  }

  /**
   * Changes what a link's owner says about it, revoked or not. Neither its version nor the log changes: no redirect
   * depends on it. Returns the link, or undefined as `find` does.
   */
  async function update(code: string, owner: string, change: MetadataChange): Promise<StoredLink | undefined> {
    const { title, tags, note } = change;
    const [link] = await retryTransient(() =>
      db.run(
        (sql) => sql<StoredLink[]>`
          UPDATE link SET title = CASE WHEN ${title !== undefined} THEN ${title ?? null}::text ELSE title END,
                          tags = CASE WHEN ${tags !== undefined} THEN ${[...(tags ?? [])]}::text[] ELSE tags END,
                          note = CASE WHEN ${note !== undefined} THEN ${note ?? null}::text ELSE note END
           WHERE code = ${code} AND owner = ${owner} RETURNING ${linkColumns(sql)}`,
      ),
    );
    return link;
  }

  /**
   * Revokes links of one owner: one call, one transaction, one lock, one notification. One result a code, in
   * order. `epoch` is the history of the database in which they are revoked.
   */
  async function revoke(codes: readonly string[], author: Author): Promise<RevokedCode[]> {
    const rows = await retryTransient(() =>
      db.run(
        (sql) => sql<RevokedCode[]>`
          SELECT code, outcome, version, seq, (SELECT feed_epoch()) AS epoch
            FROM revoke_links(${[...codes]}::text[], ${author.owner}, ${author.keyId}) ORDER BY ordinal`,
        codes.length > 1 ? batchTimeoutMs : undefined,
      ),
    );
    for (const { outcome } of rows) counts.revoked[outcome] += 1;
    return [...rows];
  }

  /**
   * Finds the revocation of a link; undefined where there is none, and as `find` does. `seq` is 0 where its number is not
   * known any more, which every instance has applied.
   */
  async function findRevocation(code: string, owner: string): Promise<StoredRevocation | undefined> {
    const [row] = await db.read(
      (sql) => sql<StoredRevocation[]>`
        SELECT code, version, coalesce(revoked_seq, 0) AS seq, ${utcText(sql, "revoked_at")} AS "revokedAt",
               revoked_by AS "revokedBy", feed_epoch() AS epoch
          FROM link WHERE code = ${code} AND owner = ${owner} AND state = 'REVOKED'`,
    );
    return row;
  }

  return { create, createBatch, find, findOwn, update, revoke, findRevocation };
}
