-- What each service may do in the main database. Run by linkfence_owner after the migrations; a program can send it as it
-- is. It starts from nothing each time, so that a right taken out of this file is taken away by the next run.

DO $$ BEGIN
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO linkfence_write, linkfence_redirect', current_database());
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM linkfence_ingest', current_database());
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, linkfence_write, linkfence_redirect, linkfence_ingest;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, linkfence_write, linkfence_redirect, linkfence_ingest;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC, linkfence_write, linkfence_redirect, linkfence_ingest;
GRANT USAGE ON SCHEMA public TO linkfence_write, linkfence_redirect;

-- write: the only writer of links. It revokes by revoke_links alone, which runs with the rights of its owner: nothing
-- else changes the state of a link or writes the log, and nothing is deleted. Tags are indexed by a trigger, likewise.
GRANT SELECT, INSERT, UPDATE (title, tags, note) ON link TO linkfence_write;
GRANT SELECT ON link_tag, cursor_key TO linkfence_write;
GRANT SELECT ON link_change TO linkfence_write;
-- It looks keys up, and makes, rotates, revokes and touches them by functions; the first one it puts in itself.
GRANT SELECT, INSERT (id, owner, name, scopes, secret_hash) ON api_key TO linkfence_write;
GRANT EXECUTE ON FUNCTION
  create_api_key(text, bytea, text, text, text[], timestamptz, bigint, text),
  rotate_api_key(text, text, text, bytea, int, text),
  revoke_api_key(text, text, text),
  touch_api_keys(text[])
  TO linkfence_write;
-- It watches the registry, removes the rows of processes that are gone, settles epochs and trims the log by functions.
GRANT EXECUTE ON FUNCTION watch_registry(), settle_epoch(text), remove_instances(uuid[], bigint[]),
  trim_changes(interval, int) TO linkfence_write;
GRANT EXECUTE ON FUNCTION revoke_links(text[], text, text), feed_epoch() TO linkfence_write;
GRANT EXECUTE ON FUNCTION owner_changes(text, bigint, bigint, int) TO linkfence_write;
-- It keeps answers, and reads and removes them by functions alone; when they expire is the table's own default.
GRANT INSERT (owner, call, key, request_digest, status, location, body) ON idempotency_record TO linkfence_write;
GRANT EXECUTE ON FUNCTION
  take_idempotency_key(text, text, text, bytea, int),
  sweep_idempotency_records(int)
  TO linkfence_write;
-- It writes down how far imports have come, and what became of their lines.
GRANT SELECT, INSERT, UPDATE (attempt, bytes, digest, last_line, lines, created, already, refused, errors_kept,
  ignored_columns, updated_at, finished_at) ON import TO linkfence_write;
GRANT SELECT, INSERT ON import_error TO linkfence_write;
GRANT SELECT, INSERT, DELETE ON import_alias TO linkfence_write;

-- redirect: reads links through one view, and reaches the log and its own registry row through functions alone.
GRANT SELECT ON redirect_link TO linkfence_redirect;
GRANT EXECUTE ON FUNCTION
  register_instance(uuid, text, int, boolean),
  deregister_instance(uuid),
  sync_instance(uuid, bigint, int, bigint, boolean, bigint, text)
  TO linkfence_redirect;
