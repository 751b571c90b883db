-- What click-ingest may do in the statistics database. Run by linkfence_owner after the migrations; a program can send it
-- as it is. The services of the main database cannot even connect.

DO $$ BEGIN
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO linkfence_ingest', current_database());
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM linkfence_write, linkfence_redirect', current_database());
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, linkfence_write, linkfence_redirect, linkfence_ingest;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, linkfence_write, linkfence_redirect, linkfence_ingest;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC, linkfence_write, linkfence_redirect, linkfence_ingest;
GRANT USAGE ON SCHEMA public TO linkfence_ingest;

-- A click is stored once and never changed.
GRANT SELECT, INSERT ON click TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION insert_clicks(uuid[], text[], bigint[], bigint[], text[], text[]) TO linkfence_ingest;
