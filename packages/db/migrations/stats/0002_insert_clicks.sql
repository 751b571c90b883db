-- Stores a batch of clicks in one round trip and one transaction, and returns the ids that were new.
-- Each array has one element a click. A click whose id is stored already changes nothing, and neither does the second
-- of two with one id, so that a batch can be sent again without counting anything twice.
--
-- lock_timeout hangs on the function because a setting made within the same statement would come too late: the table is
-- locked when the INSERT is prepared. The INSERT is prepared in here, where the setting holds already.
-- Rows go in by id, so that two writers with the same clicks wait for each other in one order and cannot deadlock.
-- clicked_at is exact: a number of ms times one ms stays below 2^53 microseconds until the year 2255.
CREATE FUNCTION insert_clicks(
  ids uuid[], codes text[], versions bigint[], times_ms bigint[], hosts text[], agents text[]
) RETURNS SETOF uuid
LANGUAGE plpgsql
SET lock_timeout = '200ms'
AS $$
BEGIN
  RETURN QUERY
    INSERT INTO click (click_id, code, link_version, clicked_at, referrer_host, user_agent)
    SELECT batch.id, batch.code, batch.version, timestamptz 'epoch' + batch.at * interval '1 ms', batch.host, batch.agent
      FROM unnest(ids, codes, versions, times_ms, hosts, agents) AS batch(id, code, version, at, host, agent)
     ORDER BY batch.id
        ON CONFLICT (click_id) DO NOTHING
    RETURNING click_id;
END
$$;
