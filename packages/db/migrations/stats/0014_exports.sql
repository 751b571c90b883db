-- Exports: jobs that write the clicks of a period into a file. All that happens to a job happens in these functions.
--
-- A worker holds a job by its token, a number that rises with every claim and every cancel. Whatever a worker writes names
-- its token, and changes nothing where the job has another one: who was taken for dead and comes back cannot undo what was
-- done since. It names its file, too: after a failover that lost a claim, two may have got the same number. The lease only
-- says when somebody else may try; it decides nothing about who is right.
-- A file's name stands in its job before the file is made: what lies in the directory and is no job's is left over.
CREATE TABLE export_job (
  id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  number          bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  from_ms         bigint CHECK (from_ms >= 0),
  to_ms           bigint NOT NULL CHECK (to_ms >= 0),
  token           bigint NOT NULL DEFAULT 0,
  rows_done       bigint NOT NULL DEFAULT 0,
  rows_estimated  bigint,
  bytes           bigint NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_at      timestamptz,
  finished_at     timestamptz,
  not_before      timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease_until     timestamptz,
  fault_at        timestamptz,
  attempts        integer NOT NULL DEFAULT 0,
  gzip            boolean NOT NULL,
  owner           text COLLATE "C" NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 100),
  ordered_by      text COLLATE "C" NOT NULL CHECK (char_length(ordered_by) BETWEEN 1 AND 100),
  idempotency_key text COLLATE "C" CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
  digest          text COLLATE "C" NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
  format          text COLLATE "C" NOT NULL CHECK (format IN ('csv', 'jsonl')),
  state           text COLLATE "C" NOT NULL DEFAULT 'PENDING'
                  CHECK (state IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  worker          text COLLATE "C",
  file            text COLLATE "C" CHECK (file ~ '^[0-9a-f]{32}$'),
  fault           text COLLATE "C",
  fault_detail    text COLLATE "C" CHECK (char_length(fault_detail) <= 500),
  codes           text[] COLLATE "C" CHECK (cardinality(codes) BETWEEN 1 AND 1000),
  UNIQUE (owner, idempotency_key),
  CHECK ((state = 'RUNNING') = (lease_until IS NOT NULL AND worker IS NOT NULL)),
  CHECK ((state IN ('RUNNING', 'SUCCEEDED')) = (file IS NOT NULL)),
  CHECK ((state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL))
);
CREATE INDEX export_job_owner ON export_job (owner, number);
CREATE INDEX export_job_started ON export_job (owner, started_at);
CREATE INDEX export_job_waiting ON export_job (owner, number) WHERE state = 'PENDING';
CREATE INDEX export_job_finished ON export_job (finished_at) WHERE finished_at IS NOT NULL;
-- One at a time for each owner, whatever the workers believe.
CREATE UNIQUE INDEX export_job_running ON export_job (owner) WHERE state = 'RUNNING';

-- Names the directory of this database's files, so that two installations may share a disk.
CREATE TABLE export_store (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO export_store DEFAULT VALUES;

-- What was ordered stays as it was, and what has ended has ended.
CREATE FUNCTION guard_export_job() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.state IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN
    RAISE EXCEPTION 'an export that has ended never changes' USING ERRCODE = '23001';
  END IF;
  IF (NEW.id, NEW.number, NEW.owner, NEW.ordered_by, NEW.idempotency_key, NEW.digest, NEW.codes, NEW.from_ms, NEW.to_ms, NEW.format,
      NEW.gzip, NEW.created_at)
     IS DISTINCT FROM
     (OLD.id, OLD.number, OLD.owner, OLD.ordered_by, OLD.idempotency_key, OLD.digest, OLD.codes, OLD.from_ms, OLD.to_ms, OLD.format,
      OLD.gzip, OLD.created_at) THEN
    RAISE EXCEPTION 'the order of an export never changes' USING ERRCODE = '23001';
  END IF;
  IF NEW.token < OLD.token THEN
    RAISE EXCEPTION 'the token of an export only rises' USING ERRCODE = '23001';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER guard_export_job BEFORE UPDATE ON export_job FOR EACH ROW EXECUTE FUNCTION guard_export_job();

-- Takes an order: `created`; `replayed`, where the owner used this key for the same order before; `reused`, where it was
-- another order, as the digest of what was asked tells; `owner-full` or `full`, where as many wait as may. The lock makes the bounds exact.
CREATE FUNCTION order_export(
  p_owner text, p_ordered_by text, p_key text, p_digest text, p_codes text[], p_from bigint, p_to bigint, p_format text, p_gzip boolean,
  p_owner_max integer, p_total_max integer,
  OUT outcome text, OUT job_id uuid
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_before export_job;
BEGIN
  PERFORM pg_advisory_xact_lock(7106931);
  IF p_key IS NOT NULL THEN
    SELECT * INTO v_before FROM export_job WHERE owner = p_owner AND idempotency_key = p_key;
    IF FOUND THEN
      job_id := v_before.id;
      outcome := CASE WHEN v_before.digest = p_digest THEN 'replayed' ELSE 'reused' END;
      RETURN;
    END IF;
  END IF;
  IF (SELECT count(*) FROM export_job WHERE owner = p_owner AND state = 'PENDING') >= p_owner_max THEN
    outcome := 'owner-full';
  ELSIF (SELECT count(*) FROM export_job WHERE state = 'PENDING') >= p_total_max THEN
    outcome := 'full';
  ELSE
    INSERT INTO export_job (owner, ordered_by, idempotency_key, digest, codes, from_ms, to_ms, format, gzip)
    VALUES (p_owner, p_ordered_by, p_key, p_digest, p_codes, p_from, p_to, p_format, p_gzip) RETURNING id INTO job_id;
    outcome := 'created';
  END IF;
END
$$;

-- Ends an owner's job that has not ended: `cancelled`, `already-cancelled` or `finished`; null where there is none. The
-- token rises, so that a worker that is at it learns of it at its next word.
CREATE FUNCTION cancel_export(p_id uuid, p_owner text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_state text;
BEGIN
  UPDATE export_job
     SET state = 'CANCELLED', token = token + 1, finished_at = clock_timestamp(), worker = NULL, lease_until = NULL,
         file = NULL
   WHERE id = p_id AND owner = p_owner AND state IN ('PENDING', 'RUNNING');
  IF FOUND THEN RETURN 'cancelled'; END IF;
  SELECT state INTO v_state FROM export_job WHERE id = p_id AND owner = p_owner;
  RETURN CASE WHEN v_state = 'CANCELLED' THEN 'already-cancelled' WHEN v_state IS NOT NULL THEN 'finished' END;
END
$$;

-- Gives a worker its next job, or nothing. Of the owners that have none running, the one comes first whose last job
-- began longest ago, and of its jobs the oldest. Jobs whose worker has not been heard of for its lease wait again before
-- that, or have failed where that was their last attempt.
CREATE FUNCTION claim_export(p_worker text, p_file text, p_lease_ms integer, p_attempts_max integer)
RETURNS SETOF export_job
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_now timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(7106931);
  v_now := clock_timestamp();
  UPDATE export_job
     SET state = CASE WHEN attempts < p_attempts_max THEN 'PENDING' ELSE 'FAILED' END,
         finished_at = CASE WHEN attempts < p_attempts_max THEN NULL ELSE v_now END,
         token = token + 1, worker = NULL, lease_until = NULL, file = NULL, not_before = v_now,
         fault = 'worker-lost', fault_detail = 'the worker was not heard of any more', fault_at = v_now
   WHERE state = 'RUNNING' AND lease_until < v_now;

  RETURN QUERY
  UPDATE export_job
     SET state = 'RUNNING', attempts = attempts + 1, token = token + 1, worker = p_worker, file = p_file,
         lease_until = v_now + p_lease_ms * interval '1 ms', started_at = v_now, rows_done = 0, bytes = 0
   WHERE id = (
     SELECT next.id
       FROM (SELECT DISTINCT ON (w.owner) w.id, w.owner, w.number FROM export_job w
              WHERE w.state = 'PENDING' AND w.not_before <= v_now
                AND NOT EXISTS (SELECT FROM export_job r WHERE r.owner = w.owner AND r.state = 'RUNNING')
              ORDER BY w.owner, w.number) AS next
      ORDER BY (SELECT max(s.started_at) FROM export_job s WHERE s.owner = next.owner) NULLS FIRST, next.number
      LIMIT 1)
  RETURNING *;
END
$$;

-- Says that the holder of the token is at work, how far it has come, and holds the job for another lease. False where the
-- job is no longer its own.
CREATE FUNCTION extend_export(
  p_id uuid, p_token bigint, p_file text, p_lease_ms integer, p_rows bigint, p_bytes bigint, p_estimated bigint
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
  UPDATE export_job
     SET lease_until = clock_timestamp() + p_lease_ms * interval '1 ms', rows_done = p_rows, bytes = p_bytes,
         rows_estimated = coalesce(p_estimated, rows_estimated)
   WHERE id = p_id AND token = p_token AND file = p_file AND state = 'RUNNING';
  RETURN FOUND;
END
$$;

-- The file is whole and safe. False where the job is no longer the caller's: then its file is nobody's.
CREATE FUNCTION finish_export(p_id uuid, p_token bigint, p_file text, p_rows bigint, p_bytes bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
  UPDATE export_job
     SET state = 'SUCCEEDED', finished_at = clock_timestamp(), rows_done = p_rows, rows_estimated = p_rows, bytes = p_bytes,
         worker = NULL, lease_until = NULL
   WHERE id = p_id AND token = p_token AND file = p_file AND state = 'RUNNING';
  RETURN FOUND;
END
$$;

-- An attempt has failed. It is repeated after p_again_ms; never where that is null or there is no attempt left.
CREATE FUNCTION fail_export(
  p_id uuid, p_token bigint, p_file text, p_fault text, p_detail text, p_again_ms integer, p_attempts_max integer
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  UPDATE export_job
     SET state = CASE WHEN p_again_ms IS NOT NULL AND attempts < p_attempts_max THEN 'PENDING' ELSE 'FAILED' END,
         finished_at = CASE WHEN p_again_ms IS NOT NULL AND attempts < p_attempts_max THEN NULL ELSE v_now END,
         not_before = v_now + coalesce(p_again_ms, 0) * interval '1 ms',
         worker = NULL, lease_until = NULL, file = NULL, fault = p_fault, fault_detail = left(p_detail, 500),
         fault_at = v_now
   WHERE id = p_id AND token = p_token AND file = p_file AND state = 'RUNNING';
  RETURN FOUND;
END
$$;

-- Gives a job back that its worker must leave through no fault of the job's: the attempt does not count.
CREATE FUNCTION release_export(p_id uuid, p_token bigint, p_file text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
  UPDATE export_job
     SET state = 'PENDING', attempts = attempts - 1, token = token + 1, worker = NULL, lease_until = NULL, file = NULL,
         not_before = clock_timestamp()
   WHERE id = p_id AND token = p_token AND file = p_file AND state = 'RUNNING';
  RETURN FOUND;
END
$$;

-- Removes jobs that ended p_kept_seconds ago or earlier, at most p_limit of them, and returns how many. Their files are
-- nobody's from then on.
CREATE FUNCTION remove_exports(p_kept_seconds bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  v_count integer;
BEGIN
  DELETE FROM export_job WHERE id IN (
    SELECT id FROM export_job WHERE finished_at <= clock_timestamp() - p_kept_seconds * interval '1 second'
     ORDER BY finished_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END
$$;
