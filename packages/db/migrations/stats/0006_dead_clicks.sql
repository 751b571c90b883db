-- Clicks that cannot be stored, with all that an operator needs to judge them: they are looked at, stored after all, or
-- thrown away by `linkfence dead-clicks`. One row for each different payload; one that comes again adds to its attempts.
CREATE TABLE dead_click (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  first_at timestamptz NOT NULL DEFAULT now(),
  last_at  timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 1,
  bytes    integer NOT NULL GENERATED ALWAYS AS (octet_length(payload)) STORED,
  digest   bytea NOT NULL UNIQUE,
  click_id text,
  reason   text NOT NULL,
  sqlstate text,
  detail   text NOT NULL,
  sender   text NOT NULL,
  -- As it came, as JSON; not of type jsonb, which could not hold all of it.
  payload  text NOT NULL
);

-- Keeps dead clicks, within p_rows_max rows and p_bytes_max bytes of payloads. Each array has one element a click.
-- Returns one truth a click, false for what there was no room for, and how much is kept now. The lock puts writers one
-- behind the other, so that the bounds hold exactly.
CREATE FUNCTION bury_clicks(
  p_click_ids text[], p_reasons text[], p_sqlstates text[], p_details text[], p_payloads text[], p_sender text,
  p_rows_max integer, p_bytes_max bigint,
  OUT kept boolean[], OUT row_count integer, OUT byte_count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  v_size integer;
  v_digest bytea;
BEGIN
  kept := '{}';
  LOCK TABLE dead_click IN SHARE ROW EXCLUSIVE MODE;
  SELECT count(*), coalesce(sum(bytes), 0) INTO row_count, byte_count FROM dead_click;
  FOR n IN 1 .. cardinality(p_payloads) LOOP
    v_digest := sha256(convert_to(p_payloads[n], 'UTF8'));
    UPDATE dead_click
       SET attempts = attempts + 1, last_at = now(), reason = p_reasons[n], sqlstate = p_sqlstates[n],
           detail = p_details[n], sender = p_sender
     WHERE digest = v_digest;
    IF FOUND THEN
      kept[n] := true;
      CONTINUE;
    END IF;
    v_size := octet_length(p_payloads[n]);
    kept[n] := row_count < p_rows_max AND byte_count + v_size <= p_bytes_max;
    CONTINUE WHEN NOT kept[n];
    INSERT INTO dead_click (digest, click_id, reason, sqlstate, detail, sender, payload)
    VALUES (v_digest, p_click_ids[n], p_reasons[n], p_sqlstates[n], p_details[n], p_sender, p_payloads[n]);
    row_count := row_count + 1;
    byte_count := byte_count + v_size;
  END LOOP;
END
$$;
