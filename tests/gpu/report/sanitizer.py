"""The part "sanitizer": tests of our own kernels, and a step of the convnet with the side stream, under compute-sanitizer's
checks; then convolutions and dense layers with the libraries' kernels, too.

Its results: "chosen" programs; "verdicts", what was run -> check -> [text, whether it is clean]; "left_out", program -> cases
with reasons; "kernels", the option that names ours; "spent" seconds; "refused", why the tool was not asked further.
"""
import os
import re
import time

from cases import Case, read_run
from gpu_tests import command, find_programs, flat
from job import ALL_KERNELS, STEP, program_of
from running import find_tool, ran_out, say

NOT_FOUND = "compute-sanitizer was not found on this machine (it comes with CUDA's toolkit)."
MISSED = "does not find an error on this machine that was made on purpose"
CHECKS = ("memcheck", "racecheck", "synccheck", "initcheck")
FINDING = re.compile(r"=+ +(Invalid|Misaligned|Uninitialized|Barrier error|Divergent|Error:|Warning:|.*hazard (detected|reported|at))")
UNFILTERED = ("core/ops/conv2d_test", "core/ops/dense_test")
MOST_AT_ONCE = 4  # each takes GPU memory in addition to the program's
OUR_KERNELS = ("core/ops/", "core/device/", "core/tensor/")  # tests of operations, copies and layouts


def read_lines(log):
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []


def findings(log):
    """How many findings a log of the tool has, and the first lines of them."""
    lines = read_lines(log)
    found = [number for number, line in enumerate(lines) if FINDING.match(line)]
    shown = sorted({number for start in found for number in range(start, min(start + 5, len(lines)))})
    return len(found), [lines[number][:200] for number in shown[:15]]


def left_out(cases):
    """Cases that the tool shall not run, with the reasons: it makes what takes seconds take minutes, and what hangs hang."""
    for case in (Case(*case) for case in cases):
        if case.outcome == "passed" and case.seconds > 3:
            yield case.name, f"took {case.seconds:.2f} s without the tool"
        elif case.outcome == "failed" and case.reason:
            yield case.name, f"{case.reason} without the tool"


def last_words(log):
    """The last thing that the tool itself says in a log."""
    return "".join([line for line in read_lines(log) if line.startswith("=")][-1:]).strip("= ").replace("|", " ")


def read_verdict(log, status, seconds, run):
    """What a log of the tool says of a run, in a few words, and whether nothing was found.

    @param run  what doctest says of the program; None if that is no test.
    """
    summaries = re.findall("(?:ERROR|RACECHECK) SUMMARY: (.*)", "\n".join(read_lines(log)))
    if ran_out(status):
        found, last = findings(log)[0], (run.running or "".join(case.name for case in run.cases[-1:])) if run else ""
        where = f', in "{last}"' if last else ""
        return f"did not end within {seconds} s{where}; {found} findings until then", not found
    if summaries and not run:
        ended = f", and the program ended with status {status}" if status else ""
        return f"{summaries[-1]}{ended}", not status and bool(re.match("0 (errors|hazards)", summaries[-1]))
    if summaries:
        ended = sum(case.outcome != "skipped" for case in run.cases)
        return f"{summaries[-1]} in {ended} cases", bool(re.match("0 (errors|hazards)", summaries[-1]))
    return f"the tool gave no result (status {status}): {last_words(log)}", False


class Sanitizer:
    def __init__(self, job, tool):
        self.job, self.tool = job, tool
        self.folder = job.folder / "sanitizer"
        self.began = time.monotonic() - job.data["sanitizer"]["spent"]
        self.limit = job.runner.fitting(job.options.sanitizer_limit)
        self.only = []  # options that select kernels

    def spent(self):
        return time.monotonic() - self.began

    def grant(self):
        return self.spent() < 60 * self.job.options.sanitizer_minutes and self.job.runner.grant(self.limit)

    def check(self, seconds, check, log, program, every_kernel=False):
        # Our own checks find failing API calls, and libraries make such calls on purpose.
        options = ["--report-api-errors", "no"] if check == "memcheck" else []
        options += [] if every_kernel else self.only
        with open(log, "wb") as output:
            return self.job.runner.run(seconds, [self.tool, "--tool", check, *options, *program], output)

    def choose_kernels(self):
        """Makes the tool look at our kernels alone, for those of cuBLASLt and cuDNN would take most of the time, and sees by an
        error made on purpose that it still looks at ours. Returns why it is of no use, or ""."""
        speed = [self.job.build.bench / "device_speed", "--device", "cuda:0"]
        probe, planted = self.folder / "probe.log", self.folder / "planted.log"
        missed = False
        for option in ("--kernel-name", "--kernel-regex", None):
            self.only = [option, "kns=muster"] if option else []
            status = self.check(120, "memcheck", probe, [*speed, "--probe"])
            if "ERROR SUMMARY: 0 errors" in "\n".join(read_lines(probe)):
                self.check(120, "memcheck", planted, [*speed, "--planted-error"])
                if re.search("ERROR SUMMARY: [1-9]", "\n".join(read_lines(planted))):
                    return ""
                missed = True
        if missed:
            return f"compute-sanitizer {MISSED}, so it was not asked further: {last_words(planted)}"
        return f"compute-sanitizer does not work on this machine (status {status}): {last_words(probe)}"

    def look(self, task):
        """Runs a task: (what, check)."""
        what, check = task
        program, every_kernel = what.replace(ALL_KERNELS, ""), what.endswith(ALL_KERNELS)
        seconds = self.grant()
        if not seconds:
            return
        excluded = list(left_out(self.job.data["tests"].get(program, [])))
        names = ",".join(name.replace(",", "\\,") for name, _ in excluded)
        log, events = (self.folder / f"{flat(what).replace(' ', '_')}.{check}.{kind}" for kind in ("log", "xml"))
        called = ([self.job.build.bench / "device_bits", "--device", "cuda:0", "--step", "--batch", 32] if what == STEP else
                  command(self.job, program, events) + ([f"--test-case-exclude={names}"] if names else []))
        status = self.check(seconds, check, log, called, every_kernel)
        if ran_out(status) and seconds < self.limit:
            return
        text, clean = read_verdict(log, status, self.limit, None if what == STEP else read_run(events))
        events.unlink(missing_ok=True)
        with self.job.change() as data:
            data["stamps"][program_of(what)] = self.job.program_stamp(program_of(what))
            if excluded:
                data["sanitizer"]["left_out"][program] = excluded
            data["sanitizer"]["verdicts"].setdefault(what, {})[check] = [text, clean]
            data["sanitizer"]["spent"] = self.spent()
        say(f"compute-sanitizer, {what}, {check}: {text}")


def tasks(chosen):
    """What is to be looked at by which check, in the order of value: those that find most come first."""
    for check in CHECKS[:2]:
        yield from ((program, check) for program in chosen)
        if check == "memcheck":
            yield from ((STEP, each) for each in CHECKS)
            yield from ((program + ALL_KERNELS, check) for program in UNFILTERED if program in chosen)
    for check in CHECKS[2:]:
        yield from ((program, check) for program in chosen)


def unchecked(known):
    """The tasks that are not done."""
    return [(what, check) for what, check in tasks(known["chosen"]) if check not in known["verdicts"].get(what, {})]


def run(job):
    asked = [program for program in find_programs(job)[1] if program.startswith(OUR_KERNELS)]
    with job.change() as data:
        known = {"chosen": [], "verdicts": {}, "left_out": {}, "spent": 0, "refused": "", **data["sanitizer"]}
        data["sanitizer"] = known
        known["chosen"] = sorted({*known["chosen"], *asked})
        if job.options.filter:
            known["refused"] = ""
            known["verdicts"] = {what: checks for what, checks in known["verdicts"].items()
                                 if what.replace(ALL_KERNELS, "") not in asked}
    due = [task for task in unchecked(known) if task[0].replace(ALL_KERNELS, "") in asked or task[0] == STEP]
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    sanitizer = Sanitizer(job, find_tool("compute-sanitizer", f"{toolkit}/compute-sanitizer/compute-sanitizer"))
    if not due or not asked or known["refused"] or not sanitizer.grant():
        return
    say(f"Running compute-sanitizer, {len(due)} checks ...")
    refused = sanitizer.choose_kernels() if sanitizer.tool else NOT_FOUND
    with job.change():
        known.update({"refused": refused, "kernels": " ".join(sanitizer.only)})
    if not refused:
        job.runner.each(due, min(MOST_AT_ONCE, job.options.jobs), sanitizer.look, job.write_report)
    with job.change():
        known["spent"] = sanitizer.spent()
