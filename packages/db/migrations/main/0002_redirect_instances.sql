-- Which redirect processes exist, how far each has applied the change log, and in which history of the database.

-- The history: a server's identity and its timeline. A promotion starts a new timeline, and with it the sequence may
-- give out numbers a second time. pg_control_checkpoint() lags behind a promotion; the name of the WAL file does not.
-- On a standby this fails (55000), so a standby can renew nobody.
CREATE FUNCTION feed_epoch() RETURNS text
  LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.system_identifier::text || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system() s
$$;

CREATE TABLE redirect_instance (
  id            uuid PRIMARY KEY,
  address       text NOT NULL CHECK (char_length(address) <= 255),
  state         text NOT NULL DEFAULT 'SERVING' CHECK (state IN ('SERVING', 'DRAINING')),
  ttl_ms        int NOT NULL CHECK (ttl_ms > 0),
  follows_feed  boolean NOT NULL,
  epoch         text NOT NULL,
  applied_seq   bigint NOT NULL DEFAULT 0,
  renewals      bigint NOT NULL DEFAULT 0,
  registered_at timestamptz NOT NULL DEFAULT now(),
  renewed_at    timestamptz NOT NULL DEFAULT now()
);

-- An epoch is settled once every row of the registry is known to be here. The one in which the registry itself was
-- made is: nobody can have registered before.
CREATE TABLE settled_epoch (
  epoch      text PRIMARY KEY,
  settled_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO settled_epoch (epoch) VALUES (feed_epoch());

-- Enters a new redirect process; again with the same id, where the first answer was lost. The bound on rows keeps a crash loop from filling the table and every wait with it.
CREATE FUNCTION register_instance(p_id uuid, p_address text, p_ttl_ms int, p_follows_feed boolean)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7106916);
  IF (SELECT count(*) FROM redirect_instance) >= 1000 THEN
    RAISE EXCEPTION 'the registry holds 1000 redirect instances: remove dead rows first'
      USING ERRCODE = 'configuration_limit_exceeded';
  END IF;
  INSERT INTO redirect_instance (id, address, ttl_ms, follows_feed, epoch)
    VALUES (p_id, p_address, p_ttl_ms, p_follows_feed, feed_epoch())
    ON CONFLICT (id) DO NOTHING;
END $$;

CREATE FUNCTION deregister_instance(p_id uuid) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  DELETE FROM redirect_instance WHERE id = p_id;
  RETURN FOUND;
END $$;

-- One catch-up read: everything from the cursor on (the cursor's own row included, so that the reader can compare it
-- with the one it remembers; without a cursor the newest row alone, to start from), the epoch, the head of the log, and
-- whether the instance's row still stands. With p_renew it also records how far the instance has come and counts a
-- renewal. Each statement takes a new snapshot: the head is read last, so it is never behind what was read.
CREATE FUNCTION sync_instance(p_id uuid, p_cursor bigint, p_limit int, p_renew boolean, p_applied bigint, p_epoch text)
  RETURNS TABLE (registered boolean, epoch text, head bigint, seqs bigint[], codes text[], versions bigint[])
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  epoch := feed_epoch();
  IF p_renew THEN
    UPDATE redirect_instance i
       SET applied_seq = p_applied, epoch = p_epoch, renewals = i.renewals + 1, renewed_at = clock_timestamp()
     WHERE i.id = p_id;
  ELSE
    PERFORM FROM redirect_instance i WHERE i.id = p_id;
  END IF;
  registered := FOUND;
  SELECT array_agg(c.seq), array_agg(c.code), array_agg(c.version) INTO seqs, codes, versions
    FROM (SELECT l.seq, l.code, l.version FROM link_change l
           WHERE l.seq >= coalesce(p_cursor, (SELECT max(n.seq) FROM link_change n))
           ORDER BY l.seq LIMIT p_limit) c;
  SELECT coalesce(max(l.seq), 0) INTO head FROM link_change l;
  RETURN NEXT;
END $$;

-- What a redirect process may read of a link: not even the target once it is revoked. The remaining life is computed here, so that a difference between the
-- clocks of the two machines does not move the expiry.
CREATE VIEW redirect_link AS
  SELECT code, CASE WHEN state = 'ACTIVE' THEN target END AS target, state, version,
         (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::double precision AS remaining_ms
    FROM link;
