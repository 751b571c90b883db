// Holds the roll-ups against the clicks themselves: for every code, owner, hour, quarter and dimension, what is added up
// must be the number of different click ids.
import type { TestDatabase } from "./database.ts";

/** Clicks with their UTC hour, quarter of it, and kind: 0 people, 1 bots, 2 prefetches. */
const CLICKS = `
  click_facts AS MATERIALIZED (
    SELECT *, date_trunc('hour', clicked_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS hour,
           (extract(minute FROM clicked_at AT TIME ZONE 'UTC')::int / 15) AS quarter,
           CASE WHEN bot THEN 1 WHEN prefetch THEN 2 ELSE 0 END AS kind
      FROM click)`;
const COUNTERS = ["people", "bots", "prefetches"]
  .flatMap((name, kind) => [0, 1, 2, 3].map((quarter) => `(${kind}, ${quarter}, ${name}_q${quarter})`))
  .join(", ");

/** Of one table of hours, by its key. */
const hoursOf = (table: string, key: string) => `
  WITH ${CLICKS},
  wanted AS (SELECT ${key}, hour, kind, quarter, count(DISTINCT click_id) AS n
               FROM click_facts WHERE ${key} IS NOT NULL GROUP BY 1, 2, 3, 4),
  stored AS (SELECT ${key}, hour, kind, quarter, n
               FROM ${table} CROSS JOIN LATERAL (VALUES ${COUNTERS}) AS c(kind, quarter, n) WHERE n <> 0)
  SELECT '${table} ' || ${key} || ' ' || hour || ': ' || coalesce(stored.n, 0) || ', not ' || coalesce(wanted.n, 0) AS fault
    FROM wanted FULL JOIN stored USING (${key}, hour, kind, quarter)
   WHERE wanted.n IS DISTINCT FROM stored.n`;

const VALUES = `
  wanted AS (
    SELECT code, dimension::smallint, hour, (hour AT TIME ZONE 'UTC')::date AS day, value, quarter,
           count(DISTINCT click_id) AS n
      FROM click_facts
     CROSS JOIN LATERAL (VALUES (1, referrer_host), (2, browser), (3, os), (4, device), (5, country))
        AS d(dimension, value)
     WHERE kind = 0 GROUP BY 1, 2, 3, 4, 5, 6),
  stored AS (
    SELECT code, dimension, hour, (hour AT TIME ZONE 'UTC')::date AS day, value, quarter, n
      FROM click_hour_value CROSS JOIN LATERAL (VALUES (0, q0), (1, q1), (2, q2), (3, q3)) AS c(quarter, n)
     WHERE n <> 0)`;

/** The values of an hour and a dimension have to sum up to its people, whatever was put together under `other`. */
const SUMS = `
  WITH ${CLICKS}, ${VALUES},
  sums AS (SELECT code, dimension, hour, quarter, sum(n) AS n FROM stored GROUP BY 1, 2, 3, 4),
  people AS (SELECT code, dimension, hour, quarter, sum(n) AS n FROM wanted GROUP BY 1, 2, 3, 4)
  SELECT 'values of ' || code || ' ' || dimension || ' ' || hour || ': ' || coalesce(sums.n, 0) || ', not '
         || coalesce(people.n, 0) AS fault
    FROM people FULL JOIN sums USING (code, dimension, hour, quarter) WHERE people.n IS DISTINCT FROM sums.n`;

/** Where a day has no more values than it may, each of them has its own exact count. */
const EXACT = (valuesMax: number) => `
  WITH ${CLICKS}, ${VALUES},
  days AS (SELECT code, dimension, day FROM wanted GROUP BY 1, 2, 3 HAVING count(DISTINCT value) <= ${valuesMax})
  SELECT 'value ' || value || ' of ' || code || ' ' || dimension || ' ' || hour AS fault
    FROM (SELECT code, dimension, day, hour, click_value(value) AS value, quarter, n FROM wanted JOIN days USING (code, dimension, day)) AS w
    FULL JOIN (SELECT * FROM stored JOIN days USING (code, dimension, day)) AS s
         USING (code, dimension, day, hour, value, quarter)
   WHERE w.n IS DISTINCT FROM s.n`;

/** Where there are more, each that is named has its own count or less, as it was one too many at first; and few are named. */
const BOUNDED = (valuesMax: number) => `
  WITH ${CLICKS}, ${VALUES}
  SELECT 'too many values of ' || code || ' ' || dimension || ' ' || day AS fault
    FROM stored WHERE value <> 'other' GROUP BY code, dimension, day HAVING count(DISTINCT value) > ${valuesMax}
  UNION ALL
  SELECT 'more of ' || value || ' of ' || code || ' ' || dimension || ' ' || hour || ' than there were'
    FROM stored LEFT JOIN (SELECT code, dimension, hour, click_value(value) AS value, quarter, n FROM wanted) AS w
         USING (code, dimension, hour, value, quarter)
   WHERE value <> 'other' AND stored.n > coalesce(w.n, 0)`;

/**
 * Compares every counter of the roll-ups with the clicks that are stored.
 * @param valuesMax different values a code, dimension and day at the most, as the ingest was told
 * @returns what is wrong, a sentence each; the first few of each kind
 */
export async function findRollupFaults({ sql }: Pick<TestDatabase, "sql">, valuesMax = 100): Promise<string[]> {
  const questions = [
    hoursOf("click_hour", "code"),
    hoursOf("owner_hour", "owner"),
    SUMS,
    EXACT(valuesMax),
    BOUNDED(valuesMax),
  ];
  const faults: string[] = [];
  for (const question of questions) {
    const rows = await sql.unsafe<{ fault: string }[]>(`${question} LIMIT 3`);
    faults.push(...rows.map(({ fault }) => fault));
  }
  return faults;
}
