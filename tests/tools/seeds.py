"""./run test --seeds N: runs only the test files that draw random inputs, with the seeds 1 to N, or N seeds from
MUSTER_TEST_SEED on."""
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from project import ROOT, SKIPPED, Parser, build, cores, fail

TESTS = ROOT / "tests"


def drawing_files():
    """Test files that draw random inputs, named by their places below tests/, without a suffix."""
    return sorted(str(file.relative_to(TESTS).with_suffix("")) for file in TESTS.rglob("*_test.cpp")
                  if "freshSeed()" in file.read_text(encoding="utf-8"))


def programs_of(folder):
    """[test file] the program that has it, which CMake has written."""
    return dict(line.split() for line in (folder / "programs.txt").read_text(encoding="utf-8").splitlines())


def run_with_seed(command, seed):
    """Runs a command with a seed. If it fails, prints its output and how to repeat it."""
    # Waiting threads sleep instead of spinning, because programs run side by side.
    environment = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT")}
    environment.update(OMP_WAIT_POLICY="passive", MUSTER_TEST_SEED=str(seed))
    call = subprocess.run(["timeout", "1800", *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if call.returncode in (0, SKIPPED):
        return True
    isa = os.environ.get("MUSTER_MAX_CPU_ISA")
    again = (f"MUSTER_MAX_CPU_ISA={isa} " if isa is not None else "") + f"MUSTER_TEST_SEED={seed} {shlex.join(command)}"
    print(f"{call.stdout.decode(errors='replace')}\nStatus {call.returncode}. To repeat: {again}\n", flush=True)
    return False


def main():
    parser = Parser("test", __doc__)
    parser.add_argument("--seeds", metavar="N", required=True)
    parser.add_argument("--preset", default="release")
    options, others = parser.parse_known_args()
    if options.preset not in ("release", "dev"):
        fail("--seeds runs in the presets release and dev")
    if not options.seeds.isdigit() or int(options.seeds) < 1:
        fail("--seeds wants a number, at least 1")
    if others:
        fail(f"--seeds does not go with options of ctest: {' '.join(others)}")
    files, first = drawing_files(), int(os.environ.get("MUSTER_TEST_SEED", "1"))
    seeds = range(first, first + int(options.seeds))
    folder = build(options.preset, *(file.split("/")[-1] for file in files)) / "tests"
    program = programs_of(folder)
    commands = [[str(folder / program[file]), f"--source-file=*/{file.split('/')[-1]}.cpp"] for file in files]
    began = time.monotonic()
    with ThreadPoolExecutor(cores()) as pool:
        passed = list(pool.map(lambda run: run_with_seed(*run), ((command, seed) for seed in seeds for command in commands)))
    failed = passed.count(False)
    print(f"{len(files)} test files with the seeds {seeds[0]} to {seeds[-1]} in {time.monotonic() - began:.0f} s:",
          f"{failed} runs failed" if failed else "all passed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
