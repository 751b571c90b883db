-- Whose link each change is about, so that an owner's changes are read without those of others.
-- Adding the column keeps everybody from the log until the migration is through, some 10 to 30 s for each million changes:
-- nothing can be revoked meanwhile, and redirects, which cannot follow the log then, serve from memory for their TTL.

ALTER TABLE link_change ADD COLUMN owner text CHECK (owner <> '');
UPDATE link_change c SET owner = l.owner FROM link l WHERE l.code = c.code;
ALTER TABLE link_change ALTER COLUMN owner SET NOT NULL;
CREATE INDEX link_change_owner ON link_change (owner COLLATE "C", seq);

-- revoke_links of 0009 writes the owner itself and does not pay for this. A row put in by hand may leave it out.
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
