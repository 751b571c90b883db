-- Clicks that redirect processes dropped, as they report them with their batches: counters since the process's start, by
-- reason. What a report has more than the one before was dropped between the two. It stands under the hour of the later
-- one, with the hour of the earlier one beside it: an ingest that was away hears of drops afterwards.
CREATE TABLE click_drop (
  hour        timestamptz NOT NULL,
  since       timestamptz NOT NULL,
  dropped     bigint NOT NULL,
  reason      text COLLATE "C" NOT NULL,
  incarnation text COLLATE "C" NOT NULL,
  PRIMARY KEY (hour, reason, incarnation)
);

-- The last report of each process, by which the next one is understood. One that has been silent for a year has ended.
CREATE TABLE click_drop_report (
  reported_at timestamptz NOT NULL,
  incarnation text COLLATE "C" PRIMARY KEY,
  totals      jsonb NOT NULL
);

-- Takes a report. One that comes again, or late, changes nothing, as its counters are no greater than those known.
CREATE FUNCTION note_drops(p_incarnation text, p_since bigint, p_reasons text[], p_totals bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_before click_drop_report;
  v_is_new boolean;
BEGIN
  INSERT INTO click_drop_report (incarnation, reported_at, totals)
  VALUES (p_incarnation, least(v_now, timestamptz 'epoch' + p_since * interval '1 ms'), '{}')
      ON CONFLICT (incarnation) DO NOTHING;
  v_is_new := FOUND;
  SELECT * INTO v_before FROM click_drop_report WHERE incarnation = p_incarnation FOR UPDATE;

  INSERT INTO click_drop AS d (hour, reason, incarnation, since, dropped)
  SELECT date_trunc('hour', v_now, 'UTC'), reason, p_incarnation, date_trunc('hour', v_before.reported_at, 'UTC'),
         total - coalesce((v_before.totals ->> reason)::bigint, 0)
    FROM (SELECT reason, max(total) AS total FROM unnest(p_reasons, p_totals) AS u(reason, total) GROUP BY reason) AS told
   WHERE total > coalesce((v_before.totals ->> reason)::bigint, 0)
   ORDER BY reason
      ON CONFLICT (hour, reason, incarnation) DO UPDATE
     SET dropped = d.dropped + excluded.dropped, since = least(d.since, excluded.since);

  UPDATE click_drop_report
     SET reported_at = greatest(reported_at, v_now),
         totals = totals || coalesce((
           SELECT jsonb_object_agg(reason, greatest(total, coalesce((v_before.totals ->> reason)::bigint, 0)))
             FROM (SELECT reason, max(total) AS total
                     FROM unnest(p_reasons, p_totals) AS u(reason, total) GROUP BY reason) AS told), '{}')
   WHERE incarnation = p_incarnation;
  IF v_is_new THEN
    DELETE FROM click_drop_report WHERE reported_at < v_now - interval '1 year';
  END IF;
END
$$;
