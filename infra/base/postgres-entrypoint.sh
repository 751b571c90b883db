#!/usr/bin/env bash
# The part of the public image's first-start behaviour that compose.yaml relies on: an empty data directory is
# initialised with POSTGRES_USER, the password in POSTGRES_PASSWORD_FILE and the database POSTGRES_DB, and only then
# does the server listen on TCP. Anything else is started as it was given.
set -euo pipefail

[[ "${1:-}" == "postgres" ]] || exec "$@"

user="${POSTGRES_USER:-postgres}"
database="${POSTGRES_DB:-${user}}"

if [[ ! -s "${PGDATA}/PG_VERSION" ]]; then
  : "${POSTGRES_PASSWORD_FILE:?must name the file that holds the password of the superuser}"
  # shellcheck disable=SC2086 # POSTGRES_INITDB_ARGS is a list of words by contract
  initdb --username="${user}" --pwfile="${POSTGRES_PASSWORD_FILE}" --encoding=UTF8 \
    --auth-local=trust --auth-host=scram-sha-256 --pgdata="${PGDATA}" ${POSTGRES_INITDB_ARGS:-}
  echo "host all all all scram-sha-256" >>"${PGDATA}/pg_hba.conf"
  if [[ "${database}" != "postgres" ]]; then
    # Single-user mode: nothing can connect before the database exists.
    printf 'CREATE DATABASE "%s"\n' "${database//\"/\"\"}" | postgres --single -D "${PGDATA}" postgres >/dev/null
  fi
fi

exec "$@" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
