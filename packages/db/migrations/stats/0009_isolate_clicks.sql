-- Parts clicks that the database refuses from those that it takes, in one transaction: what is found by then stands, whatever
-- happens afterwards. Each array of p_ids to p_payloads has one element a click; p_payloads are the clicks as they came.
-- A hundred are tried at once, ten of a hundred that is refused, and each of such ten: 111 attempts for a hundred of which
-- all are refused, 30 where it is one. Each is a subtransaction, so that a click and what it adds to go together. What is
-- refused alone is a dead letter, by the same transaction.
-- It ends after p_budget_ms, but not before one has been settled: other writers wait for the rows that it holds. It also
-- ends, with what it has, at a failure that is not of p_data_classes, which is nobody's fault; where it has nothing yet, it
-- fails so. Rows are not taken in one order over the attempts: whoever meets here ends by lock_timeout, and comes again.
-- Returns for each click that was settled, from the first on: `new`, `before` (stored then), `buried`, or `no-room`, which was
-- refused and is kept nowhere; what refused it; and how much is kept of dead letters, where some were found.
CREATE FUNCTION isolate_clicks(
  p_ids uuid[], p_versions bigint[], p_times bigint[], p_codes text[], p_owners text[], p_referrers text[],
  p_browsers text[], p_systems text[], p_devices text[], p_countries text[], p_bots boolean[], p_prefetches boolean[],
  p_payloads text[], p_values_max integer, p_sender text, p_rows_max integer, p_bytes_max bigint, p_data_classes text[],
  p_budget_ms integer,
  OUT fates text[], OUT sqlstates text[], OUT row_count integer, OUT byte_count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  v_ends_at timestamptz := clock_timestamp() + p_budget_ms * interval '1 ms';
  v_count integer := cardinality(p_ids);
  v_first integer := 1;
  v_last integer;
  v_size integer := 100;
  v_before uuid[];
  v_refused integer[] := '{}';
  v_details text[] := '{}';
  v_kept boolean[];
BEGIN
  fates := '{}';
  sqlstates := '{}';
  WHILE v_first <= v_count LOOP
    EXIT WHEN v_first > 1 AND clock_timestamp() >= v_ends_at;
    v_last := least(v_first + v_size - 1, v_count);
    BEGIN
      v_before := store_clicks(
        p_ids[v_first:v_last], p_versions[v_first:v_last], p_times[v_first:v_last], p_codes[v_first:v_last],
        p_owners[v_first:v_last], p_referrers[v_first:v_last], p_browsers[v_first:v_last], p_systems[v_first:v_last],
        p_devices[v_first:v_last], p_countries[v_first:v_last], p_bots[v_first:v_last], p_prefetches[v_first:v_last],
        p_values_max);
      FOR n IN v_first .. v_last LOOP
        -- Of one id that comes twice, the first is the new one.
        fates[n] := CASE WHEN p_ids[n] = ANY (v_before || p_ids[v_first:n - 1]) THEN 'before' ELSE 'new' END;
      END LOOP;
    EXCEPTION WHEN OTHERS THEN
      IF left(SQLSTATE, 2) <> ALL (p_data_classes) THEN
        IF v_first = 1 THEN RAISE; END IF;
        EXIT;
      END IF;
      IF v_last > v_first THEN
        v_size := v_size / 10;
        CONTINUE;
      END IF;
      fates[v_first] := 'refused';
      sqlstates[v_first] := SQLSTATE;
      v_refused := v_refused || v_first;
      v_details := v_details || left(SQLERRM, 500);
    END;
    v_first := v_last + 1;
    v_size := CASE WHEN v_first % 100 = 1 THEN 100 WHEN v_first % 10 = 1 THEN 10 ELSE 1 END;
  END LOOP;

  IF v_refused = '{}' THEN RETURN; END IF;
  SELECT b.kept, b.row_count, b.byte_count INTO v_kept, row_count, byte_count
    FROM (SELECT array_agg(p_ids[n]::text ORDER BY n) AS ids, array_agg('unstorable'::text) AS reasons,
                 array_agg(sqlstates[n] ORDER BY n) AS states, array_agg(p_payloads[n] ORDER BY n) AS payloads
            FROM unnest(v_refused) AS n) AS r
   CROSS JOIN LATERAL bury_clicks(r.ids, r.reasons, r.states, v_details, r.payloads, p_sender, p_rows_max, p_bytes_max) AS b;
  FOR i IN 1 .. cardinality(v_refused) LOOP
    fates[v_refused[i]] := CASE WHEN v_kept[i] THEN 'buried' ELSE 'no-room' END;
  END LOOP;
END
$$;

-- Finds clicks that were refused and kept before, and adds to their attempts: a batch that comes again, as nobody heard what
-- became of it, goes on where it was. They are not tried again; that is for an operator to decide.
-- Returns one truth a click. Rows are held in the order of their ids, so that two who come with the same cannot deadlock.
CREATE FUNCTION bury_clicks_again(p_payloads text[], p_sender text) RETURNS boolean[]
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
  WITH told AS MATERIALIZED (
    SELECT n, sha256(convert_to(payload, 'UTF8')) AS digest FROM unnest(p_payloads) WITH ORDINALITY AS u(payload, n)),
  held AS MATERIALIZED (
    SELECT id FROM dead_click WHERE reason = 'unstorable' AND digest IN (SELECT digest FROM told) ORDER BY id FOR UPDATE),
  again AS (
    UPDATE dead_click d SET attempts = attempts + 1, last_at = now(), sender = p_sender
      FROM held WHERE d.id = held.id
    RETURNING d.digest)
  SELECT coalesce(array_agg(a.digest IS NOT NULL ORDER BY n), '{}') FROM told t LEFT JOIN again a ON a.digest = t.digest
$$;
