-- The number of a revocation stays with its link, however short the log is kept; a new number is above all of the log,
-- whatever was done to the sequence; and a redirect process that registers twice counts once.

-- What revoked it, as `seq` in link_change. Where the log had been trimmed it stays NULL: the next call draws a number.
ALTER TABLE link ADD COLUMN revoked_seq bigint;
UPDATE link l SET revoked_seq = (SELECT max(c.seq) FROM link_change c WHERE c.code = l.code) WHERE l.state = 'REVOKED';

-- Draws the number of a change above p_head, the greatest in the log; called under the lock of revoke_links. A sequence
-- that a restore or a person set back, or passed by with a row of their own, would give out numbers that every reader
-- has left behind. Numbers end at 2^53 - 1, the last that JavaScript counts to exactly; setval cannot be rolled back, so
-- the head is looked at first.
CREATE FUNCTION next_change_seq(p_head bigint) RETURNS bigint
  LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  v_seq bigint;
BEGIN
  IF p_head < 9007199254740991 THEN
    v_seq := nextval('link_change_seq_seq');
    IF v_seq <= p_head THEN
      PERFORM setval('link_change_seq_seq', p_head);
      v_seq := nextval('link_change_seq_seq');
    END IF;
    IF v_seq <= 9007199254740991 THEN
      RETURN v_seq;
    END IF;
  END IF;
  RAISE EXCEPTION 'the numbers of link_change are used up: none is left between % and 2^53', p_head
    USING ERRCODE = 'sequence_generator_limit_exceeded',
      HINT = 'Nothing was revoked. Remove the row put in by hand, and set link_change_seq_seq to the greatest seq left.';
END $$;

-- As in 0001, and with the rights of its owner: who may call it needs no right to write the log or to set its sequence.
--   outcome 'revoked'          version and seq of the change written now
--   outcome 'already-revoked'  version -1, seq of the change that revoked it
--   outcome 'not-found'        version -1, seq NULL; also for a link of somebody else
-- A revoked link whose number is known nowhere gets one, and readers hear of it once more, which changes nothing.
CREATE OR REPLACE FUNCTION revoke_links(p_codes text[], p_owner text, p_by text)
  RETURNS TABLE (ordinal int, code text, outcome text, version bigint, seq bigint)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  v_head    bigint;
  v_last    bigint;
  v_version bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7106915);
  SELECT coalesce(max(c.seq), 0) INTO v_head FROM link_change c;
  FOR i IN 1 .. cardinality(p_codes) LOOP
    ordinal := i;
    code := p_codes[i];
    UPDATE link l
       SET state = 'REVOKED', version = l.version + 1, revoked_at = clock_timestamp(), revoked_by = p_by,
           revoked_seq = next_change_seq(v_head)
     WHERE l.code = p_codes[i] AND l.owner = p_owner AND l.state = 'ACTIVE'
     RETURNING l.version, l.revoked_seq INTO version, seq;
    IF FOUND THEN
      outcome := 'revoked';
      INSERT INTO link_change (seq, code, version, changed_by) VALUES (seq, p_codes[i], version, p_by);
      v_last := seq;
    ELSE
      version := -1;
      SELECT l.version, coalesce(l.revoked_seq, (SELECT max(c.seq) FROM link_change c WHERE c.code = l.code))
        INTO v_version, seq FROM link l WHERE l.code = p_codes[i] AND l.owner = p_owner;
      outcome := CASE WHEN FOUND THEN 'already-revoked' ELSE 'not-found' END;
      IF FOUND AND seq IS NULL THEN
        UPDATE link l SET revoked_seq = next_change_seq(v_head) WHERE l.code = p_codes[i]
          RETURNING l.revoked_seq INTO seq;
        INSERT INTO link_change (seq, code, version, changed_by) VALUES (seq, p_codes[i], v_version, p_by);
        v_last := seq;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF v_last IS NOT NULL THEN
    PERFORM pg_notify('link_change', v_last::text);
  END IF;
END $$;

-- As in 0002, but an id that is registered already needs no room: its first answer may have been lost.
CREATE OR REPLACE FUNCTION register_instance(p_id uuid, p_address text, p_ttl_ms int, p_follows_feed boolean)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7106916);
  INSERT INTO redirect_instance (id, address, ttl_ms, follows_feed, epoch)
    VALUES (p_id, p_address, p_ttl_ms, p_follows_feed, feed_epoch())
    ON CONFLICT (id) DO NOTHING;
  IF FOUND AND (SELECT count(*) FROM redirect_instance) > 1000 THEN
    RAISE EXCEPTION 'the registry holds 1000 redirect instances: remove dead rows first'
      USING ERRCODE = 'configuration_limit_exceeded';
  END IF;
END $$;
