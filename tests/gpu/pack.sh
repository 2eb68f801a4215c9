#!/usr/bin/env bash
# Makes and packs a directory for a machine with a GPU that cannot build: the test programs with cases for GPUs and the
# benchmarks, stripped, their shared libraries except the C library, and the report; not what needs libtorch. Called by `./run gpu pack`;
# arguments: the build directory, or --check to validate the call only, and the directory to make.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
usage() {
  cat <<'END'
./run gpu pack DIR [--arch 90]
                    builds in build/cuda, with CUDA's compiler but without a GPU, and makes from that DIR and DIR.tar.xz
                    (DIR.tar.gz without xz), none of which may be there before, for a machine with a GPU that cannot
                    build. There, call python3 gpu_report in DIR, or ./run gpu --build with either.
                    --arch N: for GPUs of compute capability N alone (90: H100 and H200), which takes less room.

It ends with 0 where both were made, 1 where building or packing failed, 2 where it was called wrongly. Tests of libtorch
are left out. A packed file of more than 64 MiB is told of, as some machines that are lent take no more.
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
for made in "$to" "$to.tar.xz" "$to.tar.gz"; do
  [[ ! -e $made && ! -L $made ]] || fail "$made is there already"
done
parent=$(dirname -- "$to")
[[ -d $parent ]] || fail "there is no directory $parent to make $(basename -- "$to") in"
[[ -w $parent ]] || fail "nothing can be made in $parent"
[[ $build != --check ]] || exit 0

# libtorch is far larger than all else, and a machine with a GPU has another one, which the programs do not fit.
mapfile -t programs < <(python3 "$here/report" --build "$build" --list |
  while IFS= read -r program; do
    ldd "$build/$program" | grep libtorch >/dev/null || printf '%s\n' "$program"
  done)
for program in device_bits device_convolutions device_large device_launches device_speed gpu_end_to_end; do
  programs+=("tests/bench/$program")
done
for program in "${programs[@]}"; do install -D -s "$build/$program" "$to/$program"; done
cp "$build/tests/bench/torch_training.py" "$to/tests/bench/"
cp -r "$here/report" "$to/gpu_report"
git -C "$here" describe --always --dirty >"$to/revision" 2>/dev/null || rm -f "$to/revision"

# The C library and its parts come from the other machine and must be as new as this one's.
mkdir "$to/lib"
(cd "$build" && ldd "${programs[@]}") | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libanl|libutil)\.so' |
  while IFS= read -r library; do cp -L "$library" "$to/lib/"; done

# CUPTI, which traces kernels, is opened by name, so no program links it; the report adds lib/ to the loader's path.
cuda=$(cat "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake 2>/dev/null |
  sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\([0-9]*\).*/\1/p' | tail -n 1)
cupti=$(sed -n 's/^CUDA_cupti_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null) || true
if [[ -n $cuda && -f $cupti ]]; then
  cp -L "$cupti" "$to/lib/libcupti.so.$cuda"
else
  echo "pack: CUPTI was not found, so kernels can be traced only where that machine has it" >&2
fi

# The programs share muster and CUDA's runtime: only a large dictionary finds repetitions that are so far apart.
if command -v xz >/dev/null; then
  packed=$to.tar.xz
  tar -C "$to" -cf - . | xz --threads=1 --lzma2=preset=1,dict=192MiB >"$packed"
else
  packed=$to.tar.gz
  tar -C "$to" -czf "$packed" .
fi
# The oldest driver for the packed CUDA runtime; see NVIDIA's table in CUDA's release notes.
case $cuda in
  12) driver="driver 525 (CUDA 12) or newer" ;;
  13) driver="driver 580 (CUDA 13) or newer" ;;
  *) driver="a driver for CUDA $cuda" ;;
esac
mebibytes() { du -sm "$1" | cut -f 1; }
if (($(stat -c %s "$packed") > 64 << 20)); then
  echo "pack: $packed has more than 64 MiB: with --arch 90 it is for one kind of GPU alone, and smaller" >&2
fi
echo "$to: ${#programs[@]} programs, $(mebibytes "$to") MiB; $packed: $(mebibytes "$packed") MiB." \
  "For x86-64 with glibc $(ldd --version | awk 'NR == 1 { print $NF }') or newer and NVIDIA's $driver:" \
  "there, call python3 gpu_report in the directory, or ./run gpu --build with either."
