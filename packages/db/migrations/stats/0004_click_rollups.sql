-- What clicks add up to, by UTC hour. A counter is four, one for each quarter of the hour: all of today's time zones begin
-- their days at a quarter, so that the days of any of them can be told exactly.
-- A click is one of three: a bot's, else a prefetch, else a person's.
-- Rows of the current hour are written again and again: the room left in their pages keeps the indexes out of it.
CREATE TABLE click_hour (
  hour          timestamptz NOT NULL,
  people_q0     integer NOT NULL,
  people_q1     integer NOT NULL,
  people_q2     integer NOT NULL,
  people_q3     integer NOT NULL,
  bots_q0       integer NOT NULL,
  bots_q1       integer NOT NULL,
  bots_q2       integer NOT NULL,
  bots_q3       integer NOT NULL,
  prefetches_q0 integer NOT NULL,
  prefetches_q1 integer NOT NULL,
  prefetches_q2 integer NOT NULL,
  prefetches_q3 integer NOT NULL,
  code          text COLLATE "C" NOT NULL,
  owner         text COLLATE "C",
  PRIMARY KEY (code, hour)
) WITH (fillfactor = 80);
-- For the links of one owner.
CREATE INDEX click_hour_owner ON click_hour (owner, hour) WHERE owner IS NOT NULL;

-- People only, by what they came from and with. Dimensions: 1 referrer's host, 2 browser, 3 operating system, 4 device,
-- 5 country. Unknown is ''. What a code has too many values of in a day counts as `other`, and a value that is that word
-- has a tilde before it, as has one that begins so (see click_value). Values of an hour sum up to its people.
CREATE TABLE click_hour_value (
  hour      timestamptz NOT NULL,
  q0        integer NOT NULL,
  q1        integer NOT NULL,
  q2        integer NOT NULL,
  q3        integer NOT NULL,
  dimension smallint NOT NULL,
  code      text COLLATE "C" NOT NULL,
  value     text COLLATE "C" NOT NULL,
  PRIMARY KEY (code, dimension, hour, value)
) WITH (fillfactor = 80);

CREATE TABLE owner_hour (
  hour          timestamptz NOT NULL,
  people_q0     integer NOT NULL,
  people_q1     integer NOT NULL,
  people_q2     integer NOT NULL,
  people_q3     integer NOT NULL,
  bots_q0       integer NOT NULL,
  bots_q1       integer NOT NULL,
  bots_q2       integer NOT NULL,
  bots_q3       integer NOT NULL,
  prefetches_q0 integer NOT NULL,
  prefetches_q1 integer NOT NULL,
  prefetches_q2 integer NOT NULL,
  prefetches_q3 integer NOT NULL,
  owner         text COLLATE "C" NOT NULL,
  PRIMARY KEY (owner, hour)
) WITH (fillfactor = 80);

-- A code's UTC day. Whoever adds to the roll-ups of a code and day holds this row first, so that all below it belongs to
-- one writer at a time, and the different values of a day can be counted and bounded exactly.
-- A day has at most as many different values as people. Once these are more than the limit, value_bounds says of each
-- dimension how many values there may be at the most: each new row of an hour raises it, and counting brings it down.
CREATE TABLE click_day (
  day          date NOT NULL,
  people       integer NOT NULL,
  code         text COLLATE "C" NOT NULL,
  value_bounds integer[],
  PRIMARY KEY (day, code)
) WITH (fillfactor = 80);

-- How a value is stored, so that it cannot be mistaken for the rest.
CREATE FUNCTION click_value(value text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN right(value, 5) = 'other' AND value ~ '^~*other$' THEN '~' || value ELSE value END
$$;

-- Holds one dimension of a code's day within p_max values: counts them, and moves what this transaction's new rows
-- (p_hours, p_values) added beyond the limit to `other`. The new rows hold nothing but this transaction's clicks.
-- Returns the number of different values; `other` is none.
CREATE FUNCTION bound_click_values(
  p_code text, p_day date, p_dimension smallint, p_hours timestamptz[], p_values text[], p_max integer
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_from timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
  v_known integer;
  v_folded text[];
BEGIN
  SELECT count(DISTINCT value) INTO v_known FROM click_hour_value
   WHERE code = p_code AND dimension = p_dimension AND hour >= v_from AND hour < v_from + interval '1 day'
     AND value <> 'other';
  IF v_known <= p_max THEN RETURN v_known; END IF;

  -- Values that have no row in this day but new ones.
  SELECT array_agg(value) INTO v_folded FROM (
    SELECT v.value FROM click_hour_value v
      LEFT JOIN unnest(p_hours, p_values) AS added(hour, value) ON added.hour = v.hour AND added.value = v.value
     WHERE v.code = p_code AND v.dimension = p_dimension
       AND v.hour >= v_from AND v.hour < v_from + interval '1 day' AND v.value <> 'other'
     GROUP BY v.value HAVING count(*) = count(added.value)
     ORDER BY v.value DESC LIMIT v_known - p_max) AS fresh;
  IF v_folded IS NULL THEN RETURN v_known; END IF;

  WITH folded AS (
    DELETE FROM click_hour_value
     WHERE code = p_code AND dimension = p_dimension
       AND hour >= v_from AND hour < v_from + interval '1 day' AND value = ANY (v_folded)
    RETURNING hour, q0, q1, q2, q3)
  INSERT INTO click_hour_value AS v (hour, q0, q1, q2, q3, dimension, code, value)
  SELECT hour, sum(q0), sum(q1), sum(q2), sum(q3), p_dimension, p_code, 'other' FROM folded GROUP BY hour ORDER BY hour
      ON CONFLICT (code, dimension, hour, value) DO UPDATE
     SET q0 = v.q0 + excluded.q0, q1 = v.q1 + excluded.q1, q2 = v.q2 + excluded.q2, q3 = v.q3 + excluded.q3;
  RETURN v_known - cardinality(v_folded);
END
$$;

-- Adds clicks that were just stored to the roll-ups; each array has one element a click, and times are in ms.
-- Statement by statement, each in the order of its keys: days, hours, values, owners. Writers that meet wait for each
-- other in this one order and cannot deadlock; what many have in common, the owner's row, is held for the shortest time.
CREATE FUNCTION roll_up_clicks(
  p_times bigint[], p_codes text[], p_owners text[], p_referrers text[], p_browsers text[], p_systems text[],
  p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[], p_values_max integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_days date[];
  v_codes text[];
  v_new_codes text[];
  v_new_dimensions smallint[];
  v_new_hours timestamptz[];
  v_new_values text[];
  v_row record;
  v_bounds integer[];
BEGIN
  WITH added AS (
    INSERT INTO click_day AS d (day, code, people)
    SELECT date '1970-01-01' + c.day, c.code, count(*) FILTER (WHERE NOT c.bot AND NOT c.prefetch)
      FROM (SELECT (at / 86400000)::integer AS day, code, bot, prefetch
              FROM unnest(p_times, p_codes, p_bots, p_prefetches) AS u(at, code, bot, prefetch)) AS c
     GROUP BY c.day, c.code ORDER BY c.day, c.code COLLATE "C"
        ON CONFLICT (day, code) DO UPDATE SET people = d.people + excluded.people
    RETURNING d.day, d.code, d.people)
  SELECT array_agg(day), array_agg(code) INTO v_days, v_codes FROM added WHERE people > p_values_max;

  INSERT INTO click_hour AS h (
    code, hour, owner, people_q0, people_q1, people_q2, people_q3, bots_q0, bots_q1, bots_q2, bots_q3,
    prefetches_q0, prefetches_q1, prefetches_q2, prefetches_q3)
  SELECT c.code, to_timestamp(c.hour * 3600), max(c.owner),
         count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1),
         count(*) FILTER (WHERE kind = 2), count(*) FILTER (WHERE kind = 3),
         count(*) FILTER (WHERE kind = 4), count(*) FILTER (WHERE kind = 5),
         count(*) FILTER (WHERE kind = 6), count(*) FILTER (WHERE kind = 7),
         count(*) FILTER (WHERE kind = 8), count(*) FILTER (WHERE kind = 9),
         count(*) FILTER (WHERE kind = 10), count(*) FILTER (WHERE kind = 11)
    FROM (SELECT at / 3600000 AS hour, code, owner,
                 at / 900000 % 4 + CASE WHEN bot THEN 4 WHEN prefetch THEN 8 ELSE 0 END AS kind
            FROM unnest(p_times, p_codes, p_owners, p_bots, p_prefetches) AS u(at, code, owner, bot, prefetch)) AS c
   GROUP BY c.code, c.hour ORDER BY c.code COLLATE "C", c.hour
      ON CONFLICT (code, hour) DO UPDATE SET
         owner = coalesce(excluded.owner, h.owner),
         people_q0 = h.people_q0 + excluded.people_q0, people_q1 = h.people_q1 + excluded.people_q1,
         people_q2 = h.people_q2 + excluded.people_q2, people_q3 = h.people_q3 + excluded.people_q3,
         bots_q0 = h.bots_q0 + excluded.bots_q0, bots_q1 = h.bots_q1 + excluded.bots_q1,
         bots_q2 = h.bots_q2 + excluded.bots_q2, bots_q3 = h.bots_q3 + excluded.bots_q3,
         prefetches_q0 = h.prefetches_q0 + excluded.prefetches_q0,
         prefetches_q1 = h.prefetches_q1 + excluded.prefetches_q1,
         prefetches_q2 = h.prefetches_q2 + excluded.prefetches_q2,
         prefetches_q3 = h.prefetches_q3 + excluded.prefetches_q3;

  -- A row that was not there before has no older version (xmax); only those of busy days matter.
  WITH added AS (
    INSERT INTO click_hour_value AS v (code, dimension, hour, value, q0, q1, q2, q3)
    SELECT c.code, c.dimension, to_timestamp(c.hour * 3600), click_value(c.value),
           count(*) FILTER (WHERE quarter = 0), count(*) FILTER (WHERE quarter = 1),
           count(*) FILTER (WHERE quarter = 2), count(*) FILTER (WHERE quarter = 3)
      FROM (SELECT at / 3600000 AS hour, at / 900000 % 4 AS quarter, code, dimension, value
              FROM unnest(p_times, p_codes, p_referrers, p_browsers, p_systems, p_devices, p_countries, p_bots,
                          p_prefetches) AS u(at, code, referrer, browser, os, device, country, bot, prefetch)
             CROSS JOIN LATERAL (VALUES (smallint '1', referrer), (smallint '2', browser), (smallint '3', os),
                                        (smallint '4', device), (smallint '5', country)) AS d(dimension, value)
             WHERE NOT bot AND NOT prefetch) AS c
     GROUP BY c.code, c.dimension, c.hour, c.value
     ORDER BY c.code COLLATE "C", c.dimension, c.hour, c.value COLLATE "C"
        ON CONFLICT (code, dimension, hour, value) DO UPDATE
       SET q0 = v.q0 + excluded.q0, q1 = v.q1 + excluded.q1, q2 = v.q2 + excluded.q2, q3 = v.q3 + excluded.q3
    RETURNING v.code, v.dimension, v.hour, v.value, v.xmax = 0 AS is_new)
  SELECT array_agg(code), array_agg(dimension), array_agg(hour), array_agg(value)
    INTO v_new_codes, v_new_dimensions, v_new_hours, v_new_values
    FROM added
   WHERE is_new AND value <> 'other'
     -- In this form it is looked up in a hash table, whatever the planner expects of the arrays.
     AND (((hour AT TIME ZONE 'UTC')::date, code) IN (SELECT * FROM unnest(v_days, v_codes))) IS TRUE;

  IF v_new_codes IS NOT NULL THEN
    FOR v_row IN
      WITH fresh AS (
        SELECT (hour AT TIME ZONE 'UTC')::date AS day, code,
               ARRAY[count(*) FILTER (WHERE dimension = 1), count(*) FILTER (WHERE dimension = 2),
                     count(*) FILTER (WHERE dimension = 3), count(*) FILTER (WHERE dimension = 4),
                     count(*) FILTER (WHERE dimension = 5)]::integer[] AS counts
          FROM unnest(v_new_codes, v_new_dimensions, v_new_hours) AS u(code, dimension, hour) GROUP BY 1, 2),
      raised AS (
        UPDATE click_day d
           SET value_bounds = ARRAY[value_bounds[1] + counts[1], value_bounds[2] + counts[2],
                                    value_bounds[3] + counts[3], value_bounds[4] + counts[4],
                                    value_bounds[5] + counts[5]]
          FROM fresh WHERE d.day = fresh.day AND d.code = fresh.code
        RETURNING d.day, d.code, value_bounds)
      SELECT day, code, value_bounds FROM raised
       WHERE value_bounds[1] IS NULL OR p_values_max < ANY (value_bounds)
    LOOP
      v_bounds := v_row.value_bounds;
      FOR v_dimension IN 1 .. 5 LOOP
        CONTINUE WHEN v_bounds[v_dimension] <= p_values_max;
        v_bounds[v_dimension] := (
          SELECT bound_click_values(v_row.code, v_row.day, v_dimension::smallint, array_agg(hour), array_agg(value),
                                    p_values_max)
            FROM unnest(v_new_codes, v_new_dimensions, v_new_hours, v_new_values) AS u(code, dimension, hour, value)
           WHERE code = v_row.code AND dimension = v_dimension AND (hour AT TIME ZONE 'UTC')::date = v_row.day);
      END LOOP;
      UPDATE click_day SET value_bounds = v_bounds WHERE day = v_row.day AND code = v_row.code;
    END LOOP;
  END IF;

  INSERT INTO owner_hour AS h (
    owner, hour, people_q0, people_q1, people_q2, people_q3, bots_q0, bots_q1, bots_q2, bots_q3,
    prefetches_q0, prefetches_q1, prefetches_q2, prefetches_q3)
  SELECT c.owner, to_timestamp(c.hour * 3600),
         count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1),
         count(*) FILTER (WHERE kind = 2), count(*) FILTER (WHERE kind = 3),
         count(*) FILTER (WHERE kind = 4), count(*) FILTER (WHERE kind = 5),
         count(*) FILTER (WHERE kind = 6), count(*) FILTER (WHERE kind = 7),
         count(*) FILTER (WHERE kind = 8), count(*) FILTER (WHERE kind = 9),
         count(*) FILTER (WHERE kind = 10), count(*) FILTER (WHERE kind = 11)
    FROM (SELECT at / 3600000 AS hour, owner,
                 at / 900000 % 4 + CASE WHEN bot THEN 4 WHEN prefetch THEN 8 ELSE 0 END AS kind
            FROM unnest(p_times, p_owners, p_bots, p_prefetches) AS u(at, owner, bot, prefetch)
           WHERE owner IS NOT NULL) AS c
   GROUP BY c.owner, c.hour ORDER BY c.owner COLLATE "C", c.hour
      ON CONFLICT (owner, hour) DO UPDATE SET
         people_q0 = h.people_q0 + excluded.people_q0, people_q1 = h.people_q1 + excluded.people_q1,
         people_q2 = h.people_q2 + excluded.people_q2, people_q3 = h.people_q3 + excluded.people_q3,
         bots_q0 = h.bots_q0 + excluded.bots_q0, bots_q1 = h.bots_q1 + excluded.bots_q1,
         bots_q2 = h.bots_q2 + excluded.bots_q2, bots_q3 = h.bots_q3 + excluded.bots_q3,
         prefetches_q0 = h.prefetches_q0 + excluded.prefetches_q0,
         prefetches_q1 = h.prefetches_q1 + excluded.prefetches_q1,
         prefetches_q2 = h.prefetches_q2 + excluded.prefetches_q2,
         prefetches_q3 = h.prefetches_q3 + excluded.prefetches_q3;
END
$$;
