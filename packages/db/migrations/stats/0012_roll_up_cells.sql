-- Names values of busy days: of what these clicks bring, as many new ones as there is room for. The days are held by the
-- caller. Returns those for which there was no room for all.
CREATE FUNCTION learn_click_values(
  p_days date[], p_day_codes text[], p_times bigint[], p_codes text[], p_referrers text[], p_browsers text[],
  p_systems text[], p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[], p_values_max integer,
  OUT days date[], OUT codes text[]
)
LANGUAGE plpgsql AS $$
BEGIN
  -- A day that has become busy just now. What stands in its hours was below the limit.
  UPDATE click_day d SET known = found.known, known_counts = found.counts
    FROM (SELECT b.day, b.code, coalesce(jsonb_object_agg(v.dimension || v.value, 0) FILTER (WHERE v.value <> 'other'), '{}') AS known,
                 ARRAY[count(DISTINCT v.value) FILTER (WHERE v.dimension = 1 AND v.value <> 'other'),
                       count(DISTINCT v.value) FILTER (WHERE v.dimension = 2 AND v.value <> 'other'),
                       count(DISTINCT v.value) FILTER (WHERE v.dimension = 3 AND v.value <> 'other'),
                       count(DISTINCT v.value) FILTER (WHERE v.dimension = 4 AND v.value <> 'other'),
                       count(DISTINCT v.value) FILTER (WHERE v.dimension = 5 AND v.value <> 'other')]::integer[] AS counts
            FROM (SELECT n.day, n.code FROM click_day n
                   WHERE n.known IS NULL AND ((n.day, n.code) IN (SELECT * FROM unnest(p_days, p_day_codes)))
                  OFFSET 0) AS b
            LEFT JOIN LATERAL (
              SELECT dimension, value FROM click_hour_value h
               WHERE h.code = b.code AND h.hour >= b.day::timestamp AT TIME ZONE 'UTC'
                 AND h.hour < (b.day + 1)::timestamp AT TIME ZONE 'UTC' OFFSET 0) AS v ON true
           GROUP BY b.day, b.code) AS found
   WHERE d.day = found.day AND d.code = found.code;

  WITH came AS (
    SELECT day, code, array_agg('1' || click_value(referrer)) || array_agg('2' || click_value(browser))
                      || array_agg('3' || click_value(os)) || array_agg('4' || click_value(device))
                      || array_agg('5' || click_value(country)) AS keys
      FROM (SELECT date '1970-01-01' + (at / 86400000)::integer AS day, code, referrer, browser, os, device, country
              FROM unnest(p_times, p_codes, p_referrers, p_browsers, p_systems, p_devices, p_countries, p_bots,
                          p_prefetches) AS u(at, code, referrer, browser, os, device, country, bot, prefetch)
             WHERE NOT bot AND NOT prefetch OFFSET 0) AS c
     WHERE ((day, code) IN (SELECT * FROM unnest(p_days, p_day_codes))) IS TRUE
     GROUP BY day, code),
  lacking AS (
    SELECT d.day, d.code, d.known, d.known_counts, came.keys FROM came JOIN click_day d USING (day, code)
     WHERE NOT d.known ?& came.keys),
  fresh AS (
    SELECT day, code, key, left(key, 1)::integer AS dimension,
           row_number() OVER (PARTITION BY day, code, left(key, 1) ORDER BY key COLLATE "C")
             <= p_values_max - known_counts[left(key, 1)::integer] AS fits
      FROM (SELECT DISTINCT l.day, l.code, l.known_counts, key FROM lacking l CROSS JOIN LATERAL unnest(l.keys) AS key
             WHERE NOT l.known ? key) AS k),
  learnt AS (
    UPDATE click_day d
       SET known = d.known || f.named,
           known_counts = ARRAY[d.known_counts[1] + f.n1, d.known_counts[2] + f.n2, d.known_counts[3] + f.n3,
                                d.known_counts[4] + f.n4, d.known_counts[5] + f.n5]
      FROM (SELECT day, code, coalesce(jsonb_object_agg(key, 0) FILTER (WHERE fits), '{}') AS named,
                   count(*) FILTER (WHERE fits AND dimension = 1) AS n1, count(*) FILTER (WHERE fits AND dimension = 2) AS n2,
                   count(*) FILTER (WHERE fits AND dimension = 3) AS n3, count(*) FILTER (WHERE fits AND dimension = 4) AS n4,
                   count(*) FILTER (WHERE fits AND dimension = 5) AS n5, NOT bool_and(fits) AS has_more
              FROM fresh GROUP BY day, code) AS f
     WHERE d.day = f.day AND d.code = f.code
    RETURNING d.day, d.code, f.has_more)
  SELECT array_agg(day), array_agg(code) INTO days, codes FROM learnt WHERE has_more;
END
$$;

-- Adds clicks that were just stored to the roll-ups; each array has one element a click, and times are in ms.
-- Statement by statement, each in the order of its keys: days, hours, owners. Writers that meet wait for each other in this
-- one order and cannot deadlock; what many have in common, the owner's row, is held for the shortest time.
-- Rows are looked up one by one, whatever the planner expects of the arrays and of tables that nobody has analysed yet.
CREATE OR REPLACE FUNCTION roll_up_clicks(
  p_times bigint[], p_codes text[], p_owners text[], p_referrers text[], p_browsers text[], p_systems text[],
  p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[], p_values_max integer
) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_days date[];
  v_codes text[];
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

  -- From here on the rows above keep everybody else from the hours of these codes and days.
  IF v_days IS NOT NULL THEN
    SELECT days, codes INTO v_days, v_codes
      FROM learn_click_values(v_days, v_codes, p_times, p_codes, p_referrers, p_browsers, p_systems, p_devices,
                              p_countries, p_bots, p_prefetches, p_values_max);
  END IF;

  -- Many people in one hour are added up at once.
  INSERT INTO click_hour AS h (
    code, hour, owner, people_q0, people_q1, people_q2, people_q3, bots_q0, bots_q1, bots_q2, bots_q3,
    prefetches_q0, prefetches_q1, prefetches_q2, prefetches_q3, cells, recent)
  SELECT code, to_timestamp(hour * 3600), owner, k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11,
         CASE WHEN octet_length(lines) > 4000 THEN add_up_cells('', lines) ELSE '' END,
         CASE WHEN octet_length(lines) > 4000 THEN '' ELSE coalesce(lines, '') END
    FROM (SELECT c.code, c.hour, max(c.owner) AS owner,
                 count(*) FILTER (WHERE kind = 0) AS k0, count(*) FILTER (WHERE kind = 1) AS k1,
                 count(*) FILTER (WHERE kind = 2) AS k2, count(*) FILTER (WHERE kind = 3) AS k3,
                 count(*) FILTER (WHERE kind = 4) AS k4, count(*) FILTER (WHERE kind = 5) AS k5,
                 count(*) FILTER (WHERE kind = 6) AS k6, count(*) FILTER (WHERE kind = 7) AS k7,
                 count(*) FILTER (WHERE kind = 8) AS k8, count(*) FILTER (WHERE kind = 9) AS k9,
                 count(*) FILTER (WHERE kind = 10) AS k10, count(*) FILTER (WHERE kind = 11) AS k11,
                 string_agg(kind || E'\t' || fields || E'\n', '') FILTER (WHERE kind < 4) AS lines
            FROM (SELECT at / 3600000 AS hour, code, owner,
                         at / 900000 % 4 + CASE WHEN bot THEN 4 WHEN prefetch THEN 8 ELSE 0 END AS kind,
                         CASE WHEN bot OR prefetch THEN NULL
                              WHEN strpos(fields, 'other') = 0 AND strpos(fields, E'\n') = 0 AND strpos(fields, E'\\') = 0
                                   AND strpos(referrer || browser || os || device || country, E'\t') = 0 THEN fields
                              ELSE concat_ws(E'\t', write_cell_value(click_value(referrer)),
                                             write_cell_value(click_value(browser)), write_cell_value(click_value(os)),
                                             write_cell_value(click_value(device)), write_cell_value(click_value(country)))
                         END AS fields
                    FROM (SELECT *, referrer || E'\t' || browser || E'\t' || os || E'\t' || device || E'\t' || country
                                      AS fields
                            FROM unnest(p_times, p_codes, p_owners, p_referrers, p_browsers, p_systems, p_devices,
                                        p_countries, p_bots, p_prefetches)
                              AS u(at, code, owner, referrer, browser, os, device, country, bot, prefetch)
                         OFFSET 0) AS u) AS c
           GROUP BY c.code, c.hour) AS hours
   ORDER BY code COLLATE "C", hour
      ON CONFLICT (code, hour) DO UPDATE SET
         owner = coalesce(excluded.owner, h.owner),
         people_q0 = h.people_q0 + excluded.people_q0, people_q1 = h.people_q1 + excluded.people_q1,
         people_q2 = h.people_q2 + excluded.people_q2, people_q3 = h.people_q3 + excluded.people_q3,
         bots_q0 = h.bots_q0 + excluded.bots_q0, bots_q1 = h.bots_q1 + excluded.bots_q1,
         bots_q2 = h.bots_q2 + excluded.bots_q2, bots_q3 = h.bots_q3 + excluded.bots_q3,
         prefetches_q0 = h.prefetches_q0 + excluded.prefetches_q0,
         prefetches_q1 = h.prefetches_q1 + excluded.prefetches_q1,
         prefetches_q2 = h.prefetches_q2 + excluded.prefetches_q2,
         prefetches_q3 = h.prefetches_q3 + excluded.prefetches_q3,
         -- 1000 bytes are some twenty people: an hour that has fewer is never added up.
         cells = CASE WHEN octet_length(h.recent) + octet_length(excluded.recent) + octet_length(excluded.cells)
                           > greatest(1000, octet_length(h.cells))
                      THEN add_up_cells(h.cells || excluded.cells, h.recent || excluded.recent)
                      WHEN excluded.cells = '' THEN h.cells ELSE h.cells || excluded.cells END,
         recent = CASE WHEN octet_length(h.recent) + octet_length(excluded.recent) + octet_length(excluded.cells)
                            > greatest(1000, octet_length(h.cells))
                       THEN '' ELSE h.recent || excluded.recent END;

  -- Where a value came that is one too many.
  IF v_days IS NOT NULL THEN
    UPDATE click_hour h SET cells = bound_cells(h.cells, h.recent, d.known), recent = ''
      FROM (SELECT DISTINCT date '1970-01-01' + (at / 86400000)::integer AS day, code,
                   to_timestamp(at / 3600000 * 3600) AS hour
              FROM unnest(p_times, p_codes) AS u(at, code)) AS c
      JOIN unnest(v_days, v_codes) AS full_days(day, code) USING (day, code)
      JOIN click_day d USING (day, code)
     WHERE h.code = c.code AND h.hour = c.hour;
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
