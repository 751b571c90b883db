// How a link is written and read in SQL; links.ts says when.
import type { Link } from "@linkfence/contracts";
import type { Sql, TransactionSql } from "@linkfence/db";
import type { Expiry } from "../domain/expiry.ts";
import type { LinkDraft } from "../domain/link.ts";

/** A link as the database holds it: what its short URL looks like is not the database's business. */
export type StoredLink = Omit<Link, "shortUrl">;

/** Who creates: the owner, and the id of the key that was used. */
export type Author = { owner: string; keyId: string };

export type LinkRow = { code: string; kind: StoredLink["kind"]; draft: SourcedDraft };

/** A draft, and the line of the file that it comes from. */
export type SourcedDraft = LinkDraft & { line?: number };

/** Who creates, and in which import. */
export type Creator = Author & { importId?: string };

type AnySql = Sql | TransactionSql;

/**
 * The columns of a `StoredLink`. Times leave the database as text: a JavaScript date would cut their microseconds.
 * Whether a link has expired is judged at each reading.
 * @param shortUrlBase what short URLs begin with, where the database is to make the whole `Link`
 */
export function linkColumns(sql: AnySql, shortUrlBase?: string) {
  const shortUrl = shortUrlBase === undefined ? sql`` : sql`${shortUrlBase}::text || code AS "shortUrl",`;
  return sql`
    code, ${shortUrl} target, kind, state, coalesce(expires_at <= clock_timestamp(), false) AS expired, version, owner, title, tags, note,
    ${utcText(sql, "created_at")} AS "createdAt", created_by AS "createdBy",
    ${utcText(sql, "expires_at")} AS "expiresAt",
    ${utcText(sql, "revoked_at")} AS "revokedAt", revoked_by AS "revokedBy"`;
}

/** A time as text with its microseconds. */
export function utcText(sql: AnySql, column: string) {
  return sql`to_char(${sql(column)} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/** One row as an INSERT without its end; a WHERE may follow. */
export function insertLink(sql: Sql, { code, kind, draft }: LinkRow, author: Author) {
  return sql`
    INSERT INTO link (code, kind, target, owner, title, tags, note, expires_at, created_by)
    SELECT ${code}, ${kind}, ${draft.target}, ${author.owner}, ${draft.title}, ${[...draft.tags]}::text[],
           ${draft.note}, ${expiryValue(sql, draft.expiry)}, ${author.keyId}`;
}

/** An expiry as a point in time and a life in seconds, one of which is null at least. */
export function expiryValues(expiry: Expiry): { at: string | null; seconds: number | null } {
  return {
    at: expiry.kind === "at" ? expiry.time : null,
    seconds: expiry.kind === "after" ? expiry.seconds : null,
  };
}

/** A life in seconds begins at the transaction's own time, which is also `created_at`. */
function expiryValue(sql: Sql, expiry: Expiry) {
  if (expiry.kind === "after") return sql`now() + make_interval(secs => ${expiry.seconds}::int8)`;
  // The detour by text keeps the driver from reading the time itself, with milliseconds only.
  return expiry.kind === "at" ? sql`${expiry.time}::text::timestamptz` : sql`NULL::timestamptz`;
}

/** A row among others, each of which may have another author. */
export type AuthoredRow = LinkRow & { author: Creator };

/**
 * Many rows as one statement with one parameter, whatever their number; codes that exist are left out of its result.
 * The rows go in in the order of their codes: two such statements that share codes then wait for each other in one
 * direction only, and cannot deadlock.
 */
export function insertLinks(sql: AnySql, rows: readonly AuthoredRow[]) {
  const json = JSON.stringify(
    rows.map(({ code, kind, draft: { target, title, tags, note, expiry, line }, author }) => ({
      code,
      kind,
      target,
      owner: author.owner,
      title,
      tags,
      note,
      lifetime: expiryValues(expiry).seconds,
      expires_at: expiryValues(expiry).at,
      created_by: author.keyId,
      import_id: author.importId,
      import_line: line,
    })),
  );
  return sql<StoredLink[]>`
    INSERT INTO link (code, kind, target, owner, title, tags, note, expires_at, created_by, import_id, import_line)
    SELECT code, kind, target, owner, title, tags, note,
           coalesce(expires_at, now() + make_interval(secs => lifetime)), created_by, import_id, import_line
      FROM json_to_recordset(${json}::text::json)
        AS item (code text, kind text, target text, owner text, title text, tags text[], note text,
                 lifetime int8, expires_at timestamptz, created_by text, import_id uuid, import_line int8)
     ORDER BY code
    ON CONFLICT (code) DO NOTHING
    RETURNING ${linkColumns(sql)}`;
}
