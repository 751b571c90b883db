-- Roles, and what everybody loses. Run by a superuser in each of the two databases, before the first migration and again
-- whenever it changed; running it twice changes nothing. Plain statements, so that a program can send the file as it is.
-- Passwords are not set here: a role without one cannot log in. What each role may do is in grants-main.sql and
-- grants-stats.sql, which come after the migrations.

DO $$
DECLARE
  role text;
BEGIN
  -- Roles belong to the server and not to the database: two that are set up at the same time would change them under each
  -- other's hands ("tuple concurrently updated"). This waits for the other one to end.
  LOCK TABLE pg_catalog.pg_authid IN SHARE ROW EXCLUSIVE MODE;

  FOREACH role IN ARRAY ARRAY['linkfence_owner', 'linkfence_write', 'linkfence_redirect', 'linkfence_ingest'] LOOP
    IF to_regrole(role) IS NULL THEN
      EXECUTE format('CREATE ROLE %I', role);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT', role);
  END LOOP;

  -- The owner runs the migrations, and owns every table and function with them.
  EXECUTE format('ALTER DATABASE %I OWNER TO linkfence_owner', current_database());
  -- CONNECT and TEMP are everybody's by default; a temporary table could stand in for a real one.
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());

  -- Limits of last resort. Every service has shorter deadlines of its own (15 s at the most); these end what a service
  -- that hangs or was cut off leaves behind. A pool of 100 connections is shared out so that no service takes all of them.
  ALTER ROLE linkfence_write CONNECTION LIMIT 40;
  ALTER ROLE linkfence_write SET statement_timeout = '20s';
  ALTER ROLE linkfence_write SET lock_timeout = '10s';
  ALTER ROLE linkfence_write SET idle_in_transaction_session_timeout = '30s';

  -- Four connections a process (links, feed, LISTEN, one to cancel with): room for ten processes.
  ALTER ROLE linkfence_redirect CONNECTION LIMIT 40;
  ALTER ROLE linkfence_redirect SET statement_timeout = '5s';
  ALTER ROLE linkfence_redirect SET lock_timeout = '2s';
  ALTER ROLE linkfence_redirect SET idle_in_transaction_session_timeout = '5s';

  ALTER ROLE linkfence_ingest CONNECTION LIMIT 40;
  ALTER ROLE linkfence_ingest SET statement_timeout = '20s';
  ALTER ROLE linkfence_ingest SET lock_timeout = '2s';
  ALTER ROLE linkfence_ingest SET idle_in_transaction_session_timeout = '30s';

  -- A migration may take minutes, and waits for another one that is running; it never idles inside its transaction.
  ALTER ROLE linkfence_owner CONNECTION LIMIT 5;
  ALTER ROLE linkfence_owner SET idle_in_transaction_session_timeout = '60s';
END $$;

ALTER SCHEMA public OWNER TO linkfence_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
-- A new function may be called by everybody, unless its owner's defaults say otherwise.
ALTER DEFAULT PRIVILEGES FOR ROLE linkfence_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
