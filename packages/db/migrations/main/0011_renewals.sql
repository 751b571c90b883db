-- As in 0010. New: an instance counts its renewals itself, and says which of them have to last.
-- A server that crashes may lose what did not wait for its disk. Counted here, the next renewal would then bear the number
-- of the lost one: whoever had seen that one would take it for the same, and its row for silent since. And what is due, but
-- brings back an acknowledgement that was lost, would not wait for the disk either.
-- A renewal that was overtaken by a later one, in a line that was given up, changes nothing.
DROP FUNCTION sync_instance(uuid, bigint, int, boolean, bigint, text);
CREATE FUNCTION sync_instance(
  p_id uuid, p_cursor bigint, p_limit int, p_renewal bigint, p_lasting boolean, p_applied bigint, p_epoch text
)
  RETURNS TABLE (registered boolean, epoch text, head bigint, seqs bigint[], codes text[], versions bigint[])
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  v_applied bigint;
BEGIN
  epoch := feed_epoch();
  SELECT i.applied_seq INTO v_applied FROM redirect_instance i WHERE i.id = p_id;
  registered := FOUND;
  IF registered AND p_renewal IS NOT NULL THEN
    IF NOT p_lasting THEN
      PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    UPDATE redirect_instance i
       SET applied_seq = p_applied, epoch = p_epoch, renewals = p_renewal, renewed_at = clock_timestamp()
     WHERE i.id = p_id AND i.renewals < p_renewal;
    IF NOT FOUND THEN
      PERFORM FROM redirect_instance i WHERE i.id = p_id;
      registered := FOUND;
    ELSIF p_applied > v_applied THEN
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
