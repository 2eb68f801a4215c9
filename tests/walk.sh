#!/usr/bin/env bash
# Walks the README as a new user does.
#   walk.sh installed PREFIX   the sections after ./run install: its program in a CMake project of its own, then training
#                              by a run file, with what is installed below PREFIX. The program runs if MUSTER_DATA_DIR
#                              has MNIST.
#   walk.sh bare [RELEASE]     all of it from ./run mnist on, in a new root with nothing but Debian's base (bookworm); as
#                              root, with debootstrap and a network, in about half an hour. Exits with 77 without them.
set -euo pipefail
source=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

# The first block of language $1 in the README after the line $2.
block() {
  awk -v language="$1" -v after="$2" '
    index($0, after) == 1 { reached = 1 }
    reached && inside && /^```$/ { exit }
    reached && inside
    reached && $0 == "```" language { inside = 1 }' "$source/README.md"
}

walk_installed() {
  local prefix=$1 project
  project=$(mktemp -d)
  cd "$project"
  block cpp '# muster' >program.cpp
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(program LANGUAGES CXX)' \
    'add_executable(program program.cpp)' "$(block cmake '## In your own project')" >CMakeLists.txt
  cmake -B build "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_BUILD_TYPE=Release
  cmake --build build
  if [[ -n ${MUSTER_DATA_DIR-} ]]; then
    build/program | tee said
    grep -q accuracy said
    [[ -s convnet.safetensors ]]
  else
    echo "not run: README's program needs MNIST (MUSTER_DATA_DIR)"
  fi
  block sh '### Train without C++' >train.sh
  grep -q '^muster train' train.sh
  PATH=$prefix/bin:$PATH bash -euxo pipefail train.sh
  [[ -s model.safetensors ]]
  rm -rf "$project"
}

walk_bare() {
  local release=${1:-bookworm} root
  if [[ $(id -u) != 0 ]] || ! command -v debootstrap >/dev/null; then
    echo "skipped: the walk in a bare root needs root and debootstrap"
    exit 77
  fi
  root=$(mktemp -d)
  # Nothing of the host is removed, also if a folder could not be unmounted.
  trap 'umount -R -l "$root/proc" "$root/dev" 2>/dev/null; rm -rf --one-file-system "$root" "$root.log"' EXIT
  debootstrap --variant=minbase --include=ca-certificates,git "$release" "$root" >"$root.log" 2>&1 || {
    tail -n 5 "$root.log"
    echo "skipped: debootstrap could not make a root"
    exit 77
  }
  mkdir "$root/muster"
  (cd "$source" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$root/muster"
  if [[ -n ${MUSTER_DATA_DIR-} ]]; then cp -rL "$MUSTER_DATA_DIR" "$root/mnist"; fi
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --make-rslave "$root/dev"
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root ${MUSTER_DATA_DIR+MUSTER_DATA_DIR=/mnist} \
    http_proxy="${http_proxy-}" https_proxy="${https_proxy-}" bash -euxo pipefail -c '
      cd /muster
      ./run mnist
      ./run test
      ./run install ~/muster
      bash tests/walk.sh installed ~/muster'
}

case ${1-} in
  installed) walk_installed "$(realpath -- "${2:?PREFIX is missing}")" ;;
  bare) walk_bare "${2-}" ;;
  *)
    sed -n '2,7s/^# \?//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
