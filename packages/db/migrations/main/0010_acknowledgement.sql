-- What waiting for a revocation to be in force everywhere needs: acknowledgements that wake who waits for them, a look at
-- the registry, and its upkeep.

-- As in 0002, in a language that keeps its plans: each read of the log and each look at the registry asks for it.
CREATE OR REPLACE FUNCTION feed_epoch() RETURNS text
  LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT s.system_identifier::text || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
            FROM pg_control_system() s);
END $$;

-- As in 0002. New: an acknowledgement, which is a renewal by which the instance has come further, wakes who waits for it,
-- and does not wait for the disk. Should the server crash and lose it, the row says less than the instance has done, until
-- its next renewal: a wait takes longer, and nothing is confirmed that is not so. Renewals that only prolong stay durable.
-- A notification wakes every session of the database that listens to anything, and acknowledgements come as often as there
-- are instances: so only one by which all have come further notifies. The lock makes the last of several that come at the
-- same time see the others. It is taken when the row has been written, so that nobody waits for a row while they hold it.
-- A queue of notifications that is nearly full is left to others: a read of the log must not fail for it.
CREATE OR REPLACE FUNCTION sync_instance(p_id uuid, p_cursor bigint, p_limit int, p_renew boolean, p_applied bigint, p_epoch text)
  RETURNS TABLE (registered boolean, epoch text, head bigint, seqs bigint[], codes text[], versions bigint[])
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  v_applied bigint;
BEGIN
  epoch := feed_epoch();
  SELECT i.applied_seq INTO v_applied FROM redirect_instance i WHERE i.id = p_id;
  registered := FOUND;
  IF registered AND p_renew THEN
    UPDATE redirect_instance i
       SET applied_seq = p_applied, epoch = p_epoch, renewals = i.renewals + 1, renewed_at = clock_timestamp()
     WHERE i.id = p_id;
    registered := FOUND;
    IF registered AND p_applied > v_applied THEN
      PERFORM set_config('synchronous_commit', 'off', true);
      PERFORM pg_advisory_xact_lock(7106918);
      IF pg_notification_queue_usage() < 0.9
         AND NOT EXISTS (SELECT FROM redirect_instance i WHERE i.id <> p_id AND i.applied_seq <= v_applied) THEN
        PERFORM pg_notify('instance_ack', '');
      END IF;
    END IF;
  END IF;
  SELECT array_agg(c.seq), array_agg(c.code), array_agg(c.version) INTO seqs, codes, versions
    FROM (SELECT l.seq, l.code, l.version FROM link_change l
           WHERE l.seq >= coalesce(p_cursor, (SELECT max(n.seq) FROM link_change n))
           ORDER BY l.seq LIMIT p_limit) c;
  SELECT coalesce(max(l.seq), 0) INTO head FROM link_change l;
  RETURN NEXT;
END $$;

-- Who is registered, in one snapshot with the history and the head of the log.
CREATE FUNCTION watch_registry()
  RETURNS TABLE (epoch text, settled boolean, head bigint, ids uuid[], addresses text[], ttls int[],
                 follow boolean[], epochs text[], applied bigint[], renewals bigint[])
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  RETURN QUERY
    SELECT e.epoch, EXISTS (SELECT FROM settled_epoch s WHERE s.epoch = e.epoch),
           (SELECT coalesce(max(l.seq), 0) FROM link_change l), r.*
      FROM (SELECT feed_epoch() AS epoch) e,
           (SELECT coalesce(array_agg(i.id), '{}'), coalesce(array_agg(i.address), '{}'),
                   coalesce(array_agg(i.ttl_ms), '{}'),
                   coalesce(array_agg(i.follows_feed), '{}'), coalesce(array_agg(i.epoch), '{}'),
                   coalesce(array_agg(i.applied_seq), '{}'), coalesce(array_agg(i.renewals), '{}')
              FROM redirect_instance i) r;
END $$;

-- Says that every row which can matter is here. Only of the history that is current now; returns whether it is.
CREATE FUNCTION settle_epoch(p_epoch text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF p_epoch <> feed_epoch() THEN
    RETURN false;
  END IF;
  INSERT INTO settled_epoch (epoch) VALUES (p_epoch) ON CONFLICT (epoch) DO NOTHING;
  RETURN true;
END $$;

-- Removes rows whose renewals are still what they were when they were judged. Returns the ids of those that are gone.
CREATE FUNCTION remove_instances(p_ids uuid[], p_renewals bigint[]) RETURNS uuid[]
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM redirect_instance i USING unnest(p_ids, p_renewals) AS dead (id, renewals)
     WHERE i.id = dead.id AND i.renewals = dead.renewals
    RETURNING i.id
  )
  SELECT coalesce(array_agg(id), '{}') FROM gone
$$;

-- Removes the oldest changes that are older than p_age, p_limit of them at the most, and never the newest change of all:
-- who starts to follow takes its stand there. A reader that stood below what is left sees that its row is gone, and
-- forgets everything. The numbers of revocations stay with their links. Returns how many went.
CREATE FUNCTION trim_changes(p_age interval, p_limit int) RETURNS int
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
  WITH old AS (
    SELECT c.seq FROM link_change c ORDER BY c.seq LIMIT p_limit
  ),
  gone AS (
    DELETE FROM link_change c
     USING old
     WHERE c.seq = old.seq AND c.changed_at < clock_timestamp() - p_age
       AND c.seq < (SELECT max(n.seq) FROM link_change n)
    RETURNING c.seq
  )
  SELECT count(*)::int FROM gone
$$;
