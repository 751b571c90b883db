#!/bin/sh
# Copies what the image needs from a built repository, its current directory, to the folder given: compiled code without
# tests, migrations, every manifest (the lockfile is checked against all of them), and the container's own scripts.
set -eu

find . -name node_modules -prune -o -type f \( \
  -name package.json -o -name pnpm-lock.yaml -o -name pnpm-workspace.yaml \
  -o \( -path './packages/*/dist/*.js' -o -path './services/*/dist/*.js' \) ! -name '*.test.js' \
  -o -path './packages/db/migrations/*' -o -path './services/*/public/*' \
  -o -path './infra/container/*' -o -path './infra/postgres/*' \
  \) -print0 | tar --create --null --files-from=- | tar --extract --directory="$1"
