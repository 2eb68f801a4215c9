#!/usr/bin/env bash
# aarch64.sh [ctest's options]: builds the library for 64-bit ARM, and runs the tests of kernels, layers and averaging
# rules under qemu-user. As root on Debian 13, best in a bare root (bare_root.sh): it adds that architecture's packages.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
rooms=(core/ops core/nn parallel/strategies)
targets=("${rooms[@]/#/tests/}")

# The libraries that muster's build needs, of the other architecture. Of tools and headers alone there is one package.
libraries() {
  sed -n '/^\[build\]/,/^\[test\]/p' "$root/tests/tools/packages.txt" | grep -oE '^(lib|zlib|ocl)[^ ]*' |
    sed 's/@boost@//; s/$/:arm64/'
}

dpkg --add-architecture arm64
apt-get update
# shellcheck disable=SC2046
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends cmake ninja-build doctest-dev \
  g++-aarch64-linux-gnu qemu-user $(libraries)
cd "$root"
cmake --preset aarch64
cmake --build --preset aarch64 --target "${targets[@]/%//all}"
ctest --preset aarch64 --parallel "$(nproc)" --tests-regex "^($(IFS='|' && echo "${rooms[*]}"))/" "$@"
