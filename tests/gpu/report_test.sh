#!/usr/bin/env bash
# Calls report.sh on a build whose test programs end in every way there is, and reads what it says of them. The only
# argument is report_sample. Benchmarks, compute-sanitizer and the driver's tool are played by scripts.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
sample=$1
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
build=$sandbox/build
report=$sandbox/report.md
mkdir -p "$build/tests/core/ops" "$build/tests/nn" "$build/tests/bench" "$sandbox/bin"
export PATH=$sandbox/bin:$PATH
unset CUDA_HOME

script() { # file; its text comes in
  { printf '#!/bin/bash\n'; cat; } >"$1"
  chmod +x "$1"
}
program() { script "$build/tests/$1" <<<"REPORT_SAMPLE='$2' exec '$sample' \"\$@\""; }

failures=0
complain() {
  printf 'report_test: %s\n' "$*"
  failures=$((failures + 1))
}
has() { grep -qxF -- "$1" "$report" || complain "the report has no line: $1"; }
like() { grep -qE -- "$1" "$report" || complain "the report has no line like: $1"; }
lacks() { if grep -qF -- "$1" "$report"; then complain "the report has: $1"; fi; }
run() { # expected status, options
  local expected=$1 status=0
  shift
  bash "$here/report.sh" --build "$build" --out "$report" "$@" >"$sandbox/log" 2>&1 || status=$?
  if ((status != expected)); then
    cat "$sandbox/log"
    complain "report.sh $* ended with $status, not $expected"
  fi
}

program core/ops/fine_test ''
program core/ops/crashing_test crash
program core/ops/killed_test killed
program core/ops/hanging_test hang
program core/ops/leaving_test exit
program core/ops/failing_test fail
program core/ops/lost_test lost
program nn/fine_test ''
script "$build/tests/cpu_only_test" <<<'exit 0'
script "$build/tests/broken_test" <<<'echo "a library is missing" >&2; exit 127'
script "$build/tests/bench/device_speed" <<'END'
case $* in
  *--about*) echo "device: Toy 100 (cuda:0)"; echo "cuDNN: 91002 (/somewhere/libcudnn.so.9)" ;;
  *--probe*) exit 0 ;;
  *) echo "copies: fast" ;;
esac
END
script "$build/tests/bench/gpu_end_to_end" <<'END'
[[ $* != *resnet18* ]] || { echo "out of luck" >&2; exit 9; }
echo "MNIST: 7 images a second"
END
script "$sandbox/bin/nvidia-smi" <<<'echo "580.1, 700.00 W, 1980 MHz, 2619 MHz"'
script "$sandbox/bin/compute-sanitizer" <<'END'
case $* in
  *--probe*) echo "========= ERROR SUMMARY: 0 errors" ;;
  *racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  *failing_test*) printf '========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 3 errors\n' ;;
  *lost_test*) exit 1 ;;
  *) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
END

script "$sandbox/bin/ncu" <<'END'
printf '==PROF== Connected\n  conv_kernel Invocations 20\n'
END

# Everything: eight programs of five cases each and one that cannot start; what fatal cases take along is run, too.
run 1 --time-limit 5 --jobs 3
has '| device | Toy 100 (cuda:0) |'
has '| cuDNN | 91002 (/somewhere/libcudnn.so.9) |'
has '| driver | 580.1 |'
has '| limits | 700.00 W, 1980 MHz (SM), 2619 MHz (memory) |'
has '41 cases of 9 programs: 33 run, 7 of them failed; 8 skipped.'
like '^- core/ops/crashing_test: ends badly<gpu>, (crashed \(signal 11\)|ended with status [0-9]+)$'  # as sanitizers do
has '- core/ops/killed_test: ends badly<gpu>, was killed, or did not end within 5 s'
has '- core/ops/hanging_test: ends badly<gpu>, did not end within 5 s'
has '- core/ops/leaving_test: ends badly<gpu>, ended with status 5'
has '- core/ops/failing_test: ends badly<gpu>'
has '- core/ops/lost_test: works, in a way<gpu, tf32>'
has '- broken_test: (the start of the program), ended with status 127'
like 'a library is missing'
like 'two and two are five'
has '- 8: one GPU, two are needed'
like '^\| core/ops/fine_test \| 4 \| 0 \| 1 \| [0-9.]+ \|$'
like '^\| core/ops/lost_test \| 4 \| 1 \| 1 \| [0-9.]+ \|$'
lacks 'cpu_only_test'
lacks 'is not asked for'
has '| core/ops/fine_test | 0 errors | 0 hazards displayed (0 errors, 0 warnings) |'
has '| core/ops/failing_test | 3 errors | 0 hazards displayed (0 errors, 0 warnings) |'
like '^\| core/ops/lost_test \| the tool gave no result \(status 1\)'
like 'Invalid __global__ read'
lacks '| nn/fine_test | 0 errors'
has 'copies: fast'
has 'MNIST: 7 images a second'
like '^resnet18 ended with status 9: out of luck'
has '  conv_kernel Invocations 20'

# A part alone leaves the others' results; names choose cases and programs.
run 1 --only tests --filter 'in a way<gpu, tf32>' --time-limit 5
has 'MNIST: 7 images a second'
has '8 cases of 8 programs: 8 run, 1 of them failed; 0 skipped. Only those with "in a way<gpu, tf32>" in their names.'

# A packed build is unpacked, and ./run hands it on.
tar -C "$build" -cf "$sandbox/packed.tar" .
"$here/../../run" gpu --build "$sandbox/packed.tar" --out "$report" --only tests --filter nn/fine \
  >"$sandbox/log" 2>&1 || complain "./run gpu --build with a packed build: $(cat "$sandbox/log")"
has '5 cases of 1 programs: 4 run, 0 of them failed; 1 skipped. Only those with "nn/fine" in their names.'

# Without a GPU both say so and fail.
script "$build/tests/bench/device_speed" <<<'echo "device_speed: cuda:0 is not there" >&2; exit 1'
run 3
grep -qx 'gpu: no GPU can be used here: device_speed: cuda:0 is not there' "$sandbox/log" ||
  complain "$(cat "$sandbox/log")"
if [[ ! -e /dev/nvidiactl && ! -e /dev/dxg ]]; then
  script "$sandbox/bin/nvidia-smi" <<<'exit 9'
  if "$here/../../run" gpu --build "$build" >"$sandbox/log" 2>&1; then complain "./run gpu found a GPU"; fi
  grep -q 'this machine has no NVIDIA GPU' "$sandbox/log" || complain "$(cat "$sandbox/log")"
fi

[[ $failures == 0 ]] || exit 1
