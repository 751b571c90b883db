// The values that most people had. Whole UTC days come from what was added up by the day, where that was done and nobody has
// come since; the stretches between those days, and the hours at the ends, from the hours. No day is read twice, as all of
// it is one statement.
import type { Sql } from "@linkfence/db";
import type { SumsRequest } from "../domain/stats-request.ts";
import { endsOf, time } from "./stats-times.ts";

const QUARTERS_OF_DAY = 96;

/** A list of [dimension, value, people], as JSON, each dimension with its greatest first. */
export function selectTops(sql: Sql, code: string, request: SumsRequest) {
  return sql`
    (WITH added AS MATERIALIZED (${selectAddedDays(sql, code, request)}),
          stretch AS MATERIALIZED (${selectStretches(sql, request)})
     SELECT json_agg(json_build_array(dimension, value, people) ORDER BY dimension, place)
       FROM (SELECT dimension, value, people,
                    row_number() OVER (PARTITION BY dimension ORDER BY people DESC, value) AS place
               FROM (SELECT dimension, value, sum(people) AS people
                       FROM (SELECT v.dimension, v.value, v.people FROM generate_series(1, 5) AS d(n)
                              CROSS JOIN LATERAL (${selectDays(sql, code, request)}) AS v
                              UNION ALL
                             SELECT h.dimension, h.value, h.people
                               FROM stretch CROSS JOIN LATERAL (${selectHours(sql, code, request)}) AS h) AS found
                      WHERE value <> 'other' GROUP BY dimension, value) AS sums
              WHERE people > 0) AS ranked
      WHERE place <= ${request.top}::int)`;
}

/** Days that lie in the period whole. */
function days(sql: Sql, request: SumsRequest) {
  const { from, to } = endsOf(request);
  const date = (day: number) => sql`date '1970-01-01' + ${day}::int`;
  return sql`
    day >= ${date(Math.ceil(from / QUARTERS_OF_DAY))} AND day < ${date(Math.floor(to / QUARTERS_OF_DAY))}`;
}

/** One walk along the index for each dimension; in this form days are looked up in a hash table, whatever the planner expects. */
function selectDays(sql: Sql, code: string, request: SumsRequest) {
  return sql`
    SELECT dimension, value, people FROM click_day_value
     WHERE code = ${code} AND dimension = n::smallint AND ${days(sql, request)}
       AND (day IN (SELECT a.day FROM added a)) IS TRUE OFFSET 0`;
}

/** A day whose row is gone is older than what is kept of single clicks, and gets no more of them. */
function selectAddedDays(sql: Sql, code: string, request: SumsRequest) {
  return sql`
    SELECT day FROM (SELECT * FROM click_day_added WHERE code = ${code} AND ${days(sql, request)}) AS a
     WHERE coalesce((SELECT d.people FROM click_day d WHERE d.day = a.day AND d.code = a.code), a.people) = a.people`;
}

/** What lies between those days; all of the period where there are none. */
function selectStretches(sql: Sql, request: SumsRequest) {
  const { from, to } = endsOf(request);
  return sql`
    SELECT begins, ends
      FROM (SELECT coalesce(lag((day + 1)::timestamp) OVER (ORDER BY day) AT TIME ZONE 'UTC', ${time(sql, from - (from % 4))}) AS begins,
                   least(day::timestamp AT TIME ZONE 'UTC', ${time(sql, to)}) AS ends
              FROM (SELECT day FROM added UNION ALL SELECT date '9999-12-31') AS marks) AS between_days
     WHERE begins < ends`;
}

/** Only the first and the last hour may be cut; all others count whole. OFFSET 0 has each stretch looked up by the index. */
function selectHours(sql: Sql, code: string, request: SumsRequest) {
  const { from, to } = endsOf(request);
  const whole = sql`hour >= ${time(sql, Math.ceil(from / 4) * 4)} AND hour < ${time(sql, to - (to % 4))}`;
  const part = (quarter: number) => sql`
    CASE WHEN hour >= ${time(sql, from - quarter)} AND hour < ${time(sql, to - quarter)}
         THEN ${sql(`q${quarter}`)} ELSE 0 END`;
  return sql`
    SELECT dimension, value,
           CASE WHEN ${whole} THEN q0 + q1 + q2 + q3
                ELSE ${part(0)} + ${part(1)} + ${part(2)} + ${part(3)} END AS people
      FROM click_hour_value
     WHERE code = ${code} AND hour >= begins AND hour < ends OFFSET 0`;
}
