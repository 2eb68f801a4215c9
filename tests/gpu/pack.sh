#!/usr/bin/env bash
# Makes the directory that is brought along to a machine with a GPU which cannot build: the test programs with cases for
# GPUs and the benchmarks, stripped, the shared libraries that they need beside the C library, and the report. Then packs
# it. Called by `./run gpu pack`; arguments: the build directory, or --check to look only whether the call is right, and
# the directory to make.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
usage() {
  cat <<'END'
./run gpu pack DIR  builds in build/cuda, with CUDA's compiler but without a GPU, and makes from that DIR and
                    DIR.tar.xz, neither of which may be there before, for a machine with a GPU that cannot build.
                    There, call python3 gpu_report in DIR, or ./run gpu --build with either.

It ends with 0 where both were made, 1 where building or packing failed, 2 where it was called wrongly.
END
}
fail() { echo "pack: $*" >&2; exit 2; }

if [[ ${1-} == --help ]]; then
  usage
  exit
fi
(($# == 2)) || fail "expected the name of one directory to make; --help tells more"
build=$1 to=$2
[[ $to != -* ]] || fail "there is no option $to; --help tells more"
while [[ $to == ?*/ ]]; do to=${to%/}; done
[[ -n $to ]] || fail "the name of the directory to make is empty"
for made in "$to" "$to.tar.xz"; do
  [[ ! -e $made && ! -L $made ]] || fail "$made is there already"
done
parent=$(dirname -- "$to")
[[ -d $parent ]] || fail "there is no directory $parent to make $(basename -- "$to") in"
[[ -w $parent ]] || fail "nothing can be made in $parent"
[[ $build != --check ]] || exit 0

mapfile -t programs < <(python3 "$here/report" --build "$build" --list)
programs+=(tests/bench/device_convolutions tests/bench/device_speed tests/bench/gpu_end_to_end)
for program in "${programs[@]}"; do install -D -s "$build/$program" "$to/$program"; done
cp "$build/tests/bench/torch_training.py" "$to/tests/bench/"
cp -r "$here/report" "$to/gpu_report"
git -C "$here" describe --always --dirty >"$to/revision" 2>/dev/null || rm -f "$to/revision"

# The C library and its parts are the other machine's: they must be as new as this one's.
mkdir "$to/lib"
(cd "$build" && ldd "${programs[@]}") | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libanl|libutil)\.so' |
  while IFS= read -r library; do cp -L "$library" "$to/lib/"; done

XZ_OPT=--lzma2=preset=4,dict=96MiB tar -C "$to" -cJf "$to.tar.xz" .
# The driver that CUDA's runtime, which the programs bring along, asks for at least; see NVIDIA's table in CUDA's
# release notes.
cuda=$(cat "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake 2>/dev/null |
  sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\([0-9]*\).*/\1/p' | tail -n 1)
case $cuda in
  12) driver="driver 525 (CUDA 12) or newer" ;;
  13) driver="driver 580 (CUDA 13) or newer" ;;
  *) driver="a driver for CUDA $cuda" ;;
esac
mebibytes() { du -sm "$1" | cut -f 1; }
echo "$to: ${#programs[@]} programs, $(mebibytes "$to") MiB; $to.tar.xz: $(mebibytes "$to.tar.xz") MiB." \
  "For x86-64 with glibc $(ldd --version | awk 'NR == 1 { print $NF }') or newer and NVIDIA's $driver:" \
  "there, call python3 gpu_report in the directory, or ./run gpu --build with either."
