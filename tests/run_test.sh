#!/usr/bin/env bash
# Tests when ./run configures a build anew, its messages about failures, and its handling of wrong calls. Runs in a copy
# of the checkout's root; scripts replace cmake and the tools of a machine with a GPU.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
root=$sandbox/muster
mkdir -p "$root/tests/gpu" "$sandbox/bin"
cp "$here/../run" "$here/../CMakePresets.json" "$root"
cp -r "$here/tools" "$root/tests"
cp -r "$here/gpu/report" "$here/gpu/pack.py" "$root/tests/gpu"
touch -d '1 hour ago' "$root/CMakePresets.json"
unset CUDACXX CUDA_HOME CUDA_PATH VIRTUAL_ENV CONDA_PREFIX MUSTER_TEST_SEED MUSTER_MAX_CPU_ISA
export HOME=$sandbox PATH=$sandbox/bin:$PATH

script() { # name; the script's text on standard input
  { printf '#!/bin/bash\n'; cat; } >"$sandbox/bin/$1"
  chmod +x "$sandbox/bin/$1"
}
# No package is missing and nothing is compiled; the program prints its arguments.
script dpkg-query <<'END'
shift 3
printf 'installed %s\n' "$@"
END
script cmake <<END
build=$root/build/release
[[ "\$*" != *cuda* ]] || build=$root/build/cuda
[[ "\$*" != *bench* ]] || build=$root/build/bench
case \$* in
  --install*) echo "\$*" >"$sandbox/installed-by" ;;
  --build*) if [[ -e $sandbox/broken ]]; then cat "$sandbox/broken"; exit 1; fi
    mkdir -p "\$build/examples"
    printf '#!/bin/bash\nshift 2\necho trained "\$@"\n' >"\$build/examples/muster"
    chmod +x "\$build/examples/muster"
    if [[ "\$*" == *draws_test* ]]; then
      install -D "$sandbox/draws_test" "\$build/tests/core/core_test"
      echo core/draws_test core/core_test >"\$build/tests/programs.txt"
    fi
    echo "\$*" >"$sandbox/built" ;;
  *) echo configured >>"$sandbox/log"
    printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\nMUSTER_CUDA:STRING=%s\n' "$root" "\$(cat "$sandbox/cuda")" >"\$build/CMakeCache.txt"
    touch "\$build/build.ninja" ;;
esac
END
gpu() { # compute capability, or "unknown", with which the tool fails
  script nvidia-smi <<END
[[ \$1 == -L || $1 != unknown ]] && echo $1
END
}
no_gpu() { script nvidia-smi <<<'exit 9'; }

failures=0
run() { # times that CMake is called, why
  : >"$sandbox/log"
  local said
  said=$("$root/run" mnist --epochs 2 2>"$sandbox/err") || { cat "$sandbox/err"; said=nothing; }
  local times
  times=$(wc -l <"$sandbox/log")
  if [[ $said != 'trained --epochs 2' || $times != "$1" ]]; then
    printf 'run_test: %s: configured %s times, not %s; the program said: %s\n' "$2" "$times" "$1" "$said"
    failures=$((failures + 1))
  fi
}

echo AUTO >"$sandbox/cuda"
no_gpu
run 1 'the first time'
run 0 'nothing has changed'
gpu 9.0
run 1 'a GPU is there now'
run 0 'it was there before'
script nvcc <<<'exit 0'
run 1 'there is a compiler for it now'
run 0 'there was one before'
gpu 8.0
run 1 'it is a GPU of another kind'
gpu unknown
run 0 'its kind cannot be told'
no_gpu
run 0 'it is away'
echo OFF >"$sandbox/cuda"
touch "$root/CMakePresets.json"
run 1 'the presets have changed'
touch -d '1 hour ago' "$root/CMakePresets.json"
gpu 9.0
run 0 'nobody wants CUDA'

installed() { # status, the message, the folder that CMake is told, arguments of ./run install
  local status=0
  rm -f "$sandbox/installed-by" "$sandbox/built"
  "$root/run" install "${@:4}" >"$sandbox/out" 2>&1 || status=$?
  if [[ $status != "$1" || $(cat "$sandbox/installed-by" 2>/dev/null) != "${3:+--install $root/build/release --prefix $3}" ]] ||
    ! grep -qF -- "$2" "$sandbox/out" || { [[ -n $3 ]] && ! grep -q -- '--target muster_installed$' "$sandbox/built"; }; then
    printf 'run_test: ./run install %s ended with %s, and called CMake with "%s"; it said:\n' "${*:4}" "$status" \
      "$(cat "$sandbox/installed-by" 2>/dev/null)"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
default=$sandbox/.local
if [[ $(id -u) == 0 ]]; then default=/usr/local; fi
installed 0 "Installed below $default: the library, and the program muster in $default/bin." "$default"
installed 0 "export PATH=$sandbox/a b/bin:\$PATH" "$sandbox/a b" "$sandbox/a b"
installed 0 "-DCMAKE_PREFIX_PATH=$PWD/here" "$PWD/here" here
touch "$sandbox/file"
installed 1 "install: $sandbox/file is not a folder that you can write to" '' "$sandbox/file/muster"
installed 0 './run install [PREFIX]' '' --help
installed 1 'install: it takes one folder' '' --prefix here
installed 1 'install: it takes one folder' '' one two

seeds() { # status, message, the seeds that run, arguments of ./run test; "-": nothing is built
  local status=0
  rm -f "$sandbox/seeds" "$sandbox/built"
  "$root/run" test "${@:4}" >"$sandbox/out" 2>&1 || status=$?
  local ran=- targets=''
  if [[ -e $sandbox/seeds ]]; then ran=$(sort -n "$sandbox/seeds" | tr '\n' ' '); fi
  if [[ -e $sandbox/built ]]; then targets=$(sed 's/.*--target //' "$sandbox/built"); fi
  if [[ $status != "$1" || $ran != "$3" || $3 != - && $targets != draws_test ]] || ! grep -qF -- "$2" "$sandbox/out"; then
    printf 'run_test: ./run test %s ended with %s, not %s, built "%s", and ran the seeds %s, not %s; it said:\n' "${*:4}" \
      "$status" "$1" "$targets" "$ran" "$3"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
# One of two test files draws random inputs; its program fails with seed 12 and skips all of its tests with 11.
mkdir -p "$root/tests/core"
echo 'std::mt19937_64 random(test::freshSeed());' >"$root/tests/core/draws_test.cpp"
echo 'std::mt19937_64 random(5);' >"$root/tests/core/plain_test.cpp"
cat >"$sandbox/draws_test" <<END
#!/bin/bash
echo "\$MUSTER_TEST_SEED" >>"$sandbox/seeds"
echo "inputs of \$MUSTER_TEST_SEED"
((MUSTER_TEST_SEED != 12)) || exit 3
((MUSTER_TEST_SEED != 11)) || exit 77
END
seeds 0 '1 test files with the seeds 1 to 4' '1 2 3 4 ' --seeds 4
seeds 0 'all passed' '1 ' --seeds=1
MUSTER_TEST_SEED=10 seeds 0 'with the seeds 10 to 11' '10 11 ' --seeds 2
MUSTER_TEST_SEED=10 seeds 1 '1 runs failed' '10 11 12 13 ' --seeds 4
MUSTER_TEST_SEED=12 seeds 1 'inputs of 12' '12 ' --seeds 1
MUSTER_TEST_SEED=12 MUSTER_MAX_CPU_ISA=avx2 seeds 1 "To repeat: MUSTER_MAX_CPU_ISA=avx2 MUSTER_TEST_SEED=12 $root" '12 ' --seeds 1
seeds 1 '--seeds wants a number' - --seeds 0
seeds 1 '--seeds wants a number' - --seeds many
seeds 1 '--seeds wants a number' - --seeds
seeds 1 'presets release and dev' - --seeds 2 --preset tsan
seeds 1 'options of ctest: -R dense' - --seeds 2 -R dense

# Packages that ./run installs on a system with only the given packages.
script sudo <<'END'
while [[ $1 == -* ]]; do shift; done
"$@"
END
installs() { # lines of os-release, a package that apt lacks or '-', installed, not installed, message, call
  local installed package
  printf '%b' "$1" >"$sandbox/os-release"
  : >"$sandbox/installed"
  script dpkg-query <<<"sed 's/^/installed /' '$sandbox/installed'"
  script apt-get <<END
[[ " \$* " != *" $2 "* ]] || { echo "E: Unable to locate package $2"; exit 100; }
[[ " \$* " != *" install "* ]] || printf '%s\n' "\$@" >>"$sandbox/installed"
END
  rm -rf "$root/build/release"
  MUSTER_OS_RELEASE=$sandbox/os-release "$root/run" ${6:-mnist} >"$sandbox/out" 2>&1 || true
  installed=" $(tr '\n' ' ' <"$sandbox/installed") "
  for package in $3; do
    if [[ $installed != *" $package "* ]]; then printf 'run_test: on %b: did not install %s\n' "$1" "$package"; failures=$((failures + 1)); fi
  done
  for package in $4; do
    if [[ $installed == *" $package "* ]]; then printf 'run_test: on %b: installed %s\n' "$1" "$package"; failures=$((failures + 1)); fi
  done
  if ! grep -qF -- "$5" "$sandbox/out"; then
    printf 'run_test: on %b: did not say "%s", but:\n' "$1" "$5"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
debian='ID=debian\nVERSION_CODENAME=' ubuntu='ID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME='
installs "${debian}bookworm\n" - 'g++ cmake libboost1.81-dev libboost-json1.81-dev' libboost1.83-dev trained
installs "${debian}trixie\n" - 'g++ cmake libboost1.83-dev libboost-json1.83-dev' libboost1.81-dev trained
installs "${ubuntu}noble\n" - 'g++ cmake libboost1.83-dev' libboost-dev trained
installs "${ubuntu}noble\nVERSION_CODENAME=wilma\n" - libboost1.83-dev libboost-dev trained
installs "${debian}forky\n" - 'libboost-dev libboost-json-dev' libboost1.83-dev trained
installs "${ubuntu}jammy\n" - 'g++-12 ninja-build libdnnl-dev' 'g++ cmake libboost-dev doctest-dev' trained
installs "ID=fedora\n" - '' 'g++ cmake' 'Boost 1.81 or newer'
# A package that is not available does not prevent the others.
installs "${debian}trixie\n" libboost-json1.83-dev 'g++ cmake zlib1g-dev' libboost-json1.83-dev 'Boost.JSON  [Debian'
# The help of commands that are no programs, and options that they do not have: nothing is installed.
for call in 'packages --help' 'packages g++ -h' 'test --help' 'build --help' 'build release --help'; do
  installs "${debian}trixie\n" - '' '--help -h g++' './run test [options]' "$call"
done
installs "${debian}trixie\n" - '' '--bogus g++' 'run: packages: there are no options, only names of packages: g++ --bogus' 'packages g++ --bogus'
# Installs the packages for processes that connect with Gloo.
installs "${debian}trixie\n" - 'g++ libgloo-dev' libopenmpi-dev 'trained --workers 1' 'nodes --gloo 2 --workers 1'
installs "${debian}trixie\n" - 'g++ libgloo-dev' libopenmpi-dev 'trained --store here' 'mnist --store here'
installs "${debian}trixie\n" - '' libgloo-dev 'nodes: --rate needs --namespaces' 'nodes --rate 100mbit'
# On a bare machine training needs no Python, tests come with one, and the other commands install it first.
tools=$sandbox/tools  # those of this machine, each once, without valgrind
mkdir "$tools" "$sandbox/bare"
ln -s /bin/* /usr/bin/* "$tools" 2>/dev/null || true
rm -f "$tools"/valgrind*
cp -P "$tools"/* "$sandbox/bare"
rm -f "$sandbox/bare"/python3*
path=$PATH PATH=$sandbox/bin:$sandbox/bare
installs "${debian}trixie\n" - g++ 'python3 python3-numpy' trained
installs "${debian}trixie\n" - 'g++ python3-numpy' '' 'Configuring build/release' 'build release +test mnist_convnet'
installs "${debian}trixie\n" - python3 g++ 'Installing packages: python3' fuzz
installs "ID=fedora\n" - '' python3 'run: soak needs Python 3.9 or newer' soak
PATH=$path
# Installs what draws the pages that a training writes.
for option in --page '--report r' --report=r '--curves c'; do
  installs "${debian}trixie\n" - 'g++ libjs-dygraphs' libgloo-dev "trained --epochs 1 $option" "mnist --epochs 1 $option"
done
installs "${debian}trixie\n" - g++ libjs-dygraphs 'trained --json page' 'mnist --json page'
installs "${debian}trixie\n" - 'libprotobuf-dev protobuf-compiler' libjs-dygraphs trained 'mnist --tensorboard=t'
installs "${debian}trixie\n" - 'libprotobuf-dev libjs-dygraphs' '' trained 'mnist --page --tensorboard t'
# Installs the packages of optional modules on request.
script ctest <<<'echo tested'
script python3 <<<'exit 1'
installs "${debian}trixie\n" - 'g++ python3-numpy' 'libonnx-dev chromium libopenmpi-dev libgloo-dev protobuf-compiler' tested test
installs "${debian}trixie\n" - 'g++ python3-numpy libonnx-dev libtorch-dev libopenmpi-dev libgloo-dev protobuf-compiler chromium' '' \
  'pip did not install them' 'test --optional'
# Ubuntu has Chromium only as a snap.
installs "${ubuntu}noble\n" - 'libonnx-dev libjs-dygraphs' 'libtorch-dev chromium chromium-driver' \
  'pip did not install them' 'test --optional'
installs "${ubuntu}jammy\n" - 'libonnx-dev libgloo-dev' 'libtorch-dev chromium chromium-driver libjs-dygraphs' \
  'pip did not install them' 'test --optional'
rm "$sandbox/bin/"{ctest,python3}
# If CMake fails, names the packages that the release lacks.
mv "$sandbox/bin/cmake" "$sandbox/cmake"
script cmake <<<'echo CMake Error: CMake 3.25 or higher is required; exit 1'
installs "${ubuntu}jammy\n" - g++-12 cmake 'CMake 3.25 or newer  [Debian: cmake]'
mv "$sandbox/cmake" "$sandbox/bin/cmake"
rm "$sandbox/bin/"{apt-get,sudo}
script dpkg-query <<'END'
shift 3
printf 'installed %s\n' "$@"
END

# ./run fuzz says what became of each fuzzer, and shows what one that failed has printed, but not its progress.
mkdir -p "$root/build/fuzz/tests/fuzz" "$root/tests/fuzz"
for fuzzer in finds fails; do
  touch "$root/tests/fuzz/${fuzzer}_fuzz.cpp"
  cat >"$root/build/fuzz/tests/fuzz/fuzz_$fuzzer" <<'END'
#!/bin/bash
[[ $1 != --seeds ]] || exit 0
[[ " $* " != *" -runs=70 "* ]] || echo limited
printf '#2\tINITED cov: 100 ft: 7\n#9\tNEW    cov: 103 ft: 8\nstat::number_of_executed_units: 70\n'
[[ $0 != *fails ]] || { echo 'ERROR: AddressSanitizer'; exit 1; }
END
  chmod +x "$root/build/fuzz/tests/fuzz/fuzz_$fuzzer"
done
fuzzes() { # status, a whole line of the output, arguments
  local status=0
  "$root/run" fuzz "${@:3}" >"$sandbox/out" 2>&1 || status=$?
  if [[ $status != "$1" ]] || ! grep -qxF -- "$2" "$sandbox/out" || grep -q INITED "$sandbox/out"; then
    printf 'run_test: ./run fuzz %s ended with %s, not %s, or did not say "%s", but:\n' "${*:3}" "$status" "$1" "$2"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
fuzzes 0 'finds                  70 inputs  cov: 103     passed' finds
fuzzes 1 "fails                  70 inputs  cov: 103     FAILED: $root/build/fuzz/logs/fails"
fuzzes 1 'ERROR: AddressSanitizer' --minutes=3 fails
fuzzes 1 'run: --minutes wants a number, at least 1' --minutes 0
fuzzes 1 'run: --inputs wants a number, at least 1' --inputs
fuzzes 1 'run: fuzz: there is no option --bogus; ./run help says what there is' --bogus
fuzzes 1 'run: fuzz: there is no fuzzer nothing: use fails, finds' nothing
"$root/run" fuzz --inputs 70 finds >"$sandbox/out" 2>&1 || { cat "$sandbox/out"; failures=$((failures + 1)); }
if ! grep -qx limited "$root/build/fuzz/logs/finds" || ! grep -qF 'until it has tried 70 inputs' "$sandbox/out"; then
  printf 'run_test: ./run fuzz --inputs 70 did not limit the inputs; it said:\n'
  cat "$sandbox/out"
  failures=$((failures + 1))
fi

# ./run bench gives the options of a part to its programs alone, and those without a part to end_to_end.
benches() { # status, what the programs are called with, arguments
  local status=0 program
  for program in bench/end_to_end bench/inference core/ops/dense_bench; do
    mkdir -p "$root/build/bench/tests/${program%/*}"
    cat >"$root/build/bench/tests/$program" <<'END'
#!/bin/bash
options=()
for option in "$@"; do [[ $option == --benchmark_[mr]* ]] || options+=("$option"); done
echo "${0##*/}" "${options[@]}"
[[ " $* " != *" --bogus "* ]] || exit 1
END
    chmod +x "$root/build/bench/tests/$program"
  done
  "$root/run" bench "${@:3}" >"$sandbox/out" 2>"$sandbox/err" || status=$?
  if [[ $status != "$1" || $(cat "$sandbox/out") != "$(printf '%b' "$2")" ]]; then
    printf 'run_test: ./run bench %s ended with %s, not %s; it said:\n' "${*:3}" "$status" "$1"
    cat "$sandbox/out" "$sandbox/err"
    failures=$((failures + 1))
  fi
}
benches 0 'end_to_end --kernels .'
benches 0 'end_to_end --kernels . --json f' --json f
benches 0 'end_to_end --kernels . --compare f --rounds 2' all --compare f --rounds 2
benches 0 'end_to_end --json f --kernels pool' --json f --kernels pool
benches 1 'end_to_end --kernels . --bogus' --bogus
benches 0 'end_to_end --help' --help
benches 0 'end_to_end --machine\ndense_bench --benchmark_filter=x' kernels --benchmark_filter=x
benches 0 'end_to_end --json f' end-to-end --json f
benches 0 'inference --rounds 1' inference --rounds 1
benches 1 '' none

# ./run soak runs every part, whatever happened to the part before, and tells what became of each.
soaks() { # status, last lines, status of the kills and of valgrind ('-': not installed), arguments
  local status=0 program=$root/build/release/tests/examples/kills_test
  mkdir -p "${program%/*}"
  printf '#!/bin/bash\necho "$MUSTER_KILLS kills"\nexit %s\n' "$3" >"$program"
  chmod +x "$program"
  rm -f "$sandbox/bin/valgrind"
  if [[ $4 != - ]]; then script valgrind <<<"echo checked; exit $4"; fi
  (PATH=$sandbox/bin:$tools && "$root/run" soak "${@:5}") >"$sandbox/out" 2>&1 || status=$?
  if [[ $status != "$1" || $(grep '^\(run: \)\?soak' "$sandbox/out") != "$(printf '%b' "$2")" ]] ||
    { [[ ${*:5} == *kills* ]] && ! grep -qxF '3 kills' "$sandbox/out"; } ||
    { [[ $4 != - && ${*:5} == *valgrind* ]] && ! grep -qx checked "$sandbox/out"; }; then
    printf 'run_test: ./run soak %s ended with %s, not %s; it said:\n' "${*:5}" "$status" "$1"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
soaks 0 'soak: passed: kills valgrind' 0 0 kills valgrind --kills 3
soaks 1 'soak: passed: valgrind\nrun: soak: failed: kills' 1 0 kills valgrind --kills 3
soaks 1 'soak: passed: kills\nrun: soak: failed: valgrind' 0 9 --kills=3 kills valgrind
soaks 1 'run: soak: failed: valgrind kills' 3 9 valgrind kills --kills 3
soaks 0 'soak: passed: kills\nsoak: skipped: valgrind' 0 - kills valgrind --kills 3
soaks 77 'soak: skipped: valgrind' 0 - valgrind
soaks 1 'run: soak: failed: storm' 0 - storm --storms=3  # without the tool
mkdir -p "$root/tests/parallel/nodes/node_processes"
echo 'import sys; sys.exit(sys.argv[2:] != "--storms 3 --seed 1".split())' \
  >"$root/tests/parallel/nodes/node_processes/storms.py"
soaks 0 'soak: passed: storm' 0 - storm --storms=3
soaks 1 'run: soak: failed: storm' 0 - storm --storms 4
soaks 1 'run: soak: there is no option or part kill; ./run help says what there is' 0 - kill

breaks() { # ninja's message, whether the advice is to build without CUDA, and the verb of ./run
  echo "$1" >"$sandbox/broken"
  local advised=no
  if "$root/run" "${3-mnist}" >"$sandbox/out" 2>&1; then cat "$sandbox/out"; failures=$((failures + 1)); fi
  if grep -q -- -DMUSTER_CUDA=OFF "$sandbox/out"; then advised=yes; fi
  if [[ $advised != "$2" ]] || ! grep -qF -- "$1" "$sandbox/out"; then
    printf 'run_test: where a build fails: advised to do without CUDA: %s, not %s; it said:\n' "$advised" "$2"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
breaks 'FAILED: core/backend/cuda/CMakeFiles/muster_cuda.dir/kernels/conv.cu.o' yes
breaks 'FAILED: core/CMakeFiles/muster_core.dir/nn/network.cpp.o' no
breaks 'FAILED: core/backend/cuda/CMakeFiles/muster_cuda.dir/kernels/conv.cu.o' no gpu  # which needs CUDA

if ! command -v python3 >/dev/null; then
  echo 'skipped: there is no Python for ./run gpu'
  exit $((failures ? 1 : 77))
fi
says() { # status, part of the message, arguments of ./run gpu; CMake is only called if the status is 1
  local status=0
  : >"$sandbox/log"
  (cd "$sandbox" && "$root/run" gpu "${@:3}") >"$sandbox/out" 2>&1 || status=$?
  if ((status != $1 || status != 1 && $(wc -l <"$sandbox/log"))) || ! grep -qF -- "$2" "$sandbox/out"; then
    printf 'run_test: ./run gpu %s ended with %s, not %s, and called CMake %s times; it said:\n' "${*:3}" \
      "$status" "$1" "$(wc -l <"$sandbox/log")"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
# Wrong calls, with and without a GPU; building fails.
rm -rf "$root/build/cuda"
touch "$sandbox/there" "$sandbox/packed.tar.xz"
for has in no_gpu 'gpu 9.0'; do
  $has
  says 2 'there is no option --bogus' --bogus
  says 2 'there is no option foo' foo
  says 2 '--only wants some of' --only nonsense
  says 2 '--minutes wants a number' --minutes x
  says 2 '--jobs wants a number' --jobs 0
  says 2 "$sandbox/absent is no build of muster" --build "$sandbox/absent"
  says 0 './run gpu [options]' --help
  says 2 'expected the name of one directory' pack
  says 2 'expected the name of one directory' pack one two
  says 2 'there is no option --bogus' pack --bogus
  says 2 'directory to make is empty' pack ''
  says 2 'bin is there already' pack bin/
  says 2 'there is there already' pack there
  says 2 'packed.tar.xz is there already' pack packed
  says 2 'there is no directory nowhere' pack nowhere/new
  says 0 './run gpu pack DIR' pack --help
  says 1 'Building in build/cuda' pack new
done
# A build for one kind of GPU is not reused for another kind, nor packed as a build for all.
forced() { # number of CMake calls, arguments of ./run gpu
  mkdir -p "$root/build/cuda"
  printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\nMUSTER_CUDA:STRING=ON\nCMAKE_CUDA_ARCHITECTURES:UNINITIALIZED=90\n' "$root" \
    >"$root/build/cuda/CMakeCache.txt"
  touch "$root/build/cuda/build.ninja"
  : >"$sandbox/log"
  (cd "$sandbox" && "$root/run" gpu "${@:2}") >"$sandbox/out" 2>&1 || true
  if [[ $(wc -l <"$sandbox/log") != "$1" ]]; then
    printf 'run_test: ./run gpu %s, with sm_90 forced, called CMake %s times, not %s; it said:\n' "${*:2}" \
      "$(wc -l <"$sandbox/log")" "$1"
    cat "$sandbox/out"
    failures=$((failures + 1))
  fi
}
gpu 9.0
forced 1 pack new
forced 0 pack --arch 90 new
forced 1 pack --arch 80 new
forced 0
gpu 8.0
forced 1
rm -rf "$root/build/cuda"
# The tests of an existing build are listed without a GPU.
no_gpu
if [[ ! -e /dev/nvidiactl && ! -e /dev/dxg ]]; then
  rm -rf "$root/build/cuda"
  says 2 'build/cuda is no build of muster' --list
  mkdir -p "$root/build/cuda/tests/bench"
  script ../muster/build/cuda/tests/bench/device_speed <<<'exit 9'
  script ../muster/build/cuda/tests/some_test <<<'echo "<doctest><TestCase name=\"works&lt;gpu>\"/></doctest>"'
  says 0 'tests/some_test' --list
  says 3 'this machine has no NVIDIA GPU'
fi

if ((failures)); then exit 1; fi
