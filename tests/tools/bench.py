"""./run bench [kernels | end-to-end | inference | loading] [options]: builds the benchmarks and runs them. The other options
are the programs'; without a part, those of end-to-end."""
import os
import sys

from project import build, check, fail

PARTS = ("kernels", "inference", "loading", "end-to-end")
REPEATED = ("--benchmark_min_warmup_time=0.2", "--benchmark_repetitions=5", "--benchmark_report_aggregates_only=true")


def commands(part, tests, options):
    """The calls of a part, for the programs below folder `tests`."""
    end_to_end = tests / "bench/end_to_end"
    if part == "kernels":
        programs = sorted(file for file in tests.rglob("*_bench") if file.is_file() and os.access(file, os.X_OK))
        return [[end_to_end, "--machine"], *([program, *REPEATED, *options] for program in programs)]
    if part != "all":
        return [[tests / "bench" / part.replace("-", "_"), *options]]
    whole = "--help" in options or any(option.split("=")[0] == "--kernels" for option in options)
    return [[end_to_end, *([] if whole else ["--kernels", "."]), *options]]


def main(arguments):
    part = "all"
    if arguments and not arguments[0].startswith("-"):
        part, *arguments = arguments
    if part not in ("all", *PARTS):
        fail(f"there is no benchmark {part}: use kernels, inference, loading or end-to-end")
    tests = build("bench", "bench") / "tests"
    for command in commands(part, tests, arguments):
        check(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
