-- Stores a batch of clicks and adds the new ones to the roll-ups, in one round trip and one transaction.
-- Each array has one element a click; times are in ms. Returns the ids that had been stored before: usually none. A click
-- that comes twice in one batch is stored once, as it came first.
--
-- lock_timeout hangs on the function because a setting made within the same statement would come too late: the table is
-- locked when the INSERT is prepared. The INSERT is prepared in here, where the setting holds already.
-- Rows go in by id, so that two writers with the same clicks wait for each other in one order and cannot deadlock.
-- clicked_at is exact: a number of ms times one ms stays below 2^53 microseconds until the year 2255.
-- A day without a partition fails as CK001, before anything is stored: its clicks are not at fault. The lock is the one
-- that the INSERT takes anyway; from then on, no partition can leave.
-- Plans are generic, as planning for thousands of values anew costs more than it brings; work_mem holds the groups of a
-- batch of 20,000 clicks, about 40 MB at the most.
CREATE OR REPLACE FUNCTION store_clicks(
  p_ids uuid[], p_versions bigint[], p_times bigint[], p_codes text[], p_owners text[], p_referrers text[],
  p_browsers text[], p_systems text[], p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[],
  p_values_max integer
) RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
SET lock_timeout = '200ms' SET plan_cache_mode = force_generic_plan SET work_mem = '64MB' SET jit = off AS $$
DECLARE
  v_missing date;
  v_new uuid[];
  v_before uuid[];
BEGIN
  LOCK TABLE click IN ROW EXCLUSIVE MODE;
  SELECT min(date '1970-01-01' + day) INTO v_missing
    FROM (SELECT DISTINCT (at / 86400000)::integer AS day FROM unnest(p_times) AS at OFFSET 0) AS days
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
    PERFORM roll_up_clicks(p_times, p_codes, p_owners, p_referrers, p_browsers, p_systems, p_devices, p_countries, p_bots,
                           p_prefetches, p_values_max);
    RETURN '{}';
  EXCEPTION WHEN unique_violation THEN
    -- One was stored before, or comes twice: nothing of this has happened, and each is looked at.
    NULL;
  END;

  WITH stored AS (
    INSERT INTO click (click_id, link_version, clicked_at, bot, prefetch, code, owner, referrer_host, browser, os, device,
                       country)
    SELECT id, version, timestamptz 'epoch' + at * interval '1 ms', bot, prefetch, code, owner, referrer, browser, os,
           device, country
      FROM unnest(p_ids, p_versions, p_times, p_bots, p_prefetches, p_codes, p_owners, p_referrers, p_browsers, p_systems,
                  p_devices, p_countries) WITH ORDINALITY
        AS batch(id, version, at, bot, prefetch, code, owner, referrer, browser, os, device, country, n)
     ORDER BY id, n
        ON CONFLICT (click_id) DO NOTHING
    RETURNING click_id)
  SELECT array_agg(click_id) INTO v_new FROM stored;

  IF v_new IS NULL THEN RETURN p_ids; END IF;

  PERFORM roll_up_clicks(array_agg(at), array_agg(code), array_agg(owner), array_agg(referrer), array_agg(browser),
                         array_agg(os), array_agg(device), array_agg(country), array_agg(bot), array_agg(prefetch),
                         p_values_max)
     FROM (SELECT DISTINCT ON (id) *
             FROM unnest(p_ids, p_times, p_codes, p_owners, p_referrers, p_browsers, p_systems, p_devices, p_countries,
                         p_bots, p_prefetches) WITH ORDINALITY
               AS batch(id, at, code, owner, referrer, browser, os, device, country, bot, prefetch, n)
            ORDER BY id, n) AS first
    WHERE (id IN (SELECT unnest(v_new))) IS TRUE;
  SELECT array_agg(DISTINCT id) INTO v_before
    FROM unnest(p_ids) AS id WHERE (id IN (SELECT unnest(v_new))) IS NOT TRUE;
  RETURN coalesce(v_before, '{}');
END
$$;
