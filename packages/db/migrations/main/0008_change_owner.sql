-- Whose link each change is about, so that an owner's changes are read without those of others.
-- Adding the column keeps everybody from the log until the migration is through, some 10 to 30 s for each million changes:
-- nothing can be revoked meanwhile, and redirects, which cannot follow the log then, serve from memory for their TTL.

ALTER TABLE link_change ADD COLUMN owner text CHECK (owner <> '');
UPDATE link_change c SET owner = l.owner FROM link l WHERE l.code = c.code;
ALTER TABLE link_change ALTER COLUMN owner SET NOT NULL;
CREATE INDEX link_change_owner ON link_change (owner COLLATE "C", seq);

-- revoke_links writes the owner itself and does not pay for this. A row put in by hand may leave it out.
CREATE FUNCTION fill_change_owner() RETURNS trigger
  LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  SELECT l.owner INTO NEW.owner FROM link l WHERE l.code = NEW.code;
  RETURN NEW;
END $$;
CREATE TRIGGER change_has_owner BEFORE INSERT ON link_change
  FOR EACH ROW WHEN (NEW.owner IS NULL) EXECUTE FUNCTION fill_change_owner();

-- One page of an owner's changes: those above p_after up to p_until, the first p_limit of them, in the order of seq, which
-- is the order of their commits. Who goes on after the last seq of a page misses nothing.
-- The index of owner and seq is the only way to this page that costs the same however long the log is and whoever fills
-- it. Statistics of yesterday can make others look cheaper: the primary key, past the changes of everybody else, or all
-- changes of the owner at once, to be sorted. Compared and ordered as pairs, the primary key has the wrong order; and
-- the settings, which hold for this function alone, rule out the rest.
CREATE FUNCTION owner_changes(p_owner text, p_after bigint, p_until bigint, p_limit int)
  RETURNS TABLE (seq bigint, code text, version bigint, changed_at timestamptz, changed_by text)
  LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
  SELECT c.seq, c.code, c.version, c.changed_at, c.changed_by FROM link_change c
   WHERE (c.owner COLLATE "C", c.seq) > (p_owner, p_after) AND (c.owner COLLATE "C", c.seq) <= (p_owner, p_until)
   ORDER BY c.owner COLLATE "C", c.seq LIMIT p_limit
$$;

-- As in 0003, but each change carries its owner.
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
      INSERT INTO link_change (seq, code, version, changed_by, owner) VALUES (seq, p_codes[i], version, p_by, p_owner);
      v_last := seq;
    ELSE
      version := -1;
      SELECT l.version, coalesce(l.revoked_seq, (SELECT max(c.seq) FROM link_change c WHERE c.code = l.code))
        INTO v_version, seq FROM link l WHERE l.code = p_codes[i] AND l.owner = p_owner;
      outcome := CASE WHEN FOUND THEN 'already-revoked' ELSE 'not-found' END;
      IF FOUND AND seq IS NULL THEN
        UPDATE link l SET revoked_seq = next_change_seq(v_head) WHERE l.code = p_codes[i]
          RETURNING l.revoked_seq INTO seq;
        INSERT INTO link_change (seq, code, version, changed_by, owner)
          VALUES (seq, p_codes[i], v_version, p_by, p_owner);
        v_last := seq;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF v_last IS NOT NULL THEN
    PERFORM pg_notify('link_change', v_last::text);
  END IF;
END $$;
