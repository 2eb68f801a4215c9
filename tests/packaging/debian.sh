#!/usr/bin/env bash
# Tries Debian packages of muster: debian.sh RELEASE PACKAGES [ROOT], as root, with mmdebstrap.
# ROOT is a minimal Debian of that release, created if missing. There, the release's lintian finds no errors or
# warnings; the program installs by its name alone, trains and tests; a separate project builds with the development
# packages, as a whole and with each component.
set -euo pipefail
release=$1 packages=$(realpath "$2") root=${3-$(mktemp -d)}
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

[[ -d $root/etc ]] || mmdebstrap --variant=apt "$release" "$root"
# Copy the host's DNS and apt settings (proxies, old package snapshots).
for file in /etc/resolv.conf /etc/apt/apt.conf; do [[ -e $file ]] && cp "$file" "$root$file"; done
mkdir -p "$root/packages" "$root/consumer"
cp "$packages"/*.deb "$root/packages/"
cp -r "$here/consumer/." "$root/consumer/"
mountpoint -q "$root/proc" || { mount -t proc proc "$root/proc"; trap 'umount "$root/proc"' EXIT; }

chroot "$root" env DEBIAN_FRONTEND=noninteractive bash -euxo pipefail <<'END'
install() { apt-get -qq -o Acquire::Check-Date=false -o Dpkg::Options::=--force-unsafe-io install -y --no-install-recommends "$@" >/dev/null; }
apt-get -qq -o Acquire::Check-Date=false -o Acquire::Check-Valid-Until=false update
cd /packages
install $(ls ./*.deb | grep -v -e -dev_)
ldconfig -p | grep libmuster
muster --version
cd /tmp && rm -f run.json
muster example > run.json
muster plan run.json
cd /packages
install ./*-dev_*.deb g++ cmake make pkg-config
find_package() {
  rm -rf "/tmp/$1" && mkdir "/tmp/$1"
  (cd "/tmp/$1" && cmake "$2" ${3+"-DWANT=$3"} -DCMAKE_BUILD_TYPE=Release >configured 2>&1 || { cat configured; exit 1; })
  make -C "/tmp/$1" >/dev/null
}
find_package whole /consumer
/tmp/whole/consumer
for component in core datasets parallel watch nodes onnx page run tensorboard torch; do
  ls /usr/lib/*/cmake/muster/muster_${component}Targets.cmake || continue
  find_package "part-$component" /consumer/components "$component"
  "/tmp/part-$component/components"
done
g++ /consumer/components/main.cpp -o /tmp/by-pkg-config $(pkg-config --cflags --libs muster)
/tmp/by-pkg-config
install lintian
lintian --fail-on error,warning --allow-root /packages/*.deb
END
echo "$release: all packages install, work, and pass lintian"
