-- Listing an owner's links page by page, notes, and the secrets that sign the cursors between the pages.
-- The indexes are made in the migration's own transaction, where CONCURRENTLY cannot be. It keeps writers waiting for
-- about a second for each million links; redirects only read, and go on.

ALTER TABLE link ADD COLUMN note text CHECK (char_length(note) <= 2000);

-- Every page walks one of these in its order and starts where the cursor stands, so what a page costs does not depend on
-- how far down it is. All states together are the two states merged, so a third index of all links is not needed.
-- "C" makes the order of codes the same on every server, whatever its locale. Of the owner it keeps everybody else away:
-- while there are no statistics, a revocation would go through all active links of the owner here instead of by its code.
CREATE INDEX link_listing ON link (owner COLLATE "C", state, created_at DESC, code COLLATE "C" DESC);
-- Which links have expired is a matter of the clock, which no index knows; the ones that never will are left out here.
CREATE INDEX link_expiring ON link (owner COLLATE "C", created_at DESC, code COLLATE "C" DESC)
  WHERE state = 'ACTIVE' AND expires_at IS NOT NULL;

-- A GIN index over tags knows no order: a page would collect and sort all links of its tag. One row here for each link
-- and tag, read backwards. It has no foreign key: links are never deleted, and the trigger alone writes here.
CREATE TABLE link_tag (
  owner       text NOT NULL,
  tag         text NOT NULL,
  created_at  timestamptz NOT NULL,
  code        text COLLATE "C" NOT NULL,
  PRIMARY KEY (owner, tag, created_at, code)
);
INSERT INTO link_tag (owner, tag, created_at, code)
  SELECT DISTINCT l.owner, t.tag, l.created_at, l.code FROM link l, unnest(l.tags) AS t (tag);

CREATE FUNCTION index_link_tags() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM link_tag t WHERE t.owner = OLD.owner AND t.tag = ANY (OLD.tags)
       AND t.created_at = OLD.created_at AND t.code = OLD.code;
  END IF;
  INSERT INTO link_tag (owner, tag, created_at, code)
    SELECT DISTINCT NEW.owner, t.tag, NEW.created_at, NEW.code FROM unnest(NEW.tags) AS t (tag);
  RETURN NULL;
END $$;
CREATE TRIGGER link_tags_on_insert AFTER INSERT ON link
  FOR EACH ROW WHEN (cardinality(NEW.tags) > 0) EXECUTE FUNCTION index_link_tags();
CREATE TRIGGER link_tags_on_update AFTER UPDATE OF tags ON link
  FOR EACH ROW WHEN (OLD.tags IS DISTINCT FROM NEW.tags) EXECUTE FUNCTION index_link_tags();

-- The newest signs, all of them verify. A new one: INSERT INTO cursor_key DEFAULT VALUES. Deleting one ends its cursors.
-- Two random UUIDs have 244 random bits, from the server's cryptographic source.
CREATE TABLE cursor_key (
  id          int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  secret      bytea NOT NULL DEFAULT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'))
                CHECK (octet_length(secret) = 32),
  created_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO cursor_key DEFAULT VALUES;
