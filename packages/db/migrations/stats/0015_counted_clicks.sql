-- Whoever sends clicks counts them first: what a batch adds to the roll-ups comes beside it, so that the database need not
-- group its clicks. What was counted holds for the batch as a whole; where a click of it is there already, the others are
-- counted here, as before.

-- Adds counts to the roll-ups. Of days: code, day (since 1970) and people. Of hours: code, hour (since 1970), owner, twelve
-- counters (people, bots, prefetches, each by quarter), and what the people came from and with, as `cells` and `recent` are.
-- Of owners: owner, hour and twelve counters. No key twice. The last ones are the clicks, which busy days look at.
-- Statement by statement, each in the order of its keys: days, hours, owners. Writers that meet wait for each other in this
-- one order and cannot deadlock; what many have in common, the owner's row, is held for the shortest time.
-- Rows are looked up one by one, whatever the planner expects of the arrays and of tables that nobody has analysed yet.
CREATE FUNCTION add_roll_ups(
  p_day_codes text[], p_days integer[], p_day_people integer[],
  p_hour_codes text[], p_hours integer[], p_hour_owners text[], p_hour_counts integer[], p_hour_cells text[],
  p_hour_recent text[], p_hourly_owners text[], p_owner_hours integer[], p_owner_counts integer[],
  p_times bigint[], p_codes text[], p_referrers text[], p_browsers text[], p_systems text[], p_devices text[],
  p_countries text[], p_bots boolean[], p_prefetches boolean[], p_values_max integer
) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_days date[];
  v_codes text[];
BEGIN
  WITH added AS (
    INSERT INTO click_day AS d (day, code, people)
    SELECT date '1970-01-01' + c.day, c.code, c.people
      FROM unnest(p_day_codes, p_days, p_day_people) AS c(code, day, people)
     ORDER BY c.day, c.code COLLATE "C"
        ON CONFLICT (day, code) DO UPDATE SET people = d.people + excluded.people
    RETURNING d.day, d.code, d.people)
  SELECT array_agg(day), array_agg(code) INTO v_days, v_codes FROM added WHERE people > p_values_max;

  -- From here on the rows above keep everybody else from the hours of these codes and days.
  IF v_days IS NOT NULL THEN
    SELECT days, codes INTO v_days, v_codes
      FROM learn_click_values(v_days, v_codes, p_times, p_codes, p_referrers, p_browsers, p_systems, p_devices,
                              p_countries, p_bots, p_prefetches, p_values_max);
  END IF;

  INSERT INTO click_hour AS h (
    code, hour, owner, people_q0, people_q1, people_q2, people_q3, bots_q0, bots_q1, bots_q2, bots_q3,
    prefetches_q0, prefetches_q1, prefetches_q2, prefetches_q3, cells, recent)
  SELECT code, to_timestamp(hour::bigint * 3600), owner,
         p_hour_counts[n][1], p_hour_counts[n][2], p_hour_counts[n][3], p_hour_counts[n][4],
         p_hour_counts[n][5], p_hour_counts[n][6], p_hour_counts[n][7], p_hour_counts[n][8],
         p_hour_counts[n][9], p_hour_counts[n][10], p_hour_counts[n][11], p_hour_counts[n][12], cells, recent
    FROM unnest(p_hour_codes, p_hours, p_hour_owners, p_hour_cells, p_hour_recent) WITH ORDINALITY
      AS hours(code, hour, owner, cells, recent, n)
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
      FROM (SELECT hour / 24 AS day, code, to_timestamp(hour::bigint * 3600) AS at
              FROM unnest(p_hour_codes, p_hours) AS u(code, hour)) AS c
      JOIN unnest(v_days, v_codes) AS full_days(day, code)
        ON full_days.day = date '1970-01-01' + c.day AND full_days.code = c.code
      JOIN click_day d ON d.day = full_days.day AND d.code = full_days.code
     WHERE h.code = c.code AND h.hour = c.at;
  END IF;

  INSERT INTO owner_hour AS h (
    owner, hour, people_q0, people_q1, people_q2, people_q3, bots_q0, bots_q1, bots_q2, bots_q3,
    prefetches_q0, prefetches_q1, prefetches_q2, prefetches_q3)
  SELECT owner, to_timestamp(hour::bigint * 3600),
         p_owner_counts[n][1], p_owner_counts[n][2], p_owner_counts[n][3], p_owner_counts[n][4],
         p_owner_counts[n][5], p_owner_counts[n][6], p_owner_counts[n][7], p_owner_counts[n][8],
         p_owner_counts[n][9], p_owner_counts[n][10], p_owner_counts[n][11], p_owner_counts[n][12]
    FROM unnest(p_hourly_owners, p_owner_hours) WITH ORDINALITY AS hours(owner, hour, n)
   ORDER BY owner COLLATE "C", hour
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

-- Counts clicks that were just stored, and adds them to the roll-ups; each array has one element a click, and times are in
-- ms. `recent` has a line for each person; many people in one hour are added up at once.
CREATE OR REPLACE FUNCTION roll_up_clicks(
  p_times bigint[], p_codes text[], p_owners text[], p_referrers text[], p_browsers text[], p_systems text[],
  p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[], p_values_max integer
) RETURNS void
LANGUAGE sql AS $$
  WITH clicks AS MATERIALIZED (
    SELECT (at / 3600000)::integer AS hour, code, owner,
           at / 900000 % 4 + CASE WHEN bot THEN 4 WHEN prefetch THEN 8 ELSE 0 END AS kind,
           CASE WHEN bot OR prefetch THEN NULL
                WHEN strpos(fields, 'other') = 0 AND strpos(fields, E'\n') = 0 AND strpos(fields, E'\\') = 0
                     AND strpos(referrer || browser || os || device || country, E'\t') = 0 THEN fields
                ELSE concat_ws(E'\t', write_cell_value(click_value(referrer)), write_cell_value(click_value(browser)),
                               write_cell_value(click_value(os)), write_cell_value(click_value(device)),
                               write_cell_value(click_value(country))) END AS fields
      FROM (SELECT *, referrer || E'\t' || browser || E'\t' || os || E'\t' || device || E'\t' || country AS fields
              FROM unnest(p_times, p_codes, p_owners, p_referrers, p_browsers, p_systems, p_devices, p_countries, p_bots,
                          p_prefetches) AS u(at, code, owner, referrer, browser, os, device, country, bot, prefetch)
            OFFSET 0) AS u),
  days AS (
    SELECT array_agg(code) AS codes, array_agg(day) AS days, array_agg(people) AS people
      FROM (SELECT code, hour / 24 AS day, (count(*) FILTER (WHERE kind < 4))::integer AS people
              FROM clicks GROUP BY code, hour / 24) AS d),
  hours AS (
    SELECT array_agg(code) AS codes, array_agg(hour) AS hours, array_agg(owner) AS owners, array_agg(counts) AS counts,
           array_agg(CASE WHEN octet_length(lines) > 4000 THEN add_up_cells('', lines) ELSE '' END) AS cells,
           array_agg(CASE WHEN octet_length(lines) > 4000 THEN '' ELSE coalesce(lines, '') END) AS recent
      FROM (SELECT code, hour, max(owner) AS owner,
                   ARRAY[count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1),
                         count(*) FILTER (WHERE kind = 2), count(*) FILTER (WHERE kind = 3),
                         count(*) FILTER (WHERE kind = 4), count(*) FILTER (WHERE kind = 5),
                         count(*) FILTER (WHERE kind = 6), count(*) FILTER (WHERE kind = 7),
                         count(*) FILTER (WHERE kind = 8), count(*) FILTER (WHERE kind = 9),
                         count(*) FILTER (WHERE kind = 10), count(*) FILTER (WHERE kind = 11)]::integer[] AS counts,
                   string_agg(kind || E'\t' || fields || E'\n', '') FILTER (WHERE kind < 4) AS lines
              FROM clicks GROUP BY code, hour) AS h),
  owners AS (
    SELECT array_agg(owner) AS owners, array_agg(hour) AS hours, array_agg(counts) AS counts
      FROM (SELECT owner, hour,
                   ARRAY[count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1),
                         count(*) FILTER (WHERE kind = 2), count(*) FILTER (WHERE kind = 3),
                         count(*) FILTER (WHERE kind = 4), count(*) FILTER (WHERE kind = 5),
                         count(*) FILTER (WHERE kind = 6), count(*) FILTER (WHERE kind = 7),
                         count(*) FILTER (WHERE kind = 8), count(*) FILTER (WHERE kind = 9),
                         count(*) FILTER (WHERE kind = 10), count(*) FILTER (WHERE kind = 11)]::integer[] AS counts
              FROM clicks WHERE owner IS NOT NULL GROUP BY owner, hour) AS o)
  SELECT add_roll_ups(days.codes, days.days, days.people, hours.codes, hours.hours, hours.owners, hours.counts, hours.cells,
                      hours.recent, owners.owners, owners.hours, owners.counts, p_times, p_codes, p_referrers, p_browsers,
                      p_systems, p_devices, p_countries, p_bots, p_prefetches, p_values_max)
    FROM days, hours, owners
$$;

-- Stores a batch of clicks, and adds what was counted of them to the roll-ups, in one round trip and one transaction. The
-- first twelve arrays have one element a click, and the others are as `add_roll_ups` takes them; times are in ms. Returns
-- the ids that had been stored before: usually none.
-- lock_timeout hangs on the function because a setting made within the same statement would come too late: the table is
-- locked when the INSERT is prepared. The INSERT is prepared in here, where the setting holds already.
-- Rows go in by id, so that two writers with the same clicks wait for each other in one order and cannot deadlock.
-- clicked_at is exact: a number of ms times one ms stays below 2^53 microseconds until the year 2255.
-- A day without a partition fails as CK001, before anything is stored: its clicks are not at fault. The lock is the one
-- that the INSERT takes anyway; from then on, no partition can leave.
-- Plans are generic, as planning for thousands of values anew costs more than it brings; work_mem holds what is sorted of a
-- batch of 20,000 clicks, and its groups where they are counted here: about 40 MB at the most.
CREATE FUNCTION store_counted_clicks(
  p_ids uuid[], p_versions bigint[], p_times bigint[], p_codes text[], p_owners text[], p_referrers text[],
  p_browsers text[], p_systems text[], p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[],
  p_day_codes text[], p_days integer[], p_day_people integer[],
  p_hour_codes text[], p_hours integer[], p_hour_owners text[], p_hour_counts integer[], p_hour_cells text[],
  p_hour_recent text[], p_hourly_owners text[], p_owner_hours integer[], p_owner_counts integer[], p_values_max integer
) RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
SET lock_timeout = '200ms' SET plan_cache_mode = force_generic_plan SET work_mem = '64MB' SET jit = off AS $$
DECLARE
  v_missing date;
BEGIN
  LOCK TABLE click IN ROW EXCLUSIVE MODE;
  SELECT min(date '1970-01-01' + day) INTO v_missing
    FROM (SELECT DISTINCT day FROM unnest(p_days) AS day OFFSET 0) AS days
   WHERE to_regclass('public.click_' || to_char(date '1970-01-01' + day, 'YYYYMMDD')) IS NULL;
  IF v_missing IS NOT NULL THEN
    RAISE EXCEPTION 'no partition for %', v_missing USING ERRCODE = 'CK001';
  END IF;

  -- Nearly always all of them are new. An INSERT that need not look for others first costs a quarter less.
  BEGIN
    INSERT INTO click (click_id, link_version, clicked_at, bot, prefetch, code, owner, referrer_host, browser, os, device,
                       country)
    SELECT id, version, timestamptz 'epoch' + at * interval '1 ms', bot, prefetch, code, owner, referrer, browser, os,
           device, country
      FROM unnest(p_ids, p_versions, p_times, p_bots, p_prefetches, p_codes, p_owners, p_referrers, p_browsers, p_systems,
                  p_devices, p_countries)
        AS batch(id, version, at, bot, prefetch, code, owner, referrer, browser, os, device, country)
     ORDER BY id;
    PERFORM add_roll_ups(p_day_codes, p_days, p_day_people, p_hour_codes, p_hours, p_hour_owners, p_hour_counts,
                         p_hour_cells, p_hour_recent, p_hourly_owners, p_owner_hours, p_owner_counts, p_times, p_codes,
                         p_referrers, p_browsers, p_systems, p_devices, p_countries, p_bots, p_prefetches, p_values_max);
    RETURN '{}';
  EXCEPTION WHEN unique_violation THEN
    -- One was stored before, or comes twice: nothing of this has happened, and what was counted does not hold.
    NULL;
  END;
  RETURN store_clicks(p_ids, p_versions, p_times, p_codes, p_owners, p_referrers, p_browsers, p_systems, p_devices,
                      p_countries, p_bots, p_prefetches, p_values_max);
END
$$;
