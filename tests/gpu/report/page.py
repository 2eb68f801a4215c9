"""The report's text, from the results that are there."""
import time
from collections import Counter

from cases import Case
from gpu_tests import flat
from measurements import BENCHMARKS, MAY_FAIL, PROFILE
from sanitizer import CHECKS, MISSED, findings, read_lines, unchecked


def bullets(lines):
    return "".join(f"- {line}\n" for line in lines)


def fenced(lines):
    return "\n".join(["```", *lines, "```\n\n"])


def missing(job):
    """What is missing for the report to be whole."""
    data, known = job.data, job.data["sanitizer"]
    if not data["known"]:
        yield "the tests"
    lacking = [number - len(data["tests"].get(program, [])) for program, number in data["known"].items()]
    lacking = [number for number in lacking if number > 0]
    if lacking:
        yield f"{sum(lacking)} test cases of {len(lacking)} programs"
    yield from (f"the benchmark {name}" for name in BENCHMARKS if name not in data["benchmarks"])
    if not {*PROFILE} <= {*data["profile"]}:
        yield "the profile"
    if not known:
        yield "compute-sanitizer"
    elif not known["refused"] and known["spent"] < 60 * job.options.sanitizer_minutes and unchecked(known):
        yield f"compute-sanitizer on {len(unchecked(known))} programs"


def failures(data):
    """How many things failed."""
    known = data["sanitizer"]
    unclean = [text for checks in known.get("verdicts", {}).values() for text, clean in checks.values() if not clean]
    failed = [case for cases in data["tests"].values() for case in cases if Case(*case).outcome == "failed"]
    measured = [*data["benchmarks"].items(), *data["profile"].items()]
    broken = [name for name, status in measured if status and name not in MAY_FAIL]
    return len(failed) + len(unclean) + len(broken) + (MISSED in known.get("refused", ""))


def tests(job):
    yield "## Tests\n\n"
    if not job.data["tests"]:
        yield "They were not run.\n\n"
        return
    programs = {program: [Case(*case) for case in cases] for program, cases in sorted(job.data["tests"].items())}
    every = [case for cases in programs.values() for case in cases]
    total = Counter(case.outcome for case in every)
    yield (f"{len(every)} cases of {len(programs)} programs: {total['passed'] + total['failed']} run, "
           f"{total['failed']} of them failed; {total['skipped']} skipped.\n\n")
    failed = [(program, case) for program, cases in programs.items() for case in cases if case.outcome == "failed"]
    if failed:
        yield "### Failed\n\n"
        yield bullets(f"{program}: {case.name}{case.reason and ', ' + case.reason}" for program, case in failed) + "\n"
    for program in dict.fromkeys(program for program, _ in failed):
        words = [f"{case.name}\n{case.words}" for name, case in failed if name == program and case.words]
        words = "\n".join(words).splitlines() + read_lines(job.folder / "tests" / f"{flat(program)}.log")
        yield f"The first words of `{program}`:\n\n" + fenced(line[:300] for line in words[:30])
    if total["skipped"]:
        reasons = Counter(case.reason for case in every if case.outcome == "skipped")
        yield "### Skipped\n\n" + bullets(f"{number}: {reason}" for reason, number in reasons.most_common()) + "\n"
    yield "### By program\n\n| program | run | failed | skipped | seconds |\n|---|--:|--:|--:|--:|\n"
    for program, cases in programs.items():
        count, seconds = Counter(case.outcome for case in cases), sum(case.seconds for case in cases)
        yield (f"| {program} | {count['passed'] + count['failed']} | {count['failed']} | {count['skipped']} | "
               f"{seconds:.1f} |\n")
    yield "\n"


def benchmarks(job):
    yield "## Benchmarks\n\n"
    tables = [(name, job.folder / "benchmarks" / f"{name}.txt") for name in BENCHMARKS]
    tables = [(name, table) for name, table in tables if table.is_file()]
    yield "" if tables else "They were not run.\n\n"
    for name, table in tables:
        yield f"### {name}\n\n" + ("" if name in job.data["benchmarks"] else "It was ended from outside; so far:\n\n")
        yield fenced(read_lines(table))
        warnings = {line: None for line in read_lines(table.with_suffix(".log")) if line.startswith("muster: warning: ")}
        yield f"{bullets(warnings)}\n" if warnings else ""


def profile(job):
    yield "## Where the time goes: steps of the MNIST convnet, and merges\n\n"
    if not job.data["profile"]:
        yield "It was not profiled.\n\n"
        return
    for name in PROFILE:
        if name == MAY_FAIL[0]:
            yield ("### By Nsight Compute\n\nKernels one by one: their time, and their share of what memory, multiprocessors "
                   "and places for warps give.\n\n")
        table = job.folder / "profile" / f"{name}.txt"
        yield fenced(read_lines(table)) if table.is_file() else ""


def sanitizer(job):
    yield "## compute-sanitizer on the tests of our own kernels\n\n"
    known = job.data["sanitizer"]
    if not known or known["refused"]:
        yield known.get("refused", "It was not run.") + "\n\n"
        return
    kernels = known.get("kernels")
    looked = f"our kernels ({kernels}), not at those of cuBLASLt and cuDNN" if kernels else "all kernels"
    yield ("Of the tests of operations, devices and tensors; those of networks and training call the same kernels. The tool "
           f"looked at {looked}, and found an error that was made on purpose.\n\n"
           "| program | memcheck | racecheck |\n|---|---|---|\n")
    for program, checks in sorted(known["verdicts"].items()):
        yield f"| {program} | " + " | ".join(checks.get(check, ["not run yet"])[0] for check in CHECKS) + " |\n"
    if unchecked(known):
        yield (f"\nNot run, for want of time (`--sanitizer-minutes`, {known['spent'] // 60:.0f} so far of "
               f"{job.options.sanitizer_minutes} minutes): {', '.join(unchecked(known))}.\n")
    heavy = [f"{program}: {name}: {reason}" for program, cases in sorted(known["left_out"].items()) for name, reason in cases]
    yield f"\nCases left out:\n\n{bullets(heavy)}\n" if heavy else "\n"
    for log in sorted((job.folder / "sanitizer").glob("*check.log")):
        number, lines = findings(log)
        yield f"`{log.name}`:\n\n{fenced(lines)}" if number else ""


def write(job):
    """The report, in pieces."""
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    yield "# muster on a GPU\n\n| | |\n|---|---|\n"
    for name, value in (("date", date), ("revision", job.build.revision), *job.data["about"]):
        yield f"| {name} | {value} |\n" if value else ""
    lacking = bullets(missing(job))
    yield f"\nThis report is not whole. It lacks:\n\n{lacking}\n" if lacking else "\n"
    for part in (tests, benchmarks, profile, sanitizer):
        yield from part(job)
