"""The part "tests": all cases for a GPU, in as many runs of a program as its crashes take."""
import xml.etree.ElementTree as ElementTree

from cases import GPU_CASES, Case, conclude, read_run
from running import ran_out, say

DEVICE_LOST = b"cannot use the device any more"  # core/backend/cuda/check.cpp


def flat(program):
    return program.replace("/", "__")


def command(job, program, events):
    """Runs the program's cases that this call asks for, which doctest writes down in the file `events`."""
    text = job.options.filter.replace(",", "\\,")
    asked = GPU_CASES if job.options.filter in f"tests/{program}" else f"*{text}*"
    return [job.build.tests / program, f"--test-case={asked}", "--reporters=xml", f"--out={events}", "--duration=true",
            "--no-skipped-summary"]


def find_programs(job):
    """The test programs with cases for a GPU and the numbers of those, and which of them --filter names."""
    if job.found:
        return job.found
    known, asked = job.found = {}, []
    for program in job.build.programs():
        listing = [job.build.tests / program, "--list-test-cases", "--reporters=xml", f"--test-case={GPU_CASES}"]
        try:
            names = [case.get("name") for case in ElementTree.fromstring(job.runner.ask(60, listing)[1]).iter("TestCase")]
        except ElementTree.ParseError:
            names = ["unknown"]  # a program that cannot even list its cases fails in the report
        if names:
            known[program] = len(names)
            if any(job.options.filter.lower() in name.lower() for name in (f"tests/{program}", *names)):
                asked.append(program)
    return known, asked


def run_program(job, program):
    """Runs a program's cases; those that a call before this one is done with only where --filter names them again."""
    limit = job.runner.fitting(job.options.time_limit)
    base = job.folder / "tests" / flat(program)
    events, log = base.with_suffix(".xml"), base.with_suffix(".log")
    done = [] if job.options.filter else [Case(*case) for case in job.data["tests"].get(program, [])]

    def first():
        return 1 + sum(not case.name.startswith("(") for case in done)

    def advance(status, lost):
        run = read_run(events)
        cases, more = conclude(run, status, limit, lost)
        if run.first == first() or not run.first and status is not None:  # otherwise already counted
            done.extend(cases)
            names = {case.name for case in done}
            with job.change() as data:
                data["stamps"][program] = job.program_stamp(program)
                kept = [case for case in data["tests"].get(program, []) if case[0] not in names and case[0][0] != "("]
                data["tests"][program] = done + (kept if job.options.filter else [])
        events.unlink(missing_ok=True)
        return more

    if not job.options.filter:
        advance(None, False)  # the cases of a run that was killed from outside
    more, cut = True, False
    while more and not cut:
        seconds = job.runner.grant(limit)
        if not seconds:
            return
        with open(log, "wb" if first() == 1 else "ab") as output:
            start = output.tell()
            status = job.runner.run(seconds, [*command(job, program, events), f"--first={first()}"], output)
        cut = ran_out(status) and seconds < limit
        said = log.read_bytes()[start:] + (events.read_bytes() if events.exists() else b"")
        more = advance(None if cut else status, DEVICE_LOST in said)
    outcomes = [Case(*case).outcome for case in job.data["tests"][program]]
    say(f"{program}: {', '.join(f'{outcomes.count(outcome)} {outcome}' for outcome in ('passed', 'skipped', 'failed'))}")


def run(job):
    known, asked = find_programs(job)
    with job.change() as data:
        data["known"] = known
        due = [program for program in asked if job.options.filter or len(data["tests"].get(program, [])) < known[program]]
    due.sort(key=lambda program: program not in job.data["tests"])  # unfinished programs first
    if due:
        say(f"Running the GPU's tests of {len(due)} programs ...")
        job.begun = True
        job.each(due, lambda program: run_program(job, program))
