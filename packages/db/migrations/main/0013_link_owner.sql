-- A click says whose link was followed, so that statistics of an owner need no look at this database.
CREATE OR REPLACE VIEW redirect_link AS
  SELECT code, CASE WHEN state = 'ACTIVE' THEN target END AS target, state, version,
         (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::double precision AS remaining_ms, owner
    FROM link;
