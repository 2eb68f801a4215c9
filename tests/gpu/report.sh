#!/usr/bin/env bash
# Runs the GPU's tests and benchmarks of a build, and writes down what they gave. `./run gpu` calls it, and it stands in
# a packed build, too: nothing is needed but bash, coreutils, awk and the driver. What fails, crashes or hangs is
# reported, and the rest is run; the report is written anew after each part.
set -uo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

usage() {
  cat <<'END'
  --build DIR|FILE    a build directory, or a packed one                          [where this script lies]
  --out FILE          the report; logs go beside it, in a folder of its name       [gpu-report.md]
  --only PART,...     tests, sanitizer, benchmarks, profile; the report keeps the others' last results [all]
  --filter TEXT       only test programs or cases with TEXT in their names
  --list              only print the test programs, by their places in the build
  --jobs N            test programs at once                                                            [4]
  --time-limit S      seconds that a test program may run without an end                             [300]
  --bench-seconds S   seconds of each measurement                                                      [2]
  --bench-rounds N    measurements of each kind                                                        [5]
  --python PROGRAM    runs PyTorch, to compare with                                              [python3]
END
}

say() { printf '%s\n' "$*" >&2; }
fail() { say "gpu: $*"; exit 2; }

build=$here
out=gpu-report.md
only=tests,sanitizer,benchmarks,profile
filter=
jobs=4
limit=300
bench_seconds=2
bench_rounds=5
python=python3
list=no
while (($#)); do
  case $1 in
    --help)
      usage
      exit
      ;;
    --list)
      list=yes
      shift
      continue
      ;;
    --build | --out | --only | --filter | --jobs | --time-limit | --bench-seconds | --bench-rounds | --python)
      (($# > 1)) || fail "$1 wants a value"
      ;;&
    --build) build=$2 ;;
    --out) out=$2 ;;
    --only) only=$2 ;;
    --filter) filter=$2 ;;
    --jobs) jobs=$2 ;;
    --time-limit) limit=$2 ;;
    --bench-seconds) bench_seconds=$2 ;;
    --bench-rounds) bench_rounds=$2 ;;
    --python) python=$2 ;;
    *) fail "there is no option $1; --help lists them" ;;
  esac
  shift 2
done
for part in ${only//,/ }; do
  case $part in
    tests | sanitizer | benchmarks | profile) ;;
    *) fail "--only: expected tests, sanitizer, benchmarks or profile, got $part" ;;
  esac
done
[[ $jobs =~ ^[1-9][0-9]*$ && $limit =~ ^[1-9][0-9]*$ ]] || fail "--jobs and --time-limit want numbers from 1 on"

work=${out%.md}
[[ $work != "$out" ]] || work=$out-logs
if [[ -f $build ]]; then
  rm -rf "$work/build"
  mkdir -p "$work/build" || exit 2
  tar -xf "$build" -C "$work/build" || fail "$build is no packed build"
  build=$work/build
fi
[[ -d $build/tests ]] || fail "$build is no build of muster with tests: it has no folder tests"
build=$(CDPATH='' cd -- "$build" && pwd -P)
bench=$build/tests/bench

# A packed build brings the libraries that it was linked with. Python's programs do not get them.
libraries=${LD_LIBRARY_PATH-}
outside=(env "LD_LIBRARY_PATH=$libraries")
[[ -n $libraries ]] || outside=(env -u LD_LIBRARY_PATH)
[[ ! -d $build/lib ]] || libraries=$build/lib${libraries:+:$libraries}

# CUDA's libraries in this Python's wheels, also those that cuDNN looks for by itself (NVRTC). In the usual places
# muster finds its own.
wheels=$("${outside[@]}" "$python" - 2>/dev/null <<'END'
import glob, importlib.util
spec = importlib.util.find_spec("nvidia")
for place in (spec.submodule_search_locations if spec else []):
    for folder in sorted(glob.glob(place + "/*/lib")):
        print(folder)
END
) || wheels=
while IFS= read -r folder; do
  [[ -z $folder ]] || libraries=${libraries:+$libraries:}$folder
done <<<"$wheels"
# The thread count is muster's to choose.
ours=(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT -u OMP_PROC_BIND)
[[ -z $libraries ]] || ours+=("LD_LIBRARY_PATH=$libraries")

# Of the cases, those for a GPU: the template's "<gpu>" and its like, and what names CUDA or its memory.
cases='*gpu*,*cuda*,*pinned*'

# Whether program $1 has such cases (and the user's filter, if any, asks for them). One that cannot even list them is
# for the report to tell of.
has_cases() {
  local listed by_name=no
  [[ ${1#"$build/"} != *"$filter"* ]] || by_name=yes
  listed=$("${ours[@]}" timeout 60 "$1" --no-colors --list-test-cases --test-case="$cases" 2>/dev/null |
    sed '/^\[doctest\]/d; /^=*$/d') || listed=unknown
  [[ -n $listed ]] && { [[ $by_name == yes ]] || grep -qiF -- "$filter" <<<"$listed"; }
}

# The cases of program $1 to run, as doctest's filter.
cases_of() {
  if [[ -z $filter || ${1#"$build/"} == *"$filter"* ]]; then
    printf '%s' "$cases"
  else
    printf '*%s*' "${filter//,/\\,}"
  fi
}

programs=()
find_programs() {
  local program
  programs=()
  while IFS= read -r program; do
    if has_cases "$program"; then programs+=("$program"); fi
  done < <(find "$build/tests" -name '*_test' -type f -executable | sort)
}

# A program's name in the report and, with underscores, in the names of its logs.
name_of() { local name=${1#"$build/tests/"}; printf '%s' "$name"; }
log_name() { local name; name=$(name_of "$1"); printf '%s' "${name//\//__}"; }

# Runs `$1 program` for every program, several at once.
for_all_programs() {
  local function=$1 program running=0
  for program in "${programs[@]}"; do
    if ((running == jobs)); then
      wait -n
      running=$((running - 1))
    fi
    "$function" "$program" &
    running=$((running + 1))
  done
  wait
}

# The log of a run of a test program ($1, MUSTER_TEST_LOG) that ended with status $2 after output $3, as lines of
# outcome, seconds, name and reason. The first line says how many cases are done with, and whether others are left:
# a case that crashed or hung takes those behind it along, and so does one after which the GPU cannot be used.
digest() {
  awk -F '\t' -v status="$2" -v limit="$limit" -v lost="$(grep -c 'cannot use the device any more' "$3")" '
    function add(outcome, seconds, name, reason) { lines[++n] = outcome "\t" seconds "\t" name "\t" reason }
    $1 == "started" { running = $2; next }
    $1 == "finished" { finished = 1; next }
    done && lost { next }                       # everything behind the first failure follows from it
    { add($1, sprintf("%.2f", $2 == "" ? 0 : $3), $2, $4); running = ""; ++ended; last = $1 }
    $1 == "failed" && lost { done = 1 }
    END {
      died = !finished || status != 0 && status != 1 && status != 77
      how = status == 124 ? "did not end within " limit " s" : \
            status == 137 ? "was killed, or did not end within " limit " s" : \
            status > 128 ? "crashed (signal " status - 128 ")" : "ended with status " status
      if (died && !done) {
        if (running != "") { add("failed", 0, running, how); ++ended }
        else if (last == "failed") sub(/\t[^\t]*$/, "\t" how, lines[n])
        else add("failed", 0, ended ? "(the end of the program)" : "(the start of the program)", how)
      }
      print ended + 0, (ended && (died || done) ? "more" : "all")
      for (i = 1; i <= n; ++i) print lines[i]
    }' "$1"
}

test_program() {
  local program=$1 base first=1 status left ended
  base=$work/tests/$(log_name "$program")
  : >"$base.cases"
  : >"$base.log"
  while :; do
    : >"$base.events"
    MUSTER_TEST_LOG=$base.events "${ours[@]}" timeout -k 10 "$limit" "$program" --no-colors \
      --test-case="$(cases_of "$program")" --first="$first" >"$base.part" 2>&1 </dev/null
    status=$?
    cat "$base.part" >>"$base.log"
    digest "$base.events" "$status" "$base.part" >"$base.digest"
    tail -n +2 "$base.digest" >>"$base.cases"
    read -r ended left <"$base.digest"
    [[ $left == more ]] || break
    first=$((first + ended))
  done
  rm -f "$base.events" "$base.part" "$base.digest"
  say "$(name_of "$program"): $(count passed "$base.cases") passed, $(count skipped "$base.cases") skipped," \
    "$(count failed "$base.cases") failed"
}

# How many lines of the files begin with $1.
count() {
  local outcome=$1
  shift
  awk -F '\t' -v outcome="$outcome" '$1 == outcome { ++n } END { print n + 0 }' "$@" /dev/null
}

# Sets `tool` to CUDA's program $1, looked for in PATH, in the toolkit and in the other places given.
tool=
find_tool() {
  local name=$1 place toolkit=${CUDA_HOME-/usr/local/cuda}
  shift
  for place in "$(command -v "$name")" "$toolkit/bin/$name" /usr/local/cuda-*/bin/"$name" "$@"; do
    if [[ -n $place && -x $place && ! -d $place ]]; then
      tool=$place
      return
    fi
  done
  return 1
}

# What a log of the tool says, in a few words.
verdict() {
  local log=$1 status=$2 summary
  summary=$(grep -aE '(ERROR|RACECHECK) SUMMARY: ' "$log" | tail -n 1 | sed 's/.*SUMMARY: //')
  if ((status == 124 || status == 137)); then
    echo "did not end within $limit s"
  elif [[ -n $summary ]]; then
    echo "$summary"
  else
    echo "the tool gave no result (status $status): $(grep -a '^=' "$log" | tail -n 1 | sed 's/^=* *//; s/|/ /g')"
  fi
}

sanitize() {  # tool's check, program and its arguments -> the log's name
  local check=$1 base=$2
  shift 2
  # Calls that fail are our own checks' to find, and libraries make calls that do.
  local options=()
  [[ $check != memcheck ]] || options=(--report-api-errors no)
  "${ours[@]}" timeout -k 10 "$limit" "$tool" --tool "$check" "${options[@]}" "$@" >"$base.$check.log" 2>&1 </dev/null
}

sanitize_program() {
  local program=$1 base check result line
  base=$work/sanitizer/$(log_name "$program")
  line=$(name_of "$program")
  for check in memcheck racecheck; do
    sanitize "$check" "$base" "$program" --no-colors --test-case="$(cases_of "$program")"
    result=$(verdict "$base.$check.log" $?)
    line+=$'\t'$result
  done
  printf '%s\n' "$line" >"$base.line"
  say "compute-sanitizer, ${line//$'\t'/; }"
}

run_tests() {
  rm -rf "$work/tests"
  mkdir -p "$work/tests"
  find_programs
  say "Running the GPU's tests of ${#programs[@]} programs ..."
  for_all_programs test_program
  : >"$work/tests/done"
}

run_sanitizer() {
  rm -rf "$work/sanitizer"
  mkdir -p "$work/sanitizer"
  if ! find_tool compute-sanitizer "${CUDA_HOME-/usr/local/cuda}/compute-sanitizer/compute-sanitizer"; then
    echo "compute-sanitizer was not found on this machine (it comes with CUDA's toolkit)." >"$work/sanitizer/refused"
    return
  fi
  local status
  sanitize memcheck "$work/sanitizer/probe" "$bench/device_speed" --device cuda:0 --probe
  status=$?
  if ! grep -qa 'ERROR SUMMARY: ' "$work/sanitizer/probe.memcheck.log"; then
    echo "compute-sanitizer does not work on this machine:" \
      "$(verdict "$work/sanitizer/probe.memcheck.log" "$status")" >"$work/sanitizer/refused"
    return
  fi
  # Our own kernels: the operations', and what moves their numbers.
  find_programs
  local all=("${programs[@]}") program
  programs=()
  for program in "${all[@]}"; do
    case $(name_of "$program") in core/ops/* | core/device/* | core/tensor/*) programs+=("$program") ;; esac
  done
  say "Running compute-sanitizer on ${#programs[@]} programs ..."
  for_all_programs sanitize_program
}

# Runs benchmark $1 (a name for its log) with the rest of the command line.
benchmark() {
  local name=$1 status
  shift
  say "Running $name ..."
  "${ours[@]}" timeout -k 10 3600 "$@" >"$work/benchmarks/$name.txt" 2>"$work/benchmarks/$name.log" </dev/null
  status=$?
  ((status == 0)) ||
    printf '\n%s ended with status %s: %s\n' "$name" "$status" "$(tail -n 3 "$work/benchmarks/$name.log")" \
      >>"$work/benchmarks/$name.txt"
}

run_benchmarks() {
  rm -rf "$work/benchmarks"
  mkdir -p "$work/benchmarks"
  local common=(--device cuda:0 --rounds "$bench_rounds")
  benchmark merge_and_launches "$bench/device_speed" "${common[@]}"
  write_report
  local side=("${common[@]}" --seconds "$bench_seconds" --python "${outside[*]} $python")
  benchmark mnist_convnet "$bench/gpu_end_to_end" "${side[@]}" --network convnet --json "$work/benchmarks/convnet.json"
  write_report
  benchmark resnet18 "$bench/gpu_end_to_end" "${side[@]}" --network resnet18 --json "$work/benchmarks/resnet18.json"
}

metrics='gpu__time_duration.sum dram__throughput.avg.pct_of_peak_sustained_elapsed'
metrics+=' sm__throughput.avg.pct_of_peak_sustained_elapsed'
# Where the time of a step goes: some steps in the middle of the training by one worker, kernel by kernel.
run_profile() {
  rm -rf "$work/profile"
  mkdir -p "$work/profile"
  local file=$work/profile/convnet.txt status
  if ! find_tool ncu /opt/nvidia/nsight-compute/*/ncu; then
    echo "Nsight Compute (ncu) was not found on this machine." >"$file"
    return
  fi
  say "Profiling ..."
  # The clocks are left as they are.
  "${ours[@]}" timeout -k 10 600 "$tool" --clock-control none --launch-skip 2000 --launch-count 200 \
    --print-summary per-kernel --metrics "$(tr ' ' , <<<"$metrics")" \
    "$bench/gpu_end_to_end" --device cuda:0 --network convnet --arm 1 --batch 128 --seconds 0.1 \
    >"$file" 2>"$work/profile/convnet.log" </dev/null
  status=$?
  ((status == 0)) || echo "ncu ended with status $status: $(tail -n 3 "$work/profile/convnet.log")" >>"$file"
}

bullets() { sed 's/^/- /'; }
fenced() { printf '```\n'; cat -- "$1"; printf '```\n\n'; }

write_tests() {
  printf '## Tests\n\n'
  if [[ ! -d $work/tests ]]; then
    printf 'They were not run.\n\n'
    return
  fi
  shopt -s nullglob
  local files=("$work"/tests/*.cases) file
  shopt -u nullglob
  local passed skipped failed
  passed=$(count passed "${files[@]}")
  skipped=$(count skipped "${files[@]}")
  failed=$(count failed "${files[@]}")
  printf '%s cases of %s programs: %s run, %s of them failed; %s skipped.' \
    $((passed + skipped + failed)) ${#files[@]} $((passed + failed)) "$failed" "$skipped"
  [[ -z $filter ]] || printf ' Only those with "%s" in their names.' "$filter"
  [[ -e $work/tests/done ]] || printf ' Others have not ended.'
  printf '\n\n'
  if ((failed)); then
    printf '### Failed\n\n'
    for file in "${files[@]}"; do
      awk -F '\t' -v program="$(basename "$file" .cases)" '
        BEGIN { gsub(/__/, "/", program) }
        $1 == "failed" { print "- " program ": " $3 ($4 == "" ? "" : ", " $4) }' "$file"
    done
    printf '\n'
    for file in "${files[@]}"; do
      (($(count failed "$file"))) || continue
      # shellcheck disable=SC2016
      printf 'The first words of `%s`:\n\n```\n' "$(basename "$file" .cases)"
      grep -av '^\[doctest\]\|^skipped: \|^=*$' "${file%.cases}.log" | cut -c 1-300 | head -n 30
      printf '```\n\n'
    done
  fi
  if ((skipped)); then
    printf '### Skipped\n\n'
    awk -F '\t' '$1 == "skipped" { ++n[$4] } END { for (reason in n) print n[reason] ": " reason }' "${files[@]}" |
      sort -rn | bullets
    printf '\n'
  fi
  printf '### By program\n\n| program | run | failed | skipped | seconds |\n|---|--:|--:|--:|--:|\n'
  for file in "${files[@]}"; do
    awk -F '\t' -v program="$(basename "$file" .cases)" '
      { ++n[$1]; seconds += $2 }
      END {
        gsub(/__/, "/", program)
        printf "| %s | %d | %d | %d | %.1f |\n", program, n["passed"] + n["failed"], n["failed"], n["skipped"], seconds
      }' "$file"
  done
  printf '\n'
}

write_sanitizer() {
  printf '## compute-sanitizer on the tests of our own kernels\n\n'
  if [[ ! -d $work/sanitizer ]]; then
    printf 'It was not run.\n\n'
  elif [[ -e $work/sanitizer/refused ]]; then
    printf '%s\n\n' "$(cat "$work/sanitizer/refused")"
  else
    printf '| program | memcheck | racecheck |\n|---|---|---|\n'
    shopt -s nullglob
    local line
    for line in "$work"/sanitizer/*.line; do awk -F '\t' '{ print "| " $1 " | " $2 " | " $3 " |" }' "$line"; done
    shopt -u nullglob
    printf '\n'
    local log findings
    for log in "$work"/sanitizer/*check.log; do
      findings=$(grep -aE -A 4 '^=+ +(Invalid|Misaligned|Error:|Warning:|.*hazard (detected|reported|at))' "$log" |
        cut -c 1-200 | head -n 15)
      # shellcheck disable=SC2016
      if [[ -n $findings ]]; then printf '`%s`:\n\n```\n%s\n```\n\n' "$(basename "$log")" "$findings"; fi
    done
  fi
}

write_benchmarks() {
  printf '## Benchmarks\n\n'
  if [[ ! -d $work/benchmarks ]]; then
    printf 'They were not run.\n\n'
    return
  fi
  local name
  for name in merge_and_launches mnist_convnet resnet18; do
    [[ -e $work/benchmarks/$name.txt ]] || continue
    printf '### %s\n\n' "$name"
    fenced "$work/benchmarks/$name.txt"
  done
}

write_profile() {
  printf '## Where a step of the MNIST convnet goes\n\n'
  if [[ ! -d $work/profile ]]; then
    printf 'It was not profiled.\n\n'
    return
  fi
  printf 'One worker, 200 kernels one by one: their time, and their share of what memory and multiprocessors give.\n\n'
  cut -c 1-160 "$work/profile/convnet.txt" | grep -av '^==' | head -n 300 >"$work/profile/shown.txt"
  fenced "$work/profile/shown.txt"
}

write_report() {
  {
    printf '# muster on a GPU\n\n'
    printf '| | |\n|---|---|\n| date | %s |\n' "$(date -u '+%Y-%m-%d %H:%M UTC')"
    if [[ -r $build/revision ]]; then printf '| revision | %s |\n' "$(cat "$build/revision")"; fi
    sed -n 's/^\([^:]*\): \(.*\)/| \1 | \2 |/p' "$work/about.txt"
    printf '\n'
    write_tests
    write_sanitizer
    write_benchmarks
    write_profile
  } >"$out.part"
  mv "$out.part" "$out"
}

if [[ $list == yes ]]; then
  find_programs
  printf '%s\n' "${programs[@]#"$build/"}"
  exit
fi
mkdir -p "$work" || exit 2
work=$(CDPATH='' cd -- "$work" && pwd -P)
if ! "${ours[@]}" timeout 120 "$bench/device_speed" --device cuda:0 --about \
  >"$work/about.txt" 2>"$work/about.log" </dev/null; then
  say "gpu: no GPU can be used here: $(tail -n 1 "$work/about.log")"
  exit 3
fi
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=driver_version,power.limit,clocks.max.sm,clocks.max.memory --format=csv,noheader \
    2>/dev/null |
    awk -F ', *' 'NR == 1 { print "driver: " $1; print "limits: " $2 ", " $3 " (SM), " $4 " (memory)" }' \
      >>"$work/about.txt"
fi

for part in tests sanitizer benchmarks profile; do
  if [[ ,$only, == *,$part,* ]]; then
    "run_$part"
    write_report
  fi
done

failed=$(count failed "$work"/tests/*.cases 2>/dev/null)
say "The report is $out."
((failed == 0))
