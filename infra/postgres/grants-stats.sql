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

-- Clicks, and what they add up to, are written by these functions alone, with their owner's rights: a click is stored once,
-- never changed, and never without being added up. The days of clicks are made and dropped by two more.
GRANT SELECT ON click, click_hour, click_hour_value, owner_hour TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION read_cells(text, text) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION store_clicks(
  uuid[], bigint[], bigint[], text[], text[], text[], text[], text[], text[], text[], boolean[], boolean[], integer
) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION store_counted_clicks(
  uuid[], bigint[], bigint[], text[], text[], text[], text[], text[], text[], text[], boolean[], boolean[],
  text[], integer[], integer[], text[], integer[], text[], integer[], text[], text[], text[], integer[], integer[], integer
) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION make_click_days(date[], integer, integer) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION drop_click_day(integer) TO linkfence_ingest;

-- Dead clicks are kept by a function that bounds them. They are counted here; an operator reads and settles them.
GRANT SELECT (id, bytes) ON dead_click TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION bury_clicks(text[], text[], text[], text[], text[], text, integer, bigint) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION bury_clicks_again(text[], text) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION isolate_clicks(
  uuid[], bigint[], bigint[], text[], text[], text[], text[], text[], text[], text[], boolean[], boolean[], text[], integer,
  text, integer, bigint, text[], integer
) TO linkfence_ingest;

-- What redirect processes dropped is taken by a function, so that no report counts twice.
GRANT SELECT ON click_drop TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION note_drops(text, bigint, text[], bigint[]) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION note_refusals(text[], text[], bigint[]) TO linkfence_ingest;

-- Busy days that are over are added up by a function; who reads takes each day from there or from its hours.
GRANT SELECT ON click_day_value, click_day_added, click_day TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION add_up_click_days(date, integer, integer) TO linkfence_ingest;

-- Exports are ordered, worked on and removed by functions: no statement of the service moves a job past its token.
GRANT SELECT ON export_job, export_store TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION order_export(text, text, text, text, text[], bigint, bigint, text, boolean, integer, integer)
  TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION cancel_export(uuid, text) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION claim_export(text, text, integer, integer) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION extend_export(uuid, bigint, text, integer, bigint, bigint, bigint) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION finish_export(uuid, bigint, text, bigint, bigint) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION fail_export(uuid, bigint, text, text, text, integer, integer) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION release_export(uuid, bigint, text) TO linkfence_ingest;
GRANT EXECUTE ON FUNCTION remove_exports(bigint, integer) TO linkfence_ingest;
