-- What a redirect process may say of itself is bounded: whoever looks at the registry has to be able to read it, and a
-- row leaves it by its own TTL. No process has a longer one than an hour, and no number goes beyond 2^53.
ALTER TABLE redirect_instance
  ADD CONSTRAINT redirect_instance_ttl CHECK (ttl_ms <= 3600000),
  ADD CONSTRAINT redirect_instance_numbers
    CHECK (applied_seq BETWEEN 0 AND 9007199254740991 AND renewals BETWEEN 0 AND 9007199254740991);

-- Removes a prefix of the log, up to the first change that is not old: a reader that finds the row it remembers can be sure
-- that none behind it is missing, also where the server's clock was set back between two changes.
CREATE OR REPLACE FUNCTION trim_changes(p_age interval, p_limit int) RETURNS int
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
  WITH first AS (
    SELECT c.seq, c.changed_at FROM link_change c ORDER BY c.seq LIMIT p_limit
  ),
  gone AS (
    DELETE FROM link_change c
     USING first
     WHERE c.seq = first.seq
       AND c.seq < (SELECT max(n.seq) FROM link_change n)
       AND c.seq < coalesce((SELECT min(young.seq) FROM first young
                              WHERE young.changed_at >= clock_timestamp() - p_age), 'infinity'::numeric)
    RETURNING c.seq
  )
  SELECT count(*)::int FROM gone
$$;
