-- Links, the serialized log of their changes, and the keys of the people who manage them.

CREATE TABLE link (
  code        text PRIMARY KEY CHECK (code ~ '^[A-Za-z0-9_-]{3,32}$'),
  target      text NOT NULL CHECK (octet_length(target) BETWEEN 1 AND 8192),
  owner       text NOT NULL CHECK (owner <> ''),
  kind        text NOT NULL CHECK (kind IN ('RANDOM', 'ALIAS')),
  state       text NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'REVOKED')),
  version     bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
  title       text CHECK (char_length(title) <= 200),
  tags        text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 20),
  expires_at  timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  created_by  text NOT NULL,
  revoked_at  timestamptz,
  revoked_by  text,
  CHECK ((state = 'REVOKED') = (revoked_at IS NOT NULL)),
  CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);

-- One row for each change of an existing link. The sequence keeps CACHE 1: together with the lock in
-- revoke_links this makes the order of seq the order of the commits.
CREATE TABLE link_change (
  seq         bigserial PRIMARY KEY,
  code        text NOT NULL REFERENCES link (code),
  version     bigint NOT NULL,
  changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_by  text NOT NULL
);
CREATE INDEX link_change_code ON link_change (code, version);

-- Where a link leads, when it ends and who owns it never change; a revoked link stays revoked; no row goes away.
CREATE FUNCTION refuse_link_rewrite() RETURNS trigger
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'a link is never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF (NEW.code, NEW.target, NEW.owner, NEW.kind, NEW.created_at, NEW.created_by)
       IS DISTINCT FROM (OLD.code, OLD.target, OLD.owner, OLD.kind, OLD.created_at, OLD.created_by)
     OR NEW.expires_at IS DISTINCT FROM OLD.expires_at THEN
    RAISE EXCEPTION 'code, target, owner and expiry of a link are immutable' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.state = 'REVOKED' AND NEW.state <> 'REVOKED' THEN
    RAISE EXCEPTION 'a revoked link stays revoked' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER link_is_immutable BEFORE UPDATE OR DELETE ON link
  FOR EACH ROW EXECUTE FUNCTION refuse_link_rewrite();

-- The only way to revoke. Takes the codes of one owner, in order, and answers one row for each of them:
--   outcome 'revoked'          version and seq of the change written now
--   outcome 'already-revoked'  version -1, seq of the change that revoked it
--   outcome 'not-found'        version -1, seq NULL; also for a link of somebody else
-- The lock comes before anything that draws a sequence value. Each statement of a volatile function sees what was
-- committed before it, so everything read below the lock is current. One notification a call, whatever its size.
CREATE FUNCTION revoke_links(p_codes text[], p_owner text, p_by text)
  RETURNS TABLE (ordinal int, code text, outcome text, version bigint, seq bigint)
  LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  v_last bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7106915);
  FOR i IN 1 .. cardinality(p_codes) LOOP
    ordinal := i;
    code := p_codes[i];
    UPDATE link l
       SET state = 'REVOKED', version = l.version + 1, revoked_at = clock_timestamp(), revoked_by = p_by
     WHERE l.code = p_codes[i] AND l.owner = p_owner AND l.state = 'ACTIVE'
     RETURNING l.version INTO version;
    IF FOUND THEN
      outcome := 'revoked';
      INSERT INTO link_change AS c (code, version, changed_by) VALUES (p_codes[i], revoke_links.version, p_by)
        RETURNING c.seq INTO seq;
      v_last := seq;
    ELSE
      version := -1;
      SELECT max(c.seq) INTO seq FROM link l LEFT JOIN link_change c ON c.code = l.code
       WHERE l.code = p_codes[i] AND l.owner = p_owner
       GROUP BY l.code;
      outcome := CASE WHEN FOUND THEN 'already-revoked' ELSE 'not-found' END;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF v_last IS NOT NULL THEN
    PERFORM pg_notify('link_change', v_last::text);
  END IF;
END $$;

-- The secret itself is never stored: it is 32 random bytes, so one round of SHA-256 is enough.
CREATE TABLE api_key (
  id           text PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9]{12}$'),
  owner        text NOT NULL CHECK (owner <> ''),
  name         text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  scopes       text[] NOT NULL,
  secret_hash  bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  revoked_at   timestamptz,
  last_used_at timestamptz
);
