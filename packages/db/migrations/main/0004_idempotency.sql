-- Answers of creations that carried an Idempotency-Key. A record is written once, in the transaction of its links, and
-- never changed: what is in it is what every repetition is told.

-- A key is no secret and is kept as it came; it belongs to one owner and one call. The greatest body is that of a batch:
-- a thousand links with all their fields at their limits stay below 32 MiB.
CREATE TABLE idempotency_record (
  owner          text NOT NULL CHECK (owner <> ''),
  call           text NOT NULL CHECK (call IN ('POST /v1/links', 'POST /v1/links:batch')),
  key            text NOT NULL CHECK (key ~ '^[!-~]{1,255}$'),
  request_digest bytea NOT NULL CHECK (octet_length(request_digest) = 32),
  status         smallint NOT NULL CHECK (status BETWEEN 200 AND 299),
  location       text CHECK (octet_length(location) <= 100),
  body           text NOT NULL CHECK (octet_length(body) <= 33554432),
  expires_at     timestamptz NOT NULL DEFAULT clock_timestamp() + interval '24 hours',
  PRIMARY KEY (owner, call, key)
);
CREATE INDEX idempotency_record_expiry ON idempotency_record (expires_at);

-- Takes a key until the end of the transaction, and looks what is kept under it. One row or none:
--   outcome 'replayed'  the answer that is kept
--   outcome 'reused'    an answer is kept, but of a request with another digest
--   outcome 'in-use'    another transaction held the key for all of p_wait_ms (0: does not wait); nothing was taken
--   no row              the key is free, and this transaction's alone: whoever comes next waits for its end
-- An answer that is kept needs no lock, as it never changes. Each statement of a volatile function sees what was
-- committed before it, so the second look, below the lock, is current. A record that has expired by this server's clock
-- is as good as none, and makes room. The lock's number is a hash; two keys with the same one only wait for each other.
-- lock_timeout stands among the settings of the function so that it is what it was before when the function ends; a wait
-- for the key has its own, and five seconds end one for a record that somebody holds by hand.
CREATE FUNCTION take_idempotency_key(p_owner text, p_call text, p_key text, p_digest bytea, p_wait_ms int)
  RETURNS TABLE (outcome text, status smallint, location text, body text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
  v_lock    bigint := hashtextextended(p_call || ' ' || p_key || ' ' || p_owner, 0);
  v_taken   boolean := false;
  v_expires timestamptz;
  v_digest  bytea;
BEGIN
  LOOP
    SELECT r.expires_at, r.request_digest, r.status, r.location, r.body
      INTO v_expires, v_digest, take_idempotency_key.status, take_idempotency_key.location, take_idempotency_key.body
      FROM idempotency_record r WHERE r.owner = p_owner AND r.call = p_call AND r.key = p_key;
    IF FOUND AND v_expires > clock_timestamp() THEN
      outcome := 'replayed';
      IF v_digest <> p_digest THEN
        SELECT 'reused', NULL, NULL, NULL INTO outcome, status, location, body;
      END IF;
      RETURN NEXT;
      RETURN;
    END IF;
    EXIT WHEN v_taken;
    IF p_wait_ms = 0 THEN
      v_taken := pg_try_advisory_xact_lock(v_lock);
    ELSE
      BEGIN
        PERFORM set_config('lock_timeout', p_wait_ms::text, true);
        PERFORM pg_advisory_xact_lock(v_lock);
        v_taken := true;
      EXCEPTION WHEN lock_not_available THEN
        v_taken := false;
      END;
    END IF;
    IF NOT v_taken THEN
      outcome := 'in-use';
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
  IF v_expires IS NOT NULL THEN
    DELETE FROM idempotency_record r
     WHERE r.owner = p_owner AND r.call = p_call AND r.key = p_key AND r.expires_at <= clock_timestamp();
  END IF;
END $$;

-- Removes expired records, at most p_limit of them, the oldest first, and says how many. Nothing depends on it but room.
CREATE FUNCTION sweep_idempotency_records(p_limit int) RETURNS int
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  v_swept int;
BEGIN
  DELETE FROM idempotency_record r
   USING (SELECT s.owner, s.call, s.key FROM idempotency_record s
           WHERE s.expires_at <= clock_timestamp() ORDER BY s.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED) e
   WHERE r.owner = e.owner AND r.call = e.call AND r.key = e.key;
  GET DIAGNOSTICS v_swept = ROW_COUNT;
  RETURN v_swept;
END $$;
