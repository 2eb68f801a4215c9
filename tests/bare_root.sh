#!/usr/bin/env bash
# bare_root.sh RELEASE command...: runs the command in a copy of this tree, /muster, in a new root with nothing but the
# base of this release of Debian (bookworm, trixie); as root, with debootstrap and a network. Exits with 77 without them.
# MUSTER_DATA_DIR is copied, too.
set -euo pipefail
source=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
release=${1:?RELEASE is missing}
shift
if [[ $(id -u) != 0 ]] || ! command -v debootstrap >/dev/null; then
  echo "skipped: a bare root needs root and debootstrap"
  exit 77
fi
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root" "$root.log"' EXIT
debootstrap --variant=minbase --include=ca-certificates,git "$release" "$root" >"$root.log" 2>&1 || {
  tail -n 5 "$root.log"
  echo "skipped: debootstrap could not make a root of $release"
  exit 77
}
mkdir "$root/muster"
(cd "$source" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$root/muster"
if [[ -n ${MUSTER_DATA_DIR-} ]]; then cp -rL "$MUSTER_DATA_DIR" "$root/mnist"; fi
# The mounts are seen by these processes only, and end with them: nothing of the host can be removed.
unshare --mount bash -euo pipefail -c '
  mount -t proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  exec chroot "$0" env -i -C /muster PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"' "$root" \
  ${MUSTER_DATA_DIR+MUSTER_DATA_DIR=/mnist} http_proxy="${http_proxy-}" https_proxy="${https_proxy-}" "$@"
