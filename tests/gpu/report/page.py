"""The report's text, from the results that are there."""
import time
from collections import Counter

import advice
import measurements
from cases import Case
from gpu_tests import flat
from measurements import MEASURED, file_name
from options import PARTS, QUICK
from sanitizer import CHECKS, MISSED, findings, read_lines, unchecked

MOST_LINES = 20  # of a list in the summary
TITLES = {
    QUICK: "0. In a quarter of an hour",
    "machine": "1. The machine",
    "contention": "2. Threads that launch graphs at once",
    "convolutions": "3. Convolutions by implementation and layout",
    "arms": "4. One and eight workers, and what each switch changes",
    "tests": "5. Tests",
    "bits": "6. The same bits",
    "comparison": "7. Beside PyTorch",
    "traces": "8. Where the time goes: steps of the MNIST convnet, and merges",
    "sanitizer": "9. compute-sanitizer",
    "large": "10. Tensors of more than 2^31 elements",
}


def bullets(lines):
    return "".join(f"- {line}\n" for line in lines)


def fenced(lines):
    return "\n".join(["```", *lines, "```\n\n"])


def missing(job):
    """What is missing for the report to be whole."""
    data, known = job.data, job.data["sanitizer"]
    if list(job.options.only) == [QUICK]:
        yield from measurements.missing(data, [QUICK])
        return
    if not data["known"]:
        yield "the tests"
    lacking = [number - len(data["tests"].get(program, [])) for program, number in data["known"].items()]
    lacking = [number for number in lacking if number > 0]
    if lacking:
        yield f"{sum(lacking)} test cases of {len(lacking)} programs"
    yield from measurements.missing(data, PARTS)
    if not known:
        yield "compute-sanitizer"
    elif not known["refused"] and known["spent"] < 60 * job.options.sanitizer_minutes and unchecked(known):
        yield f"compute-sanitizer, {len(unchecked(known))} checks"


def failures(data):
    """What failed, a line each."""
    known = data["sanitizer"]
    cases = [(program, Case(*case)) for program, all_of in sorted(data["tests"].items()) for case in all_of]
    yield from (f"test {program}: {case.name}{case.reason and ', ' + case.reason}" for program, case in cases
                if case.outcome == "failed")
    yield from (f"{name} ({part}) ended with status {status}" for part, name, status in measurements.failed(data))
    yield from (f"compute-sanitizer, {what}, {check}: {text}" for what, checks in sorted(known.get("verdicts", {}).items())
                for check, (text, clean) in checks.items() if not clean)
    if MISSED in known.get("refused", ""):
        yield known["refused"]


def head(job):
    """What a reader wants to know first."""
    some = list(failures(job.data))
    yield "## At a glance\n\n### What failed\n\n" + (bullets(some[:MOST_LINES]) or "Nothing that was run.\n")
    yield f"- and {len(some) - MOST_LINES} more, below\n" if len(some) > MOST_LINES else ""
    goals = advice.goals(job)
    slow = sorted((goal for goal in goals if not goal.reached), key=lambda goal: goal.got / goal.goal)
    yield "\n### What is slower than its goal\n\n"
    yield bullets(slow) or ("Nothing that was measured.\n" if goals else "No goal was measured yet.\n")
    yield bullets(goal for goal in goals if goal.reached)
    yield "\n### What to try next\n\n" + (bullets(advice.to_try(job)[:MOST_LINES]) or "Nothing follows from what was measured.\n")
    yield "\n"


def tests(job):
    yield f"## {TITLES['tests']}\n\n"
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


def measured(job, part):
    yield f"## {TITLES[part]}\n\n"
    tables = [(one, job.folder / part / f"{file_name(one.name)}.txt") for one in MEASURED[part]]
    tables = [(one, table) for one, table in tables if table.is_file()]
    yield "" if tables else "It was not run.\n\n"
    if part in ("arms", QUICK):
        yield from switched(job, part)
    for one, table in tables:
        done = measurements.status_of(job.data, part, one) is not None
        yield f"### {one.name}\n\n" + ("" if done else "It was cut off; so far:\n\n")
        yield fenced(read_lines(table))
        warnings = {line: None for line in read_lines(table.with_suffix(".log")) if line.startswith("muster: warning: ")}
        yield f"{bullets(warnings)}\n" if warnings else ""


def switched(job, part):
    """One worker with each of the switches, beside it without."""
    speeds = advice.speeds(job, part)
    if "1 worker" not in speeds:
        return
    yield "| arm | samples/s | times one worker |\n|---|--:|--:|\n"
    for name, speed in speeds.items():
        yield f"| {name} | {speed} | {speed / speeds['1 worker']:.2f} |\n"
    yield "\n"


def sanitizer(job):
    yield f"## {TITLES['sanitizer']}\n\n"
    known = job.data["sanitizer"]
    if not known or known["refused"]:
        yield known.get("refused", "It was not run.") + "\n\n"
        return
    kernels = known.get("kernels")
    looked = f"our kernels ({kernels}), not at those of cuBLASLt and cuDNN" if kernels else "all kernels"
    yield ("Of the tests of operations, devices and tensors; those of networks and training call the same kernels. The tool "
           f"looked at {looked} where nothing else is said, and found an error that was made on purpose.\n\n"
           f"| | {' | '.join(CHECKS)} |\n|---|{'---|' * len(CHECKS)}\n")
    for what, checks in sorted(known["verdicts"].items()):
        yield f"| {what} | " + " | ".join(checks.get(check, [""])[0] for check in CHECKS) + " |\n"
    if unchecked(known):
        yield (f"\nNot run, for want of time (`--sanitizer-minutes`, {known['spent'] // 60:.0f} so far of "
               f"{job.options.sanitizer_minutes} minutes): " +
               ", ".join(f"{check} of {what}" for what, check in unchecked(known)) + ".\n")
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
    yield f"\nThis report is not complete. It lacks:\n\n{lacking}\n" if lacking else "\n"
    yield from head(job)
    own = {"tests": tests, "sanitizer": sanitizer}
    for part in (QUICK, *PARTS) if QUICK in job.data["measured"] else PARTS:
        yield from own[part](job) if part in own else measured(job, part)
