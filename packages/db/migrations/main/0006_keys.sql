-- API keys made, replaced and revoked by calls of the API: by functions alone, which run one after the other under one
-- lock. What one of them counts holds until its commit, and none acts for a key that was revoked before it.

-- created_by is NULL for a key that no other key made; replaced_by is the successor that a rotation made.
ALTER TABLE api_key
  ADD COLUMN created_by  text,
  ADD COLUMN revoked_by  text,
  ADD COLUMN replaced_by text REFERENCES api_key (id),
  ADD CHECK (char_length(owner) <= 100),
  ADD CHECK (revoked_by IS NULL OR revoked_at IS NOT NULL);

-- The order of listings; "C" is the same on every server.
CREATE INDEX api_key_listing ON api_key (owner COLLATE "C", created_at DESC, id COLLATE "C" DESC);
-- Usable keys: whether one has expired is a matter of the clock, so these are searched from a time on.
CREATE INDEX api_key_usable ON api_key (owner COLLATE "C", (coalesce(expires_at, 'infinity'))) WHERE revoked_at IS NULL;
CREATE INDEX api_key_admin ON api_key ((coalesce(expires_at, 'infinity')))
  WHERE revoked_at IS NULL AND 'admin' = ANY (scopes);

-- What a key may do and whose it is never change; its end only comes nearer; no row goes away, as links name their keys.
CREATE FUNCTION refuse_key_rewrite() RETURNS trigger
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'a key is never deleted: revoke it' USING ERRCODE = 'restrict_violation';
  END IF;
  IF (NEW.id, NEW.owner, NEW.scopes, NEW.secret_hash, NEW.created_at, NEW.created_by)
       IS DISTINCT FROM (OLD.id, OLD.owner, OLD.scopes, OLD.secret_hash, OLD.created_at, OLD.created_by) THEN
    RAISE EXCEPTION 'id, owner, scopes and secret of a key are immutable' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at THEN
    RAISE EXCEPTION 'a revoked key stays revoked' USING ERRCODE = 'restrict_violation';
  END IF;
  IF coalesce(NEW.expires_at, 'infinity') > coalesce(OLD.expires_at, 'infinity') THEN
    RAISE EXCEPTION 'the life of a key is never prolonged' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER key_is_immutable BEFORE UPDATE OR DELETE ON api_key
  FOR EACH ROW EXECUTE FUNCTION refuse_key_rewrite();

-- Begins a change of keys: waits for the one before it, and says whether the key that asks for it can still be used.
CREATE FUNCTION begin_key_change(p_by text) RETURNS boolean
  LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7106931);
  RETURN EXISTS (SELECT FROM api_key k WHERE k.id = p_by AND k.revoked_at IS NULL
                    AND coalesce(k.expires_at, 'infinity') > clock_timestamp());
END $$;

-- Says whether an owner may have p_more further usable keys. A thousand are far more than anybody keeps track of.
CREATE FUNCTION has_room_for_keys(p_owner text, p_more int, p_now timestamptz) RETURNS boolean
  LANGUAGE sql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
  SELECT count(*) + p_more <= 1000
    FROM (SELECT FROM api_key k WHERE k.owner COLLATE "C" = p_owner AND k.revoked_at IS NULL
             AND coalesce(k.expires_at, 'infinity') > p_now LIMIT 1001) AS usable
$$;

-- Makes a key. It ends at p_expires_at, or p_lifetime_s seconds from now, or never.
-- What a key without the scope admin makes ends with it at the latest, and where nothing else is asked for. One row:
--   outcome 'created'        and the key
--   outcome 'outlives'       it would end later than the key that asks
--   outcome 'too-many-keys'  the owner has as many usable keys as there may be
--   outcome 'unauthorized'   the key that asks is revoked or expired by now
CREATE FUNCTION create_api_key(p_id text, p_secret_hash bytea, p_owner text, p_name text, p_scopes text[],
                               p_expires_at timestamptz, p_lifetime_s bigint, p_by text)
  RETURNS TABLE (outcome text, made api_key)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_may boolean := begin_key_change(p_by);
  v_now timestamptz := clock_timestamp();
  v_end timestamptz := coalesce(p_expires_at, v_now + make_interval(secs => p_lifetime_s));
  v_last timestamptz := (SELECT k.expires_at FROM api_key k WHERE k.id = p_by AND NOT 'admin' = ANY (k.scopes));
BEGIN
  IF NOT v_may THEN
    outcome := 'unauthorized';
  ELSIF v_end > v_last THEN
    outcome := 'outlives';
  ELSIF NOT has_room_for_keys(p_owner, 1, v_now) THEN
    outcome := 'too-many-keys';
  ELSE
    outcome := 'created';
    INSERT INTO api_key AS k (id, owner, name, scopes, secret_hash, created_at, expires_at, created_by)
      VALUES (p_id, p_owner, p_name, p_scopes, p_secret_hash, v_now, coalesce(v_end, v_last), p_by)
      RETURNING k.* INTO made;
  END IF;
  RETURN NEXT;
END $$;

-- Makes the successor of a key: same owner, name, scopes and end. The old one ends when the overlap is over, or when it
-- would have ended anyway. p_owner NULL: whose key it is does not matter. One row:
--   outcome 'rotated'        and the successor
--   outcome 'not-usable'     the key is revoked or expired
--   outcome 'replaced'       it has a successor already: there are never more than two of a kind
--   outcome 'not-found'      also for a key of somebody else
--   outcome 'too-many-keys', 'unauthorized'  as above
CREATE FUNCTION rotate_api_key(p_id text, p_owner text, p_new_id text, p_secret_hash bytea, p_overlap_s int, p_by text)
  RETURNS TABLE (outcome text, made api_key)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_may boolean := begin_key_change(p_by);
  v_now timestamptz;
  v_old api_key;
BEGIN
  SELECT k.* INTO v_old FROM api_key k
   WHERE k.id = p_id AND (p_owner IS NULL OR k.owner = p_owner) FOR UPDATE;
  v_now := clock_timestamp();
  outcome := CASE
    WHEN NOT v_may THEN 'unauthorized'
    WHEN v_old.id IS NULL THEN 'not-found'
    WHEN v_old.replaced_by IS NOT NULL THEN 'replaced'
    WHEN v_old.revoked_at IS NOT NULL OR coalesce(v_old.expires_at, 'infinity') <= v_now THEN 'not-usable'
    WHEN NOT has_room_for_keys(v_old.owner, CASE WHEN p_overlap_s > 0 THEN 1 ELSE 0 END, v_now) THEN 'too-many-keys'
    ELSE 'rotated' END;
  IF outcome = 'rotated' THEN
    INSERT INTO api_key AS k (id, owner, name, scopes, secret_hash, created_at, expires_at, created_by)
      VALUES (p_new_id, v_old.owner, v_old.name, v_old.scopes, p_secret_hash, v_now, v_old.expires_at, p_by)
      RETURNING k.* INTO made;
    UPDATE api_key k
       SET expires_at = least(k.expires_at, v_now + make_interval(secs => p_overlap_s)), replaced_by = p_new_id
     WHERE k.id = p_id;
  END IF;
  RETURN NEXT;
END $$;

-- Revokes a key. p_owner NULL: whose key it is does not matter.
--   'revoked', 'already-revoked', 'not-found' (also for a key of somebody else), 'unauthorized' as above
--   'last-admin-key'  without it nobody could manage the installation, or not for as long. A key that a rotation has
--                     replaced does not count among those that are left: it is about to end.
CREATE FUNCTION revoke_api_key(p_id text, p_owner text, p_by text) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_may boolean := begin_key_change(p_by);
  v_now timestamptz;
  v_key api_key;
BEGIN
  IF NOT v_may THEN
    RETURN 'unauthorized';
  END IF;
  SELECT k.* INTO v_key FROM api_key k
   WHERE k.id = p_id AND (p_owner IS NULL OR k.owner = p_owner) FOR UPDATE;
  v_now := clock_timestamp();
  IF NOT FOUND THEN
    RETURN 'not-found';
  END IF;
  IF v_key.revoked_at IS NOT NULL THEN
    RETURN 'already-revoked';
  END IF;
  IF 'admin' = ANY (v_key.scopes) AND coalesce(v_key.expires_at, 'infinity') > v_now AND NOT EXISTS (
       SELECT FROM api_key k WHERE k.revoked_at IS NULL AND 'admin' = ANY (k.scopes) AND k.id <> p_id
          AND k.replaced_by IS NULL
          AND coalesce(k.expires_at, 'infinity') >= coalesce(v_key.expires_at, 'infinity')) THEN
    RETURN 'last-admin-key';
  END IF;
  UPDATE api_key k SET revoked_at = v_now, revoked_by = p_by WHERE k.id = p_id;
  RETURN 'revoked';
END $$;

-- Notes that keys were used, of each at most once in five minutes, whoever says so and how often; returns how many were
-- due. It waits for nobody: a row that is locked is left for the next time, and the commit does not wait for the disk.
CREATE FUNCTION touch_api_keys(p_ids text[]) RETURNS int
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  v_touched int;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE api_key k SET last_used_at = clock_timestamp()
    FROM (SELECT d.id FROM api_key d
           WHERE d.id = ANY (p_ids)
             AND (d.last_used_at IS NULL OR d.last_used_at < clock_timestamp() - interval '5 minutes')
             FOR UPDATE SKIP LOCKED) AS due
   WHERE k.id = due.id;
  GET DIAGNOSTICS v_touched = ROW_COUNT;
  RETURN v_touched;
END $$;
