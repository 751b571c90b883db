// The statements behind statistics. Times are numbers of quarters of an hour since 1970, as roll-ups are kept by those.
import type { ClickRecord } from "@linkfence/contracts";
import type { Sql } from "@linkfence/db";
import type { ClicksRequest, SumsRequest } from "../domain/stats-request.ts";
import { type Bounded, endsOf, hours, SECONDS, time } from "./stats-times.ts";
import { selectTops } from "./stats-values.ts";

export type SumsRow = { steps: unknown; tops: unknown; drops: unknown };
export type OwnerLink = { code: string; total: number; bots: number; prefetches: number };

/** Sums of the steps, the values that most people had, and what was dropped; as JSON, each a list of lists. */
export function selectSums(
  sql: Sql,
  key: { code: string } | { owner: string },
  request: SumsRequest & { literal: string },
) {
  const rows =
    "code" in key
      ? sql`click_hour WHERE code = ${key.code} AND ${hours(sql, request)}`
      : sql`owner_hour WHERE owner = ${key.owner} AND ${hours(sql, request)}`;
  const tops = "code" in key && request.top > 0 ? selectTops(sql, key.code, request) : sql`NULL::json`;
  return sql<SumsRow[]>`
    SELECT (SELECT json_agg(json_build_array(step, total, bots, prefetches) ORDER BY step)
              FROM (SELECT width_bucket(quarter, ${request.literal}::bigint[]) AS step, sum(people) AS total,
                           sum(q.bots) AS bots, sum(q.prefetches) AS prefetches
                      FROM (SELECT *, (extract(epoch FROM hour) / ${SECONDS}::int)::bigint AS first FROM ${rows}) AS h
                     CROSS JOIN LATERAL (VALUES (first, people_q0, bots_q0, prefetches_q0),
                                                (first + 1, people_q1, bots_q1, prefetches_q1),
                                                (first + 2, people_q2, bots_q2, prefetches_q2),
                                                (first + 3, people_q3, bots_q3, prefetches_q3))
                             AS q(quarter, people, bots, prefetches)
                     GROUP BY 1) AS sums
             WHERE step BETWEEN 1 AND ${request.edges.length - 1}::int) AS steps,
           ${tops} AS tops,
           (${selectDrops(sql, request)}) AS drops`;
}

/** A drop is known to lie between two reports: it counts where any of that time is of the period. */
function selectDrops(sql: Sql, request: Bounded) {
  const { from, to } = endsOf(request);
  return sql`
    SELECT json_agg(json_build_array(reason, dropped) ORDER BY reason)
      FROM (SELECT reason, sum(dropped) AS dropped FROM click_drop
             WHERE hour >= ${time(sql, from - (from % 4))} AND since < ${time(sql, to)} GROUP BY reason) AS d`;
}

/** The links of an owner that most people followed. */
export function selectOwnerLinks(sql: Sql, owner: string, request: SumsRequest) {
  const { from, to } = endsOf(request);
  const sum = (kind: string) => {
    const part = (quarter: number) => sql`
      CASE WHEN hour >= ${time(sql, from - quarter)} AND hour < ${time(sql, to - quarter)}
           THEN ${sql(`${kind}_q${quarter}`)} ELSE 0 END`;
    return sql`sum(${part(0)} + ${part(1)} + ${part(2)} + ${part(3)})`;
  };
  return sql<OwnerLink[]>`
    SELECT * FROM (SELECT code, ${sum("people")} AS total, ${sum("bots")} AS bots, ${sum("prefetches")} AS prefetches
                     FROM click_hour WHERE owner = ${owner} AND ${hours(sql, request)} GROUP BY code) AS links
     WHERE total + bots + prefetches > 0
     ORDER BY total DESC, code LIMIT ${request.top}::int`;
}

/** Partitions lie in the order of the ids, and so does each one's index: what is not read is not looked at. */
export function selectClicks(sql: Sql, code: string, { limit, before }: ClicksRequest) {
  const start = before === null ? sql`` : sql`AND click_id < ${before}::uuid`;
  return sql<ClickRecord[]>`
    SELECT click_id AS id, to_char(clicked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "clickedAt",
           link_version AS version, nullif(referrer_host, '') AS referrer, nullif(browser, '') AS browser,
           nullif(os, '') AS system, nullif(device, '') AS device, nullif(country, '') AS country, bot, prefetch
      FROM click WHERE code = ${code} ${start} ORDER BY click_id DESC LIMIT ${limit}::int`;
}
