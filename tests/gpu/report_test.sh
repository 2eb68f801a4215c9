#!/usr/bin/env bash
# Calls report.sh on a build whose test programs end in every way there is, and reads what it says of them: at once, in
# pieces, and ended from outside. The only argument is report_sample. Benchmarks, compute-sanitizer and the driver's tool
# are played by scripts.
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

# A wrong call is told of in one sentence, whether or not there is a GPU.
refused() { # a piece of what is said, options
  local status=0 said
  said=$(cd "$sandbox" && bash "$here/report.sh" "${@:2}" 2>&1) || status=$?
  if ((status != 2)) || [[ $said != "gpu: "*"$1"* || $said == *$'\n'* ]]; then
    complain "report.sh ${*:2} ended with $status and said: $said"
  fi
}
refused 'there is no option --bogus' --bogus
refused 'there is no option foo' foo
for option in --build --out --minutes --only --filter --jobs --python; do
  refused "$option wants a value" "$option"
  refused "$option wants a value" "$option" ''
done
for option in --jobs --time-limit --sanitizer-limit --sanitizer-minutes --bench-rounds; do
  refused "$option wants a number from 1 on, got 0" "$option" 0
done
refused '--minutes wants a number from 2 on, got x' --minutes x
refused '--bench-seconds wants a number above 0, got 0.0' --bench-seconds 0.0
for part in nonsense ',' 'tests profile' tests,nonsense; do refused "--only: expected" --only "$part"; done
refused "--out wants a file, but $sandbox is a folder" --out "$sandbox"
refused "/nonexistent is no build of muster" --build /nonexistent
refused "is no build of muster" --build "$here/../.."
refused "is no build of muster"  # where the script lies
echo 'not packed' >"$sandbox/text"
refused "$sandbox/text is no packed build" --build "$sandbox/text"
tar -C "$sandbox" -cf "$sandbox/other.tar" text
refused "$sandbox/other.tar is no build of muster" --build "$sandbox/other.tar"
[[ $(ls "$sandbox") == $'bin\nbuild\nother.tar\ntext' ]] || complain "wrong calls leave something: $(ls "$sandbox")"
bash "$here/report.sh" --check --only tests,profile --minutes 9 --bench-seconds .5 || complain "a right call is refused"
bash "$here/report.sh" --help | head -n 1 | grep -qF './run gpu [options]' ||
  complain "--help does not say how it is called"

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
  *--probe* | *--planted-error*) exit 0 ;;
  *) echo "copies: fast" ;;
esac
END
script "$build/tests/bench/device_convolutions" <<<'echo "convolutions: quick"'
script "$build/tests/bench/gpu_end_to_end" <<'END'
[[ $* != *resnet18* || -e ${0%/*}/luck ]] || { echo "out of luck" >&2; exit 9; }
[[ $* != *--trace* ]] || { echo "most of it in conv_kernel"; exit "$(cat "${0%/*}/trace_status" 2>/dev/null || echo 0)"; }
while (($#)); do
  if [[ $1 == --table ]]; then echo "MNIST: 7 images a second" >"$2"; fi
  shift
done
echo "not for the report"
END
script "$sandbox/bin/nvidia-smi" <<'END'
[[ $* != *compute_mode* ]] || { cat "${0%/*}/compute_mode" 2>/dev/null || echo Default; exit; }
echo "580.1, 700.00 W, 1980 MHz, 2619 MHz"
END
# It does not know --kernel-name; some programs run under it.
script "$sandbox/bin/compute-sanitizer" <<'END'
case $* in *crashing_test* | *fine_test*) (while [[ $1 != /* ]]; do shift; done; "$@" >/dev/null) ;; esac
case $* in
  *--kernel-name*) echo "unrecognised option" >&2; exit 1 ;;
  *--probe*) echo "========= ERROR SUMMARY: 0 errors" ;;
  *--planted-error*) cat "${0%/*}/planted" ;;
  *racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  *failing_test*) printf '========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 3 errors\n' ;;
  *lost_test*) exit 1 ;;
  *) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
END

echo "========= ERROR SUMMARY: 16 errors" >"$sandbox/bin/planted"
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
has '| core/ops/fine_test | 0 errors in 4 cases | 0 hazards displayed (0 errors, 0 warnings) in 4 cases |'
has '| core/ops/crashing_test | 0 errors in 3 cases | 0 hazards displayed (0 errors, 0 warnings) in 3 cases |'
has '| core/ops/failing_test | 3 errors in 0 cases | 0 hazards displayed (0 errors, 0 warnings) in 0 cases |'
like '^\| core/ops/lost_test \| the tool gave no result \(status 1\)'
like 'The tool looked at our kernels \(--kernel-regex kns=muster\)'
has '- core/ops/hanging_test: ends badly<gpu>: did not end within 5 s without the tool'
like 'Invalid __global__ read'
lacks '| nn/fine_test | 0 errors'
has 'copies: fast'
has 'convolutions: quick'
has 'MNIST: 7 images a second'
like '^resnet18 ended with status 9: out of luck'
lacks 'not for the report'
has 'most of it in conv_kernel'
has '  conv_kernel Invocations 20'
has 'Merges of 8 replicas of 100 MB'
lacks 'This report is not whole'

# A part alone leaves the others' results, and cases chosen by name those of the other cases.
run 1 --only tests --filter 'in a way<gpu, tf32>' --time-limit 5
has 'MNIST: 7 images a second'
has '41 cases of 9 programs: 33 run, 7 of them failed; 8 skipped.'
like '^\| core/ops/crashing_test \| 4 \| 1 \| 1 \| [0-9.]+ \|$'

# Programs are listed by their names and their cases'.
run 0 --list --filter nn/
[[ $(cat "$sandbox/log") == tests/nn/fine_test ]] || complain "--list: $(cat "$sandbox/log")"
refused "$build has no tests for a GPU with zzzz in their names" --build "$build" --list --filter zzzz

# A GPU that lets in one process gets one at a time.
echo Exclusive_Process >"$sandbox/bin/compute_mode"
script "$build/tests/core/ops/fine_test" <<END
[[ "\$*" == *--list* ]] || mkdir '$sandbox/in use' || exit 9
REPORT_SAMPLE=slow '$sample' "\$@"
status=\$?
[[ "\$*" == *--list* ]] || rmdir '$sandbox/in use'
exit \$status
END
for name in core/ops/also core/ops/as_well; do cp "$build/tests/core/ops/fine_test" "$build/tests/${name}_test"; done
run 4 --only tests --filter core/ops/a --jobs 3
grep -q "of another build or GPU" "$sandbox/log" || complain "$(cat "$sandbox/log")"
has '| compute mode | exclusive to one process, so test programs ran one at a time |'
has '10 cases of 2 programs: 8 run, 0 of them failed; 2 skipped.'
has '- the benchmark convnet'
rm "$build/tests/core/ops/"{also,as_well}_test "$sandbox/bin/compute_mode"
program core/ops/fine_test ''

# In pieces, each with so little time that what hangs is cut short and goes on in the next: cases that are done with are
# not run again, and the pieces make one whole.
rm "$build/tests/core/ops/"{crashing,killed,leaving,failing,lost}_test "$build/tests/broken_test"
SECONDS=103 run 4 --minutes 2 --only tests --time-limit 5 --jobs 3
has '10 cases of 2 programs: 8 run, 0 of them failed; 2 skipped.'
has '- 5 test cases of 1 programs'
has '- compute-sanitizer'
SECONDS=117 run 4 --minutes 2 --only tests --time-limit 5
has '10 cases of 2 programs: 8 run, 0 of them failed; 2 skipped.'
cp "$sandbox/report/tests/core__ops__fine_test.cases" "$sandbox/first"
run 1 --minutes 2 --only tests --time-limit 5
has '15 cases of 3 programs: 12 run, 1 of them failed; 3 skipped.'
has '- core/ops/hanging_test: ends badly<gpu>, did not end within 5 s'
cmp -s "$sandbox/first" "$sandbox/report/tests/core__ops__fine_test.cases" || complain "what was done was done again"
lacks 'test cases of'
SECONDS=100 run 1 --minutes 2 --time-limit 5
has 'copies: fast'
has '- the benchmark convnet'
like '^- compute-sanitizer'
run 1 --minutes 9 --time-limit 5
lacks 'This report is not whole'
like '^resnet18 ended with status 9: out of luck'

# Ended at any time, from outside: the report is one, and the next call goes on. Asked to end, it leaves nothing running.
program core/ops/hanging_test slow
sed -i 's/^echo "not for/sleep 0.7; &/' "$build/tests/bench/gpu_end_to_end"
for signal in KILL TERM; do
  for moment in $([[ $signal == KILL ]] && echo 0.6 2.1 || echo 0.3 1.6); do
    rm -rf "$sandbox/report" "$report"
    # A group of its own, as of a command that is ended with all that it has begun.
    setsid bash "$here/report.sh" --build "$build" --out "$report" --jobs 2 >"$sandbox/log" 2>&1 &
    sleep "$moment"
    if [[ $signal == KILL ]]; then kill -KILL -- "-$!"; else kill "$!"; fi 2>/dev/null || true
    wait "$!" 2>/dev/null || true
    if [[ $signal == TERM ]] && pgrep -f "$build/tests/.*_test --no-colors" >/dev/null; then
      complain "a program is still there after $moment s"
    fi
    if [[ -e $report ]]; then
      has '# muster on a GPU'
      has '## compute-sanitizer on the tests of our own kernels'
      has 'This report is not whole. It lacks:'
    fi
    while pgrep -f "$build/tests/.*_test --no-colors" >/dev/null; do sleep 0.1; done
    run 1 --minutes 9
    has '15 cases of 3 programs: 12 run, 0 of them failed; 3 skipped.'
    lacks 'This report is not whole'
  done
done

# Steps whose trace crashes have failed; Nsight Compute, which needs rights that not everybody has, may fail.
touch "$build/tests/bench/luck"
run 0 --only benchmarks
script "$sandbox/bin/ncu" <<<'echo "no permission" >&2; exit 7'
run 0 --only profile
has 'ncu ended with status 7: no permission'
echo 134 >"$build/tests/bench/trace_status"
run 1 --only profile
like '^It ended with status 134'
rm "$build/tests/bench/trace_status"
run 0 --only profile

# An error made on purpose that compute-sanitizer does not find makes its other verdicts worth nothing.
echo "========= ERROR SUMMARY: 0 errors" >"$sandbox/bin/planted"
run 1 --only sanitizer
like '^compute-sanitizer does not find an error on this machine that was made on purpose'
lacks '| core/ops/fine_test | 0 errors'

# A packed build is unpacked, and ./run hands it on.
tar -C "$build" -cf "$sandbox/packed.tar" .
"$here/../../run" gpu --build "$sandbox/packed.tar" --out "$report" --only tests --filter nn/fine \
  >"$sandbox/log" 2>&1 || (($? == 1)) || complain "./run gpu --build with a packed build: $(cat "$sandbox/log")"
has '15 cases of 3 programs: 12 run, 0 of them failed; 3 skipped.'

# Without a GPU both say so in one sentence, fail in a way of their own, and write nothing.
script "$build/tests/bench/device_speed" <<<'echo "device_speed: cuda:0 is not there" >&2; exit 1'
tar -C "$build" -cf "$sandbox/packed.tar" .
rm -rf "$sandbox/report"* "$report"
for brought in "$build" "$sandbox/packed.tar"; do
  run 3 --build "$brought"
  [[ $(cat "$sandbox/log") == 'gpu: no GPU can be used here: cuda:0 is not there' ]] ||
    complain "$(cat "$sandbox/log")"
  [[ -z $(echo "$sandbox/report"*) || ! -e $(echo "$sandbox/report"*) ]] || complain "$(echo "$sandbox/report"*) is there"
done
if [[ ! -e /dev/nvidiactl && ! -e /dev/dxg ]]; then
  script "$sandbox/bin/nvidia-smi" <<<'exit 9'
  status=0
  "$here/../../run" gpu --build "$build" --out "$report" >"$sandbox/log" 2>&1 || status=$?
  ((status == 3)) || complain "./run gpu ended with $status without a GPU"
  grep -q 'this machine has no NVIDIA GPU' "$sandbox/log" || complain "$(cat "$sandbox/log")"
  [[ $(wc -l <"$sandbox/log") == 1 && ! -e $report ]] || complain "./run gpu did more than to say so"
fi

[[ $failures == 0 ]] || exit 1
