-- Clicks that the ingest refused and that are kept nowhere, so that none of them counts as dropped twice: their digests. The
-- last 100,000, five times what an ingest lets wait, as a batch whose answer was lost comes again within seconds.
CREATE TABLE refused_click (
  id     bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  digest bytea PRIMARY KEY
);

-- Counts clicks that were refused among those that were dropped, under the UTC day of each. Arrays have one element a click;
-- times are in ms. One click counts once, however often its batch comes and by however many ingests, as long as its digest
-- is known; and where an operator makes room and it comes again, it may be a dead letter and counted as well. So the number
-- is exact but for these two, where it is an upper bound.
-- A row is of a whole day, not an hour, and of no process: there are as many as days since 1970, however many clicks come.
-- No redirect process can report under this name. Digests and rows are taken in order, so that writers cannot deadlock.
CREATE FUNCTION note_refusals(p_payloads text[], p_reasons text[], p_times bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
BEGIN
  WITH told AS MATERIALIZED (
    SELECT DISTINCT ON (digest) digest, reason, date_trunc('day', timestamptz 'epoch' + at * interval '1 ms', 'UTC') AS day
      FROM (SELECT sha256(convert_to(payload, 'UTF8')) AS digest, reason, at
              FROM unnest(p_payloads, p_reasons, p_times) AS u(payload, reason, at)) AS refused
     ORDER BY digest, reason),
  fresh AS (
    INSERT INTO refused_click (digest) SELECT digest FROM told ORDER BY digest ON CONFLICT (digest) DO NOTHING
    RETURNING digest)
  INSERT INTO click_drop AS d (hour, since, reason, incarnation, dropped)
  SELECT day + interval '23 hours', day, reason, '(click-ingest)', count(*)
    FROM told JOIN fresh USING (digest) GROUP BY day, reason ORDER BY day, reason
      ON CONFLICT (hour, reason, incarnation) DO UPDATE SET dropped = d.dropped + excluded.dropped;

  DELETE FROM refused_click
   WHERE id IN (SELECT id FROM refused_click WHERE id <= (SELECT max(id) - 100000 FROM refused_click)
                 ORDER BY id FOR UPDATE SKIP LOCKED);
END
$$;
