// The one statement of a listing. Pages are cut by the last position, never by a count of rows: what is created, revoked
// or tied meanwhile moves nobody across a cut. Every scan walks an index in the order of the listing, and none looks at
// more than SCAN_MAX links, however few of them pass the filter.
import type { ListState } from "@linkfence/contracts";
import type { Sql } from "@linkfence/db";
import type { Listing, Position } from "../domain/cursor.ts";
import { linkColumns, type StoredLink, utcText } from "./link-rows.ts";

/** Links that one page looks at the most: some ten milliseconds in memory, and below a second from a slow disk. */
export const SCAN_MAX = 2000;

export type PageQuery = Listing & { limit: number; after: Position | null };

/** A link of the page; or, where the scan ended at its bound, only where that was. All nulls in an empty page. */
export type PageRow = (StoredLink | { [K in keyof StoredLink]: null }) & {
  edgeAt: string | null;
  edgeCode: string | null;
};

type Fragment = ReturnType<typeof linkColumns>;

/** One link more than the page holds, where there is one; newest first, of equal times the greater code first. */
export function selectPage(sql: Sql, query: PageQuery): Fragment {
  const { state, tag } = query.filter;
  const most = query.limit + 1;
  if (tag !== null) return boundedPage(sql, query, scanTag(sql, query, tag));
  if (state === null) return plainPage(sql, bothStates(sql, query, most));
  if (state === "revoked") return plainPage(sql, selectLinks(sql, sql`link ${inState(sql, query, state)}`, most));
  return boundedPage(sql, query, {
    links: selectLinks(sql, sql`link ${inState(sql, query, state)}`, SCAN_MAX),
    edge: sql`link ${inState(sql, query, state)}`,
  });
}

const ORDER = 'created_at DESC, code COLLATE "C" DESC';

/** `place` and `at` are what the order is made of; the answer has its times as text. */
function selectLinks(sql: Sql, source: Fragment, most: number): Fragment {
  return sql`
    SELECT ${linkColumns(sql)}, created_at AS at, code COLLATE "C" AS place FROM ${source}
     ORDER BY ${sql.unsafe(ORDER)} LIMIT ${most}`;
}

/** "C" is how the indexes have it. The states are literals, as a partial index is only used where its condition is seen to hold. */
function inState(sql: Sql, query: PageQuery, state: ListState): Fragment {
  const condition = {
    active: sql`state = 'ACTIVE'`,
    revoked: sql`state = 'REVOKED'`,
    expired: sql`state = 'ACTIVE' AND expires_at IS NOT NULL`,
  }[state];
  return sql`WHERE owner COLLATE "C" = ${query.owner} AND ${condition} ${withinTimes(sql, query)}`;
}

/**
 * Where the page starts and where the listing ends. A cursor lies before `createdBefore` already. Both at once would be
 * the same links, but might have the index searched from the one that is further away.
 */
function withinTimes(sql: Sql, { after, filter: { createdAfter, createdBefore } }: PageQuery): Fragment {
  const start = after
    ? sql`AND ${isBehind(sql, after, "code")}`
    : createdBefore === null
      ? sql``
      : sql`AND created_at < ${createdBefore}::text::timestamptz`;
  return createdAfter === null ? start : sql`${start} AND created_at > ${createdAfter}::text::timestamptz`;
}

/** What comes after a position, where the newest is first; `place` is the column that parts equal times. */
export function isBehind(sql: Sql, { createdAt, code }: Position, place: string): Fragment {
  return sql`
    (created_at, ${sql(place)} COLLATE "C") < (${createdAt}::text::timestamptz, ${code}::text COLLATE "C")`;
}

function bothStates(sql: Sql, query: PageQuery, most: number): Fragment {
  const [active, revoked] = (["active", "revoked"] as const).map((state) =>
    selectLinks(sql, sql`link ${inState(sql, query, state)}`, most),
  );
  return sql`
    SELECT * FROM ((${active ?? sql``}) UNION ALL (${revoked ?? sql``})) AS either
     ORDER BY at DESC, place DESC LIMIT ${most}`;
}

type Scan = { links: Fragment; edge: Fragment };

/** The index of tags says which links; each is then looked up by its code. */
function scanTag(sql: Sql, query: PageQuery, tag: string): Scan {
  const tagged = sql`link_tag WHERE owner = ${query.owner} AND tag = ${tag} ${withinTimes(sql, query)}`;
  // OFFSET 0 keeps the planner from joining the other way round, which would read every link there is. So would a
  // comparison by the collation of the listing: the primary key has the database's own.
  const links = sql`
    SELECT one.* FROM (SELECT code, created_at FROM ${tagged} ORDER BY ${sql.unsafe(ORDER)} LIMIT ${SCAN_MAX}) AS tagged
     CROSS JOIN LATERAL (SELECT ${linkColumns(sql)}, created_at AS at, code COLLATE "C" AS place
                           FROM link WHERE link.code = tagged.code COLLATE "default" OFFSET 0) AS one
     ORDER BY tagged.created_at DESC, tagged.code COLLATE "C" DESC`;
  return { links, edge: tagged };
}

function plainPage(sql: Sql, links: Fragment): Fragment {
  return sql`
    SELECT ${linkNames(sql)}, NULL::text AS "edgeAt", NULL::text AS "edgeCode" FROM (${links}) AS page
     ORDER BY at DESC, place DESC`;
}

/** Filters a scan. Where it is at its bound before the page is full, the next page starts at its edge. */
function boundedPage(sql: Sql, query: PageQuery, { links, edge }: Scan): Fragment {
  return sql`
    WITH page AS MATERIALIZED (SELECT * FROM (${links}) AS scanned WHERE ${passes(sql, query.filter.state)}
                                LIMIT ${query.limit + 1}),
         edge AS (SELECT created_at, code FROM ${edge} AND (SELECT count(*) FROM page) <= ${query.limit}
                   ORDER BY ${sql.unsafe(ORDER)} OFFSET ${SCAN_MAX - 1} LIMIT 1)
    SELECT ${linkNames(sql)}, edge."edgeAt", edge."edgeCode"
      FROM (SELECT 1) AS always
      LEFT JOIN (SELECT ${utcText(sql, "created_at")} AS "edgeAt", code AS "edgeCode" FROM edge) AS edge ON true
      LEFT JOIN page ON true
     ORDER BY page.at DESC, page.place DESC`;
}

/** Judged on the columns of the scan, so that a link says the same of itself that it was chosen for. */
function passes(sql: Sql, state: ListState | null): Fragment {
  if (state === null) return sql`true`;
  return {
    active: sql`state = 'ACTIVE' AND NOT expired`,
    revoked: sql`state = 'REVOKED'`,
    expired: sql`state = 'ACTIVE' AND expired`,
  }[state];
}

/** The names that `linkColumns` gives. */
function linkNames(sql: Sql): Fragment {
  return sql`
    page.code, target, kind, state, expired, version, owner, title, tags, note, "createdAt", "createdBy", "expiresAt",
    "revokedAt", "revokedBy"`;
}
