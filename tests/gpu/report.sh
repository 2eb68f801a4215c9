#!/usr/bin/env bash
# Runs the GPU's tests and benchmarks of a build, and writes down what they gave. `./run gpu` calls it, and it stands in
# a packed build, too: nothing is needed but bash, coreutils, awk and the driver. What fails, crashes or hangs is
# reported, and the rest is run. Results are files in a folder beside the report, one for each program, and the report is
# put together from those that are there: anew behind each of them, so that it is true whenever this ends.
set -uo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

usage() {
  cat <<'END'
./run gpu [options]           in the sources: builds first, unless --build is given
bash gpu-report.sh [options]  in a packed build or a build directory

  --build DIR|FILE    a build directory, or a packed one   [./run gpu: build/cuda; else where gpu-report.sh lies]
  --out FILE          the report, from where this is called; results and logs go beside it, in a folder of its name
                      [./run gpu: build/gpu-report.md in the sources; else gpu-report.md]
  --minutes N         goes on where the last call with this build and GPU stopped, and begins nothing that may not
                      end within N minutes: call it until it says that the report is whole    [all, anew]
                      (elsewhere, too, where the results' folder is taken along)
  --only PART,...     tests, benchmarks, profile, sanitizer; the report keeps the others' last results [all]
  --filter TEXT       only test programs or cases with TEXT in their names, again; the report keeps the others' results
  --list              only print the test programs, by their places in the build, which needs no GPU
  --check             only look whether the call is right, which needs neither a build nor a GPU
  --jobs N            test programs at once; one where the GPU lets in only one process                [4]
  --time-limit S      seconds that a test program may run without an end                             [300]
  --sanitizer-limit S seconds that one under compute-sanitizer may run without an end                [180]
  --sanitizer-minutes N  that compute-sanitizer gets in all                                           [20]
  --bench-seconds S   seconds of each measurement                                                      [2]
  --bench-rounds N    measurements of each kind                                                        [5]
  --python PROGRAM    runs PyTorch, to compare with                                              [python3]

Where a command may take ten minutes, `--minutes 9` is enough, called about five times. The pieces by hand, with what an
H100 may need for each (estimates: nobody has timed them on one), and with --filter the tests in smaller ones:
  --only tests                    7 minutes   all cases for a GPU (--filter core/ops: 4, core/nn: 1, parallel: 1)
  --only benchmarks              15 minutes   merges and launches 1, convolutions 1, MNIST convnet beside PyTorch 7,
                                              ResNet-18 6 (with --bench-rounds 2: 7 minutes)
  --only profile                  5 minutes   where the time of steps and merges goes, kernel by kernel
  --only sanitizer               20 minutes   memcheck and racecheck; what is left out then, the report names

It ends with 0 where the report is whole and nothing in it failed, 1 where something failed, 2 where it was called wrongly,
3 where no GPU can be used (then nothing is written), 4 where the report is not whole yet. What Nsight Compute does not
manage counts as no failure, for many machines do not let it look at kernels; the report has its words.
END
}

say() { printf '%s\n' "$*" >&2; }
fail() { say "gpu: $*"; exit 2; }

all_parts='tests benchmarks profile sanitizer'
build=
out=gpu-report.md
minutes=
only=${all_parts// /,}
filter=
jobs=4
limit=300
sanitizer_limit=180
sanitizer_minutes=20
bench_seconds=2
bench_rounds=5
python=python3
list=no
check=no
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
    --check)
      check=yes
      shift
      continue
      ;;
    --build | --out | --minutes | --only | --filter | --jobs | --time-limit | --sanitizer-limit | \
      --sanitizer-minutes | --bench-seconds | --bench-rounds | --python)
      [[ -n ${2-} ]] || fail "$1 wants a value"
      ;;&
    --jobs | --time-limit | --sanitizer-limit | --sanitizer-minutes | --bench-rounds)
      [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "$1 wants a number from 1 on, got $2"
      ;;&
    --minutes)
      [[ $2 =~ ^([2-9]|[1-9][0-9]+)$ ]] || fail "$1 wants a number from 2 on, got $2"
      ;;&
    --bench-seconds)
      [[ $2 =~ ^[0-9]*\.?[0-9]+$ && $2 == *[1-9]* ]] || fail "$1 wants a number above 0, got $2"
      ;;&
    --build) build=$2 ;;
    --out) out=$2 ;;
    --minutes) minutes=$2 ;;
    --only) only=$2 ;;
    --filter) filter=$2 ;;
    --jobs) jobs=$2 ;;
    --time-limit) limit=$2 ;;
    --sanitizer-limit) sanitizer_limit=$2 ;;
    --sanitizer-minutes) sanitizer_minutes=$2 ;;
    --bench-seconds) bench_seconds=$2 ;;
    --bench-rounds) bench_rounds=$2 ;;
    --python) python=$2 ;;
    *) fail "there is no option $1; --help lists them" ;;
  esac
  shift 2
done
IFS=, read -ra parts <<<"$only"
for part in "${parts[@]}"; do
  case $part in
    tests | benchmarks | profile | sanitizer) ;;
    *) fail "--only: expected tests, benchmarks, profile or sanitizer, with commas between them, got $only" ;;
  esac
done
[[ ! -d $out ]] || fail "--out wants a file, but $out is a folder"

given=${build:-$here}
is_build() { [[ -x $1/tests/bench/device_speed ]]; }
no_build() { fail "$given is no build of muster with its tests; build/release, for example, is one after ./run test"; }
if [[ -f $build ]]; then
  # Its first name tells, before all of it is unpacked.
  [[ -n $(tar -tf "$build" 2>/dev/null | head -n 1) ]] ||
    fail "$build is no packed build, or xz is not there to unpack it"
elif [[ -n $build ]]; then
  is_build "$build" || no_build
fi
[[ $check == no ]] || exit 0
build=$given

work=${out%.md}
[[ $work != "$out" ]] || work=$out-logs
unpacked=
if [[ -f $build ]]; then
  packed=$build build=$work-build
  stamp=$(cksum <"$packed")
  if [[ $(cat "$build/packed" 2>/dev/null) != "$stamp" ]]; then
    rm -rf "$build"
    mkdir -p "$build" || exit 2
    unpacked=$build
    if ! tar -xf "$packed" -C "$build"; then
      rm -rf "$build"
      fail "$packed cannot be unpacked"
    fi
    printf '%s\n' "$stamp" >"$build/packed"
  fi
fi
is_build "$build" || { rm -rf ${unpacked:+"$unpacked"}; no_build; }
build=$(CDPATH='' cd -- "$build" && pwd -P)
bench=$build/tests/bench

# A packed build brings the libraries that it was linked with. Python's programs do not get them.
libraries=${LD_LIBRARY_PATH-}
outside=(env "LD_LIBRARY_PATH=$libraries")
[[ -n $libraries ]] || outside=(env -u LD_LIBRARY_PATH)
[[ ! -d $build/lib ]] || libraries=$build/lib${libraries:+:$libraries}

# CUDA's libraries in this Python's wheels, also those that cuDNN looks for by itself (NVRTC). In the usual places
# muster finds its own.
wheels=$("${outside[@]}" timeout 60 "$python" - 2>/dev/null <<'END'
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

# Runs one of our programs, which gets $1 seconds. The status is that of `timeout`, also where the program cannot even be
# killed, because it waits for a driver that hangs: it is left behind.
child='' guard=''
limited() {
  local seconds=$1 status
  shift
  timeout -k 10 "$seconds" "${ours[@]}" "$@" </dev/null &
  child=$!
  sleep $((seconds + 30)) </dev/null >/dev/null 2>&1 &
  guard=$!
  wait -n "$child" "$guard"
  status=$?
  if kill -0 "$child" 2>/dev/null; then status=137; fi
  { kill "$guard" && wait "$guard"; } 2>/dev/null
  return "$status"
}
ran_out() { (($1 == 124 || $1 == 137)); }

# Seconds until this call is to end.
left() { if [[ -n $minutes ]]; then echo $((60 * minutes - SECONDS)); else echo 1000000; fi; }
# Sets `cap`, the seconds that a piece gets which may take $1, or fails: what is left would only be wasted on it. What
# comes first in a call gets all that it may take.
cap=''
grant() {
  local most=$1 now enough
  enough=$((most / 5))
  now=$(($(left) - 15))
  cap=$((now < most ? now : most))
  ((cap >= enough))
}
if [[ -n $minutes ]]; then
  most=$((60 * minutes - 60))
  limit=$((limit < most ? limit : most))
  sanitizer_limit=$((sanitizer_limit < most ? sanitizer_limit : most))
fi

# Writes a file whole or not at all.
put() { cat >"$1.new" && mv "$1.new" "$1"; }

# Of the cases, those for a GPU: the template's "<gpu>" and its like, and what names CUDA or its memory.
cases='*gpu*,*cuda*,*pinned*'

# A program's name in the report and, with underscores, in the names of its files.
name_of() { printf '%s' "${1#"$build/tests/"}"; }
log_name() { local name; name=$(name_of "$1"); printf '%s' "${name//\//__}"; }

# The cases of program $1 to run, as doctest's filter.
cases_of() {
  if [[ -z $filter || ${1#"$build/"} == *"$filter"* ]]; then
    printf '%s' "$cases"
  else
    printf '*%s*' "${filter//,/\\,}"
  fi
}

# Sets `known` to lines of program and number of cases for a GPU, and `programs` to those that the user's filter, if any,
# asks for. One that cannot even list its cases is for the report to tell of.
programs=()
asked_for=()
known=
find_programs() {
  local program listed number
  if [[ -n $known ]]; then
    programs=("${asked_for[@]}")
    return
  fi
  while IFS= read -r program; do
    if listed=$(limited 60 "$program" --no-colors --list-test-cases --test-case="$cases" 2>/dev/null); then
      listed=$(sed '/^\[doctest\]/d; /^=*$/d' <<<"$listed")
      [[ -n $listed ]] || continue
      number=$(wc -l <<<"$listed")
    else
      listed=unknown number=1
    fi
    known+=$(name_of "$program")$'\t'$number$'\n'
    if [[ ${program#"$build/"} == *"$filter"* ]] || grep -qiF -- "$filter" <<<"$listed"; then asked_for+=("$program"); fi
  done < <(find "$build/tests" -name '*_test' -type f -executable | sort)
  programs=("${asked_for[@]}")
}

# Runs `$1 program` for every program, several at once, as long as `$2` says that another may begin. Programs that a call
# before this one has begun, and has left a file of extension .state of, come first.
begun=no
for_all_programs() {
  local function=$1 may_begin=$2 program running=0 ahead=() others=()
  for program in "${programs[@]}"; do
    if [[ -e $work/tests/$(log_name "$program").state ]]; then ahead+=("$program"); else others+=("$program"); fi
  done
  for program in "${ahead[@]}" "${others[@]}"; do
    "$may_begin" || break
    begun=yes
    "$function" "$program" &
    running=$((running + 1))
    ((running == jobs)) || continue
    wait -n
    running=$((running - 1))
    write_report
  done
  while ((running--)); do
    wait -n
    write_report
  done
}
# In a piece that runs beside others: it ends its program when it is ended itself, and is of no use without this script.
on_its_own() { trap 'kill "$child" "$guard" 2>/dev/null; exit 143' TERM INT HUP; }
orphaned() { ! kill -0 $$ 2>/dev/null; }

# The log of a run of a test program ($1, MUSTER_TEST_LOG) that ended with status $2 after output $3, as lines of
# outcome, seconds, name and reason. The first line says how many cases are done with, and whether others are left:
# a case that crashed or hung takes those behind it along, and so does one after which the GPU cannot be used. Of a run
# that was cut short for want of time (status "cut") the case that ran then is left, too.
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
      if (died && !done && status != "cut") {
        if (running != "") { add("failed", 0, running, how); ++ended }
        else if (last == "failed") sub(/\t[^\t]*$/, "\t" how, lines[n])
        else add("failed", 0, ended ? "(the end of the program)" : "(the start of the program)", how)
      }
      # A program that is told to end counts the case that it is in as failed.
      if (status == "cut" && last == "failed" && running == "" && !finished) { --n; --ended }
      print ended + 0, (status == "cut" || ended && (died || done) ? "more" : "all")
      for (i = 1; i <= n; ++i) print lines[i]
    }' "$1"
}

# What is known of a program's cases while not all of them were run is its file .state: the number of the next one and
# the filter that it counts in, then the lines of those that are done with. The events of the run at hand carry that
# number in their name, so that they are counted once wherever this script is ended.
advance() {  # base of the program's files, what was asked for, status -> moves `first` on and sets `more`
  local base=$1 asked=$2 ended
  touch "$base.part"
  digest "$base.events.$first" "$3" "$base.part" >"$base.digest"
  read -r ended more <"$base.digest"
  { printf '%s\t%s\n' $((first + ended)) "$asked"; tail -n +2 "$base.state"; tail -n +2 "$base.digest"; } | put "$base.state"
  cat "$base.part" >>"$base.log"
  rm -f "$base.events.$first" "$base.part" "$base.digest"
  first=$((first + ended))
}

test_program() {
  local program=$1 base asked first=1 more=more status before=''
  on_its_own
  base=$work/tests/$(log_name "$program")
  asked=$(cases_of "$program")
  IFS=$'\t' read -r first before 2>/dev/null <"$base.state"
  if [[ -n $minutes && $before == "$asked" ]]; then
    # What a call left that was ended from outside.
    [[ ! -s $base.events.$first ]] || advance "$base" "$asked" cut
  else
    first=1
    rm -f "$base.events".*
    printf '1\t%s\n' "$asked" | put "$base.state"
    : >"$base.log"
  fi
  while [[ $more == more ]]; do
    grant "$limit" || return
    : >"$base.events.$first"
    MUSTER_TEST_LOG=$base.events.$first limited "$cap" "$program" --no-colors --test-case="$asked" --first="$first" \
      >"$base.part" 2>&1
    status=$?
    if ran_out "$status" && ((cap < limit)); then status='cut'; fi
    orphaned && exit
    advance "$base" "$asked" "$status"
    [[ $status != cut ]] || return
  done
  # Cases that were not asked for keep their results.
  if [[ $asked != "$cases" && -e $base.cases ]]; then
    awk -F '\t' 'FNR == 1 { ++file } file == 1 { if (FNR > 1) again[$3] = 1; next } $3 !~ /^\(/ && !($3 in again)' \
      "$base.state" "$base.cases" >"$base.kept"
  else
    : >"$base.kept"
  fi
  { tail -n +2 "$base.state"; cat "$base.kept"; } | put "$base.cases"
  rm -f "$base.state" "$base.kept"
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

# The cases of program $1 that compute-sanitizer shall not run, with the reasons: what takes seconds without it would take
# minutes with it, and what hangs without it would hang.
heavy_cases() {
  awk -F '\t' '
    $1 == "passed" && $2 > 3 { print $3 "\ttook " $2 " s without the tool" }
    $1 == "failed" && $4 != "" { print $3 "\t" $4 " without the tool" }' "$work/tests/$(log_name "$1").cases" 2>/dev/null
}

# What a log of the tool says, in a few words. Arguments: log, status, the seconds that the program had, and the events of
# its cases, if it has any.
verdict() {
  local log=$1 status=$2 seconds=$3 events=${4-} summary ended='' running=''
  summary=$(grep -aE '(ERROR|RACECHECK) SUMMARY: ' "$log" | tail -n 1 | sed 's/.*SUMMARY: //')
  if [[ -n $events ]]; then
    ended=$(awk -F '\t' '$1 == "passed" || $1 == "failed" { ++n } END { print n + 0 }' "$events")
    running=$(awk -F '\t' '$1 == "started" { name = $2; next } { name = "" } END { print name }' "$events")
  fi
  if ran_out "$status"; then
    echo "did not end within $seconds s${running:+, in \"$running\"}; $(findings "$log" | grep -c .) lines of findings" \
      "until then${ended:+, $ended cases had ended}"
  elif [[ -n $summary ]]; then
    echo "$summary${ended:+ in $ended cases}"
  else
    echo "the tool gave no result (status $status): $(grep -a '^=' "$log" | tail -n 1 | sed 's/^=* *//; s/|/ /g')"
  fi
}
findings() { grep -aE '^=+ +(Invalid|Misaligned|Error:|Warning:|.*hazard (detected|reported|at))' "$1"; }

only_kernels=()
sanitize() {  # seconds, tool's check, log, program and its arguments
  local seconds=$1 check=$2 log=$3
  shift 3
  # Calls that fail are our own checks' to find, and libraries make calls that do.
  local options=()
  [[ $check != memcheck ]] || options=(--report-api-errors no)
  limited "$seconds" "$tool" --tool "$check" "${options[@]}" "${only_kernels[@]}" "$@" >"$log" 2>&1
}

sanitize_program() {
  local program=$1 base check result status heavy exclude
  on_its_own
  base=$work/sanitizer/$(log_name "$program")
  heavy=$(heavy_cases "$program")
  exclude=$(cut -f 1 <<<"$heavy" | sed 's/,/\\,/g' | paste -sd ,)
  put "$base.heavy" <<<"$heavy"
  for check in memcheck racecheck; do
    [[ ! -e $base.$check.verdict ]] || continue
    grant "$sanitizer_limit" || return
    : >"$base.events"
    MUSTER_TEST_LOG=$base.events sanitize "$cap" "$check" "$base.$check.log" "$program" --no-colors \
      --test-case="$(cases_of "$program")" ${exclude:+"--test-case-exclude=$exclude"}
    status=$?
    orphaned && exit
    if ran_out "$status" && ((cap < sanitizer_limit)); then return; fi
    result=$(verdict "$base.$check.log" "$status" "$sanitizer_limit" "$base.events")
    put "$base.$check.verdict" <<<"$result"
    say "compute-sanitizer, $(name_of "$program"), $check: $result"
  done
}

# Where something was to be done and the results of other calls are to stay, those that are to be made anew go.
renew() {  # part
  if [[ -n $filter && ($1 == tests || $1 == sanitizer) ]]; then
    local program
    for program in "${programs[@]}"; do rm -f "$work/$1/$(log_name "$program")".*.verdict; done
    rm -f "$work/$1/refused"
  elif [[ -z $minutes ]]; then
    rm -rf "${work:?}/$1"
  fi
  mkdir -p "$work/$1"
}
not_done() {  # a file's name with %s for the program's -> only such programs stay
  local program some=()
  for program in "${programs[@]}"; do
    # shellcheck disable=SC2059
    if [[ -n $filter || ! -e $(printf "$1" "$(log_name "$program")") ]]; then some+=("$program"); fi
  done
  programs=("${some[@]}")
}

test_may_begin() { grant "$limit"; }
run_tests() {
  find_programs
  put "$work/known" <<<"${known%$'\n'}"
  renew tests
  not_done "$work/tests/%s.cases"
  ((${#programs[@]})) || return
  say "Running the GPU's tests of ${#programs[@]} programs ..."
  for_all_programs test_program test_may_begin
}

# Sets `only_kernels` to what makes the tool look at our kernels alone, not at those of cuBLASLt and cuDNN, which would
# take it most of the time. That it still sees what it shall is shown by an error that is made on purpose.
choose_kernels() {
  local log=$work/sanitizer/probe.log option status
  for option in --kernel-name --kernel-regex ''; do
    only_kernels=()
    [[ -z $option ]] || only_kernels=("$option" kns=muster)
    sanitize 120 memcheck "$log" "$bench/device_speed" --device cuda:0 --probe
    status=$?
    grep -qaE 'ERROR SUMMARY: 0 errors' "$log" || continue
    sanitize 120 memcheck "$work/sanitizer/planted.log" "$bench/device_speed" --device cuda:0 --planted-error
    grep -qaE 'ERROR SUMMARY: [1-9]' "$work/sanitizer/planted.log" && return
    option=planted
  done
  if [[ $option == planted ]]; then
    echo 1 | put "$work/sanitizer/planted.status"
    echo "compute-sanitizer does not find an error on this machine that was made on purpose, so it was not asked further:" \
      "$(verdict "$work/sanitizer/planted.log" 0 120)"
  else
    echo "compute-sanitizer does not work on this machine: $(verdict "$log" "$status" 120)"
  fi | put "$work/sanitizer/refused"
  return 1
}

sanitizer_began=0
sanitizer_spent() {
  local before
  before=$(cat "$work/sanitizer/spent" 2>/dev/null || echo 0)
  echo $((before + SECONDS - sanitizer_began))
}
sanitizer_may_begin() { (($(sanitizer_spent) < 60 * sanitizer_minutes)) && grant "$sanitizer_limit"; }
run_sanitizer() {
  # Our own kernels: the operations', and what moves their numbers.
  find_programs
  local all=("${programs[@]}") program
  programs=()
  for program in "${all[@]}"; do
    case $(name_of "$program") in core/ops/* | core/device/* | core/tensor/*) programs+=("$program") ;; esac
  done
  renew sanitizer
  {
    for program in "${programs[@]}"; do printf '%s\n' "$(name_of "$program")"; done
    cat "$work/sanitizer/chosen" 2>/dev/null
  } | sort -u | put "$work/sanitizer/chosen"
  not_done "$work/sanitizer/%s.racecheck.verdict"
  if ((${#programs[@]} == 0)) || [[ -e $work/sanitizer/refused ]] || ! sanitizer_may_begin; then return; fi
  if ! find_tool compute-sanitizer "${CUDA_HOME-/usr/local/cuda}/compute-sanitizer/compute-sanitizer"; then
    echo "compute-sanitizer was not found on this machine (it comes with CUDA's toolkit)." | put "$work/sanitizer/refused"
    return
  fi
  sanitizer_began=$SECONDS
  say "Running compute-sanitizer on ${#programs[@]} programs ..."
  if choose_kernels; then
    printf '%s\n' "${only_kernels[*]-}" | put "$work/sanitizer/kernels"
    for_all_programs sanitize_program sanitizer_may_begin
  fi
  sanitizer_spent | put "$work/sanitizer/spent"
}

# Whether a piece of the rest is to be done now: it is not done yet, and there is time. Arguments: the file that it leaves,
# and the seconds that it may need. Sets `cap`.
is_due() {
  [[ ! -e $1 ]] || return
  cap=$(($(left) - 15))
  ((cap >= $2)) || [[ $begun == no ]] || return
  ((cap < 3600)) || cap=3600
  begun=yes
}

# Runs benchmark $1, a name for its files, with the rest of the command line. Its table is what it prints, or what it
# puts into the file of that name and the extension .txt, anew after each measurement.
benchmark() {
  local name=$1 base=$work/benchmarks/$1 status
  shift
  say "Running $name ..."
  rm -f "$base.txt"
  limited "$cap" "$@" >"$base.printed" 2>"$base.log"
  status=$?
  [[ -e $base.txt ]] || cp "$base.printed" "$base.txt"
  ((status == 0)) ||
    printf '\n%s ended with status %s: %s\n' "$name" "$status" "$(tail -n 3 "$base.log")" >>"$base.txt"
  echo "$status" | put "$base.status"
  write_report
}

measurements='merge_and_launches convolutions convnet resnet18'
run_benchmarks() {
  renew benchmarks
  local common=(--device cuda:0 --rounds "$bench_rounds") folder=$work/benchmarks network
  if is_due "$folder/merge_and_launches.status" 120; then
    benchmark merge_and_launches "$bench/device_speed" "${common[@]}"
  fi
  if is_due "$folder/convolutions.status" 120; then
    benchmark convolutions "$bench/device_convolutions" "${common[@]}"
  fi
  for network in convnet resnet18; do
    is_due "$folder/$network.status" 420 || continue
    benchmark "$network" "$bench/gpu_end_to_end" "${common[@]}" --seconds "$bench_seconds" \
      --python "${outside[*]} $python" --network "$network" --json "$folder/$network.json" \
      --table "$folder/$network.txt" --budget $((cap > 180 ? cap - 60 : 120))
  done
}

metrics=gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed
metrics+=,sm__throughput.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active
# Nsight Compute looks at some kernels of a program; clocks and caches are left as they are.
look_at() {  # a name for the files, what is to be looked at, the tool's options, --, the program and its arguments
  local base=$work/profile/$1 what=$2 options=() status
  shift 2
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  limited "$((cap < 300 ? cap : 300))" "$tool" --clock-control none --cache-control none --print-summary per-kernel \
    --metrics "$metrics" "${options[@]}" "${@:2}" >"$base.all" 2>"$base.log"
  status=$?
  printf '%s\n' "$what" >"$base.txt"
  cut -c 1-160 "$base.all" | grep -av '^==' | head -n 300 >>"$base.txt"
  ((status == 0)) || echo "ncu ended with status $status: $(tail -n 3 "$base.log")" >>"$base.txt"
  echo "$status" | put "$base.status"
  write_report
}

# Where the time of a step goes: first by CUDA's own tracing, then, where Nsight Compute is there, how much of the GPU each
# kernel uses, and how much those that merge replicas.
run_profile() {
  renew profile
  local folder=$work/profile status replicas name
  if is_due "$folder/steps.status" 120; then
    say "Tracing steps ..."
    limited "$((cap < 300 ? cap : 300))" "$bench/gpu_end_to_end" --device cuda:0 --network convnet --trace \
      >"$folder/steps.txt" 2>"$folder/steps.log"
    status=$?
    ((status == 0)) || printf '\nIt ended with status %s: %s\n' "$status" "$(tail -n 3 "$folder/steps.log")" >>"$folder/steps.txt"
    echo "$status" | put "$folder/steps.status"
    write_report
  fi
  if ! find_tool ncu /opt/nvidia/nsight-compute/*/ncu; then
    echo "Nsight Compute (ncu) was not found on this machine." >"$folder/kernels.txt"
    for name in kernels merges_of_2 merges_of_8; do echo 0 | put "$folder/$name.status"; done
    return
  fi
  say "Profiling ..."
  if is_due "$folder/kernels.status" 180; then
    look_at kernels "200 kernels of the convnet's training by one worker" --launch-skip 2000 --launch-count 200 -- \
      "$bench/gpu_end_to_end" --device cuda:0 --network convnet --arm 1 --batch 128 --seconds 0.1
  fi
  for replicas in 2 8; do
    is_due "$folder/merges_of_$replicas.status" 120 || continue
    look_at "merges_of_$replicas" "Merges of $replicas replicas of 100 MB" --kernel-name 'regex:[mM]ean' --launch-count 6 -- \
      "$bench/device_speed" --device cuda:0 --megabytes 100 --replicas "$replicas" --rounds 1
  done
}

bullets() { sed 's/^/- /'; }
fenced() { printf '```\n'; cat -- "$1"; printf '```\n\n'; }
files_in() { local file; for file in "$work/$1"/*"$2"; do [[ ! -e $file ]] || printf '%s\n' "$file"; done; }

# What is missing for the report to be whole, in lines.
missing() {
  local name number file cases_missing=0 programs_missing=0 some
  if [[ ! -e $work/known ]]; then
    echo "the tests"
  else
    while IFS=$'\t' read -r name number; do
      file=$work/tests/${name//\//__}.cases
      some=$([[ ! -e $file ]] || wc -l <"$file")
      if ((number > ${some:-0})); then
        cases_missing=$((cases_missing + number - ${some:-0}))
        programs_missing=$((programs_missing + 1))
      fi
    done <"$work/known"
    ((cases_missing == 0)) || echo "$cases_missing test cases of $programs_missing programs"
  fi
  for name in $measurements; do
    [[ -e $work/benchmarks/$name.status ]] || echo "the benchmark $name"
  done
  for name in steps kernels merges_of_2 merges_of_8; do
    if [[ ! -e $work/profile/$name.status ]]; then
      echo "the profile"
      break
    fi
  done
  if [[ ! -e $work/sanitizer/chosen ]]; then
    echo "compute-sanitizer"
  elif [[ ! -e $work/sanitizer/refused ]] && (($(sanitizer_spent) < 60 * sanitizer_minutes)) && [[ -n $(unchecked) ]]; then
    echo "compute-sanitizer on $(unchecked | wc -l) programs"
  fi
}
# The programs that compute-sanitizer has not been through.
unchecked() {
  local name
  while IFS= read -r name; do
    [[ -e $work/sanitizer/${name//\//__}.racecheck.verdict ]] || echo "$name"
  done <"$work/sanitizer/chosen"
}

# How many things failed. Nsight Compute is no part of this build, and may not be allowed to do its work.
failures() {
  local number
  number=$(files_in tests .cases | xargs -r -d '\n' cat | awk -F '\t' '$1 == "failed" { ++n } END { print n + 0 }')
  number=$((number + $(files_in sanitizer .verdict |
    xargs -r -d '\n' grep -LE '^(0 errors|0 hazards)|; 0 lines of findings' | wc -l)))
  number=$((number + $({ files_in benchmarks .status; files_in profile steps.status; files_in sanitizer planted.status; } |
    xargs -r -d '\n' grep -Lx 0 | wc -l)))
  echo "$number"
}

write_tests() {
  printf '## Tests\n\n'
  local files file passed skipped failed
  mapfile -t files < <(files_in tests .cases)
  if ((${#files[@]} == 0)); then
    printf 'They were not run.\n\n'
    return
  fi
  passed=$(count passed "${files[@]}")
  skipped=$(count skipped "${files[@]}")
  failed=$(count failed "${files[@]}")
  printf '%s cases of %s programs: %s run, %s of them failed; %s skipped.\n\n' \
    $((passed + skipped + failed)) ${#files[@]} $((passed + failed)) "$failed" "$skipped"
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
  if [[ ! -e $work/sanitizer/chosen ]]; then
    printf 'It was not run.\n\n'
    return
  elif [[ -e $work/sanitizer/refused ]]; then
    printf '%s\n\n' "$(cat "$work/sanitizer/refused")"
    return
  fi
  printf 'Of the tests of operations, devices and tensors; those of networks and training call the same kernels. '
  if [[ -s $work/sanitizer/kernels && -n $(cat "$work/sanitizer/kernels") ]]; then
    printf 'The tool looked at our kernels (%s), not at those of cuBLASLt and cuDNN, ' "$(cat "$work/sanitizer/kernels")"
  else
    printf 'The tool looked at all kernels, '
  fi
  printf 'and found an error that was made on purpose.\n\n| program | memcheck | racecheck |\n|---|---|---|\n'
  local name base log
  while IFS= read -r name; do
    base=$work/sanitizer/${name//\//__}
    [[ ! -e $base.memcheck.verdict ]] || printf '| %s | %s | %s |\n' "$name" "$(cat "$base.memcheck.verdict")" \
      "$(cat "$base.racecheck.verdict" 2>/dev/null || echo "not run yet")"
  done <"$work/sanitizer/chosen"
  printf '\n'
  if [[ -n $(unchecked) ]]; then
    printf 'Not run, for want of time (`--sanitizer-minutes`, %s so far of %s minutes): %s.\n\n' \
      "$(($(sanitizer_spent) / 60))" "$sanitizer_minutes" "$(unchecked | paste -sd , | sed 's/,/, /g')"
  fi
  local heavy
  heavy=$(files_in sanitizer .heavy | while IFS= read -r log; do
    name=$(basename "$log" .heavy)
    sed -n "s|\t|: |; s|^.|${name//__//}: &|p" "$log"
  done)
  if [[ -n $heavy ]]; then printf 'Cases left out:\n\n%s\n\n' "$(bullets <<<"$heavy")"; fi
  files_in sanitizer check.log | while IFS= read -r log; do
    findings "$log" >/dev/null || continue
    # shellcheck disable=SC2016
    printf '`%s`:\n\n```\n%s\n```\n\n' "$(basename "$log")" \
      "$(grep -aE -A 4 '^=+ +(Invalid|Misaligned|Error:|Warning:|.*hazard (detected|reported|at))' "$log" |
        cut -c 1-200 | head -n 15)"
  done
}

write_benchmarks() {
  printf '## Benchmarks\n\n'
  if [[ -z $(files_in benchmarks .txt) ]]; then
    printf 'They were not run.\n\n'
    return
  fi
  local name
  for name in $measurements; do
    [[ -e $work/benchmarks/$name.txt ]] || continue
    printf '### %s\n\n' "$name"
    [[ -e $work/benchmarks/$name.status ]] || printf 'It was ended from outside; so far:\n\n'
    fenced "$work/benchmarks/$name.txt"
  done
}

write_profile() {
  printf '## Where the time goes: steps of the MNIST convnet, and merges\n\n'
  if [[ -z $(files_in profile .status) ]]; then
    printf 'It was not profiled.\n\n'
    return
  fi
  [[ ! -e $work/profile/steps.txt ]] || fenced "$work/profile/steps.txt"
  printf '### By Nsight Compute\n\nKernels one by one: their time, and their share of what memory, multiprocessors and'
  printf ' places for warps give.\n\n'
  local name
  for name in kernels merges_of_2 merges_of_8; do
    [[ ! -e $work/profile/$name.txt ]] || fenced "$work/profile/$name.txt"
  done
}

write_report() {
  local lacking
  lacking=$(missing)
  {
    printf '# muster on a GPU\n\n'
    printf '| | |\n|---|---|\n| date | %s |\n' "$(date -u '+%Y-%m-%d %H:%M UTC')"
    if [[ -r $build/revision ]]; then printf '| revision | %s |\n' "$(cat "$build/revision")"; fi
    sed -n 's/^\([^:]*\): \(.*\)/| \1 | \2 |/p' "$work/about.txt"
    printf '\n'
    if [[ -n $lacking ]]; then printf 'This report is not whole. It lacks:\n\n%s\n\n' "$(bullets <<<"$lacking")"; fi
    write_tests
    write_benchmarks
    write_profile
    write_sanitizer
  } >"$out.part"
  mv "$out.part" "$out"
}

if [[ $list == yes ]]; then
  find_programs
  ((${#programs[@]})) || fail "$given has no tests for a GPU${filter:+ with $filter in their names}"
  printf '%s\n' "${programs[@]#"$build/"}"
  exit
fi

about=$(mktemp -d) || exit 2
if ! limited 120 "$bench/device_speed" --device cuda:0 --about >"$about/text" 2>"$about/log"; then
  say "gpu: no GPU can be used here: $(tail -n 1 "$about/log" | sed 's/^device_speed: //')"
  rm -rf "$about" ${unpacked:+"$unpacked"}
  exit 3
fi
if find_tool nvidia-smi /usr/local/nvidia/bin/nvidia-smi /usr/lib/wsl/lib/nvidia-smi; then
  timeout 60 "$tool" --query-gpu=driver_version,power.limit,clocks.max.sm,clocks.max.memory --format=csv,noheader \
    2>/dev/null |
    awk -F ', *' 'NR == 1 { print "driver: " $1; print "limits: " $2 ", " $3 " (SM), " $4 " (memory)" }' >>"$about/text"
  # A GPU that lets in one process at a time refuses the others'.
  if timeout 60 "$tool" --query-gpu=compute_mode --format=csv,noheader 2>/dev/null | grep -qi exclusive; then
    jobs=1
    echo "compute mode: exclusive to one process, so test programs ran one at a time" >>"$about/text"
  fi
fi

# Results of another build, or of another kind of GPU, do not belong into this report.
identity=$(
  cat "$build/revision" 2>/dev/null
  find "$build/tests" -type f -executable | sort | xargs -d '\n' cksum | awk '{ print $1, $2 }' | cksum
  sed -n 's/^device: //p' "$about/text"
)
if [[ -d $work && $(cat "$work/identity" 2>/dev/null) != "$identity" ]]; then
  say "gpu: the results so far are of another build or GPU, and are in $work-before now"
  rm -rf "$work-before"
  mv "$work" "$work-before"
fi
mkdir -p "$work" || exit 2
work=$(CDPATH='' cd -- "$work" && pwd -P)
put "$work/identity" <<<"$identity"
put "$work/about.txt" <"$about/text"
rm -rf "$about"

# Ended from outside, it ends what it has begun, and the report holds what there is.
stop() {
  trap '' TERM INT HUP
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null
  wait 2>/dev/null
  write_report
  say "gpu: ended before the report was whole: $out"
  exit 143
}
trap stop TERM INT HUP

for part in $all_parts; do
  if [[ ,$only, == *,$part,* ]]; then
    "run_$part"
    write_report
  fi
done

lacking=$(missing) failed=$(failures)
say "The report is $out."
if [[ -n $lacking ]]; then
  say "It is not whole yet: it lacks $(paste -sd , <<<"$lacking" | sed 's/,/, /g')."
fi
((failed == 0)) || exit 1
[[ -z $lacking ]] || exit 4
