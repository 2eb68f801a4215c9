"""A call of the report, from its command line to its exit status."""
import signal
import time
from pathlib import Path

import gpu_tests
import measurements
import page
import sanitizer
from build import Build
from job import Job, NoGpu, pack_results, write_whole
from options import PARTS, QUICK, Refused, parse
from running import Runner, Stopped, say

OWN_WAY = {"tests": gpu_tests.run, "sanitizer": sanitizer.run}  # all other parts are measurements


def list_programs(job):
    asked = gpu_tests.find_programs(job)[1]
    if not asked:
        named = f" with {job.options.filter} in their names" if job.options.filter else ""
        raise Refused(f"{job.build.given} has no tests for a GPU{named}")
    print(*(f"tests/{program}" for program in asked), sep="\n")
    return 0


def tell_why(job, error):
    """Says that no GPU can be used, and keeps what may tell why: the machine, and the libraries with their versions."""
    text = f"gpu: no GPU can be used here: {error}\n"
    said = job.runner.ask(90, measurements.about(job, 90))[1].rstrip()
    text += "\n".join([said, "", *job.build.tell_versions(job.runner)]) + "\n"
    file = Path(f"{job.folder}-no-gpu.txt")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    say(f"{text}gpu: this is in {file}, too; no report was written")


def run_parts(job):
    for part in (QUICK, *PARTS):
        if part in job.options.only:
            job.begin(part)
            OWN_WAY.get(part, lambda job, part=part: measurements.run(job, part))(job)
            job.write_report()
    say(f"The report is {job.out}.")
    lacking = list(page.missing(job))
    if lacking:
        say(f"It is not complete yet: it lacks {', '.join(lacking)}.")
    return 1 if list(page.failures(job.data)) else 4 if lacking else 0


def call(arguments, began):
    options = parse(arguments)
    given = Path(options.build or Path(__file__).resolve().parent.parent)
    if options.build or not options.check:
        Build.check(given)
    if options.check:
        return 0
    build = Build(given)
    runner = Runner(options.seconds, began)
    build.set_environment(runner, options.python)
    job = Job(options, build, runner, page.write)
    if options.list:
        return list_programs(job)
    try:
        job.open()
    except NoGpu as error:
        tell_why(job, error)
        build.discard()
        return 3
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, runner.stop)
    try:
        return run_parts(job)
    except Stopped:
        job.write_report()
        say(f"gpu: ended before the report was whole: {job.out}")
        return 143
    finally:
        if options.few_files:
            pack_results(job.folder)


def main(arguments, began=None):
    """Does what the command line asks for; `began` is when, by time.monotonic(). Returns the exit status."""
    try:
        return call(arguments, began or time.monotonic())
    except Refused as error:
        say(f"gpu: {error}")
        return 2
