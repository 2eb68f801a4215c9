"""Test cases of a program, as doctest's XML reporter tells of them."""
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple, Optional

GPU_CASES = "*gpu*,*cuda*,*pinned*"  # "<gpu>" of templates, and names with CUDA or pinned memory
SKIPPED = "skipped: "  # prefix of the message of a skipped case (tests/support/skip.h)


class Case(NamedTuple):
    name: str
    outcome: str  # passed, failed or skipped
    seconds: float = 0
    reason: str = ""
    words: str = ""  # doctest's message about a failure


class Run(NamedTuple):
    """What is known of a run of a program, which may be under way or have been killed."""
    first: int = 0  # number of its first case, from 1
    cases: tuple = ()  # finished cases in order
    running: Optional[str] = None
    finished: bool = False  # all cases were run
    crashed: bool = False  # doctest reported a crash in the last case, which it also does on SIGTERM


def lines(element):
    return [line.strip() for line in "\n".join(element.itertext()).splitlines() if line.strip()]


def read_case(element):
    result = element.find("OverallResultsAsserts")
    name, seconds = element.get("name"), float(result.get("duration", 0))
    if result.get("test_case_success") == "true":
        reasons = [line[len(SKIPPED):] for line in lines(element) if line.startswith(SKIPPED)]
        return Case(name, "skipped" if reasons else "passed", seconds, *reasons[:1])
    words = [f"{part.get('filename', '')}:{part.get('line', '')}: {'; '.join(lines(part))}" for part in element.iter()
             if part.tag in ("Expression", "Message") or part.tag == "Exception" and part in element]
    return Case(name, "failed", seconds, words="\n".join(words))


def read_run(file):
    """Reads as much of the XML as is there; doctest flushes it at the beginning and the end of each case."""
    run = Run()
    parser = ElementTree.XMLPullParser(["start", "end"])
    try:
        parser.feed(file.read_bytes())
        for event, element in parser.read_events():
            if event == "start" and element.tag == "Options":
                run = run._replace(first=max(1, int(element.get("first"))))
            elif event == "start" and element.tag == "TestCase":
                run = run._replace(running=element.get("name"))
            elif element.tag == "TestCase":
                crashed = any(part.get("crash") == "true" for part in element.iter("Exception"))
                run = run._replace(cases=(*run.cases, read_case(element)), running=None, crashed=crashed)
            elif event == "end" and element.tag == "doctest":
                run = run._replace(finished=not run.crashed)
    except (OSError, ElementTree.ParseError):
        pass  # no file, or a line cut by a crash
    return run


def describe(status, limit):
    late = f"did not end within {limit} s"
    return {124: late, 137: f"was killed, or {late}"}.get(
        status, f"crashed (signal {status - 128})" if status > 128 else f"ended with status {status}")


def conclude(run, status, limit, lost):
    """The cases that are done with after a run that ended with `status`, and whether others are left to be run.

    A case that crashes or hangs prevents those after it from running, and so does one after which the GPU cannot be used
    (`lost`). A `status` of None: the run was ended before its limit, so the case that was running is to be run again.
    """
    cases = list(run.cases)
    failed = [number for number, case in enumerate(cases, 1) if case.outcome == "failed"]
    if status is None:
        return cases[:-1] if run.crashed else cases, True
    if lost and failed:
        return cases[:failed[0]], True  # later failures follow from the first
    if run.finished and status in (0, 1, 77):
        return cases, False
    how = describe(status, limit)
    if run.running:
        cases.append(Case(run.running, "failed", reason=how))
    elif failed and failed[-1] == len(cases):
        cases[-1] = cases[-1]._replace(reason=how)
    else:
        cases.append(Case(f"(the {'end' if cases else 'start'} of the program)", "failed", reason=how))
        return cases, len(cases) > 1 and not run.finished
    return cases, not run.finished
