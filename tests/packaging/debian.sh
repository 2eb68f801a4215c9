#!/usr/bin/env bash
# Tries Debian packages of muster: debian.sh RELEASE PACKAGES [ROOT], as root, with mmdebstrap.
# In ROOT, a bare Debian of that release that is made if it is not there: lintian, the release's own, finds no error and
# no warning; the program installs without anything else named, trains and tests; a project of its own is built with the
# packages for development, as a whole and with each component.
set -euo pipefail
release=$1 packages=$(realpath "$2") root=${3-$(mktemp -d)}
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

[[ -d $root/etc ]] || mmdebstrap --variant=apt "$release" "$root"
# Old clocks of images and proxies: as the system outside has them.
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
for component in core datasets parallel watch nodes onnx page tensorboard torch; do
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
