"""./run fuzz [fuzzers] [--minutes N | --inputs N]: gives random inputs to readers of files, texts and command lines, with
Clang's libFuzzer, AddressSanitizer and a limit on memory."""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from project import ROOT, Parser, build, cores, fail, fixed_addresses, number, say

FOLDER = ROOT / "build/fuzz"
SHORT = ("command_line", "csv", "curves", "results", "text")  # longer inputs only take longer


def command(fuzzer, limit):
    """A fuzzer with its corpora; `limit` is an option of libFuzzer."""
    known = [FOLDER / "corpus" / fuzzer]
    kept = ROOT / "tests/fuzz/corpus" / fuzzer
    if kept.is_dir():
        known.append(kept)
    # The memory limit finds readers that trust a declared size; real inputs unpack to at most 8 MiB.
    return [*fixed_addresses(), FOLDER / "tests/fuzz" / f"fuzz_{fuzzer}", *known, limit,
            f"-max_len={2048 if fuzzer in SHORT else 8192}", "-malloc_limit_mb=64", "-entropic=0", "-rss_limit_mb=2048",
            "-timeout=20", "-close_fd_mask=1", "-print_final_stats=1", f"-artifact_prefix={FOLDER}/found/{fuzzer}-"]


def environment():
    # Saved models are synced, which takes milliseconds on a disk.
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    return {**os.environ, **memory, "OMP_NUM_THREADS": "1", "UBSAN_OPTIONS": "print_stacktrace=1",
            "ASAN_OPTIONS": "detect_stack_use_after_return=0:malloc_context_size=4:quarantine_size_mb=16"}


def run_fuzzer(fuzzer, limit):
    """Returns the exit status; the output is in the fuzzer's log."""
    with open(FOLDER / "logs" / fuzzer, "wb") as log:
        for call in [FOLDER / "tests/fuzz" / f"fuzz_{fuzzer}", "--seeds", FOLDER / "corpus" / fuzzer], command(fuzzer, limit):
            status = subprocess.run(call, stdout=log, stderr=log, env=environment()).returncode
            if status:
                return status
    return 0


def report(fuzzer, status):
    """Prints the table line of a fuzzer, and of one that failed its messages."""
    log = FOLDER / "logs" / fuzzer
    lines = log.read_text(errors="replace").splitlines()
    if status:
        say("\n".join([line for line in lines if not re.match("#[0-9]", line)][:40]))
    text = "\n".join(lines)
    inputs = re.search("^stat::number_of_executed_units: *([0-9]+)", text, re.MULTILINE)
    coverage = re.findall("cov: [0-9]+", text)
    print(f"{fuzzer:14} {inputs[1] if inputs else '?':>10} inputs  {coverage[-1] if coverage else '':11} ",
          f"FAILED: {log}" if status else "passed", flush=True)


def main():
    parser = Parser("fuzz", __doc__)
    parser.add_argument("fuzzers", nargs="*")
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--minutes", metavar="N", type=number, default=2, help="that each fuzzer runs [2]")
    limits.add_argument("--inputs", metavar="N", type=number, help="that each fuzzer tries")
    options = parser.parse()
    have = sorted(file.name[:-len("_fuzz.cpp")] for file in (ROOT / "tests/fuzz").glob("*_fuzz.cpp"))
    for fuzzer in options.fuzzers:
        if fuzzer not in have:
            fail(f"fuzz: there is no fuzzer {fuzzer}: use {', '.join(have)}")
    fuzzers = options.fuzzers or have
    limit, until = f"-max_total_time={60 * options.minutes}", f"{options.minutes} min"
    if options.inputs:
        limit, until = f"-runs={options.inputs}", f"until it has tried {options.inputs} inputs"
    build("fuzz", *(f"fuzz_{fuzzer}" for fuzzer in fuzzers))
    for folder in "found", "logs":
        (FOLDER / folder).mkdir(exist_ok=True)
    say(f"Each of {len(fuzzers)} fuzzers runs {until}, {cores()} at a time.")
    with ThreadPoolExecutor(cores()) as pool:
        results = [pool.submit(run_fuzzer, fuzzer, limit) for fuzzer in fuzzers]
        for fuzzer, result in zip(fuzzers, results):
            report(fuzzer, result.result())
    return any(result.result() for result in results)


if __name__ == "__main__":
    sys.exit(main())
