"""The part "sanitizer": tests of our own kernels under compute-sanitizer's memcheck and racecheck.

Its results: "chosen" programs; "verdicts", program -> check -> [text, whether it is clean]; "left_out", program -> cases with
reasons; "kernels", the option that names ours; "spent" seconds; "refused", why the tool was not asked further.
"""
import os
import re
import time

from cases import Case, read_run
from gpu_tests import command, find_programs, flat
from job import find_tool
from running import ran_out, say

NOT_FOUND = "compute-sanitizer was not found on this machine (it comes with CUDA's toolkit)."
MISSED = "does not find an error on this machine that was made on purpose"
CHECKS = ("memcheck", "racecheck")
FINDING = re.compile(r"=+ +(Invalid|Misaligned|Error:|Warning:|.*hazard (detected|reported|at))")
OUR_KERNELS = ("core/ops/", "core/device/", "core/tensor/")  # the tests of operations, and of what moves numbers


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
    """What a log of the tool says of a run, in a few words, and whether nothing was found."""
    summaries = re.findall("(?:ERROR|RACECHECK) SUMMARY: (.*)", "\n".join(read_lines(log)))
    if ran_out(status):
        found, last = findings(log)[0], run.running or "".join(case.name for case in run.cases[-1:])
        return f'did not end within {seconds} s, in "{last}"; {found} findings until then', not found
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
        self.only = []  # options that choose kernels

    def spent(self):
        return time.monotonic() - self.began

    def grant(self):
        return self.spent() < 60 * self.job.options.sanitizer_minutes and self.job.runner.grant(self.limit)

    def check(self, seconds, check, log, program):
        # Calls that fail are our own checks' to find, and libraries make calls that do.
        options = ["--report-api-errors", "no"] if check == "memcheck" else []
        with open(log, "wb") as output:
            return self.job.runner.run(seconds, [self.tool, "--tool", check, *options, *self.only, *program], output)

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

    def run_program(self, program):
        excluded = list(left_out(self.job.data["tests"].get(program, [])))
        names = ",".join(name.replace(",", "\\,") for name, _ in excluded)
        for check in CHECKS:
            seconds = self.grant()
            if not seconds:
                return
            if check in self.job.data["sanitizer"]["verdicts"].get(program, {}):
                continue
            log, events = (self.folder / f"{flat(program)}.{check}.{kind}" for kind in ("log", "xml"))
            status = self.check(seconds, check, log, command(self.job, program, events) +
                                ([f"--test-case-exclude={names}"] if names else []))
            if ran_out(status) and seconds < self.limit:
                return
            text, clean = read_verdict(log, status, self.limit, read_run(events))
            events.unlink(missing_ok=True)
            with self.job.change() as data:
                data["sanitizer"]["left_out"][program] = excluded
                data["sanitizer"]["verdicts"].setdefault(program, {})[check] = [text, clean]
                data["sanitizer"]["spent"] = self.spent()
            say(f"compute-sanitizer, {program}, {check}: {text}")


def unchecked(known):
    """The chosen programs that the tool has not been through."""
    return [program for program in known["chosen"] if CHECKS[-1] not in known["verdicts"].get(program, {})]


def run(job):
    asked = [program for program in find_programs(job)[1] if program.startswith(OUR_KERNELS)]
    with job.change() as data:
        known = {"chosen": [], "verdicts": {}, "left_out": {}, "spent": 0, "refused": "", **data["sanitizer"]}
        data["sanitizer"] = known
        known["chosen"] = sorted({*known["chosen"], *asked})
        if job.options.filter:
            known["refused"] = ""
            known["verdicts"] = {program: checks for program, checks in known["verdicts"].items() if program not in asked}
    due = [program for program in unchecked(known) if program in asked]
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    sanitizer = Sanitizer(job, find_tool("compute-sanitizer", f"{toolkit}/compute-sanitizer/compute-sanitizer"))
    if not due or known["refused"] or not sanitizer.grant():
        return
    say(f"Running compute-sanitizer on {len(due)} programs ...")
    refused = sanitizer.choose_kernels() if sanitizer.tool else NOT_FOUND
    with job.change():
        known.update({"refused": refused, "kernels": " ".join(sanitizer.only)})
    if not refused:
        job.each(due, sanitizer.run_program)
    with job.change():
        known["spent"] = sanitizer.spent()
