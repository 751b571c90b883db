#!/bin/sh
# Entry of the image: SERVICE says which process this container is. `exec` makes it process 1, so that it gets SIGTERM.
set -eu

case "${SERVICE:-}" in
  write | redirect | click-ingest) exec node "services/${SERVICE}/dist/main.js" "$@" ;;
  secrets) exec node infra/container/make-secrets.mjs "$@" ;;
  migrate) exec node infra/container/migrate.mjs "$@" ;;
  admin-key) exec cat /run/linkfence-admin/admin-key ;;
  *)
    echo "SERVICE must be one of write, redirect, click-ingest, migrate, secrets, admin-key" >&2
    exit 78 # EX_CONFIG of sysexits.h, as the services themselves use it
    ;;
esac
