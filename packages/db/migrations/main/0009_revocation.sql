-- Revocation of many links in a few statements. The loop of 0003 sent two or three for each code, all of them under the
-- lock that every revocation waits for: a thousand codes take less than half the time now.

-- Answers as before, one row for each code, in order; of the same code twice the first one counts:
--   outcome 'revoked'          version and seq of the change written now
--   outcome 'already-revoked'  version -1, seq of the change that revoked it
--   outcome 'not-found'        version -1, seq NULL; also for a link of somebody else
-- The lock comes before anything that draws a number, and the statement below it sees all that was committed before.
-- Numbers are drawn in the order of the codes: `owned` is in that order, and is read once, from its first row to its last.
-- OFFSET 0 keeps each look-up a look-up by code, however many links the owner has. A revoked link whose number is known
-- nowhere gets one, and readers hear of it once more, which changes nothing.
CREATE OR REPLACE FUNCTION revoke_links(p_codes text[], p_owner text, p_by text)
  RETURNS TABLE (ordinal int, code text, outcome text, version bigint, seq bigint)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_head bigint;
  v_last bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7106915);
  SELECT coalesce(max(c.seq), 0) INTO v_head FROM link_change c;
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT a.code, a.place, row_number() OVER (PARTITION BY a.code ORDER BY a.place) = 1 AS first
      FROM unnest(p_codes) WITH ORDINALITY AS a (code, place)
  ),
  owned AS MATERIALIZED (
    SELECT l.code, l.state,
           CASE WHEN l.state = 'REVOKED'
                THEN coalesce(l.revoked_seq, (SELECT max(c.seq) FROM link_change c WHERE c.code = l.code)) END AS seq
      FROM asked a
     CROSS JOIN LATERAL (SELECT k.code, k.state, k.revoked_seq FROM link k
                          WHERE k.code = a.code AND k.owner = p_owner OFFSET 0) l
     WHERE a.first ORDER BY a.place
  ),
  numbered AS MATERIALIZED (
    SELECT o.code, o.state = 'ACTIVE' AS active, next_change_seq(v_head) AS seq FROM owned o WHERE o.seq IS NULL
  ),
  changed AS (
    UPDATE link l
       SET state = 'REVOKED', version = l.version + n.active::int, revoked_seq = n.seq,
           revoked_at = coalesce(l.revoked_at, clock_timestamp()), revoked_by = coalesce(l.revoked_by, p_by)
      FROM numbered n WHERE l.code = n.code
    RETURNING l.code, n.active, l.version, n.seq
  ),
  logged AS (
    INSERT INTO link_change (seq, code, version, changed_by, owner)
    SELECT c.seq, c.code, c.version, p_by, p_owner FROM changed c
  )
  SELECT a.place::int, a.code,
         CASE WHEN o.code IS NULL THEN 'not-found' WHEN a.first AND c.active THEN 'revoked' ELSE 'already-revoked' END,
         CASE WHEN a.first AND c.active THEN c.version ELSE -1 END,
         coalesce(c.seq, o.seq)
    FROM asked a LEFT JOIN owned o ON o.code = a.code LEFT JOIN changed c ON c.code = a.code
   ORDER BY a.place;
  -- Nobody else writes the log while the lock is held.
  SELECT max(c.seq) INTO v_last FROM link_change c;
  IF v_last > v_head THEN
    PERFORM pg_notify('link_change', v_last::text);
  END IF;
END $$;
