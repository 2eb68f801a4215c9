"""What the tables say at a glance: which goals were missed and by how much, and what to try next."""
import re
from typing import NamedTuple

from measurements import MEASURED, SWITCHES, file_name
from options import QUICK

GOAL = re.compile(r"^(?P<what>.*?):? +goal (?P<goal>[0-9.]+) (?P<unit>x|%)[^,]*, measured (?:at least )?"
                  r"(?P<got>[0-9.]+) (?:x|%): (?P<verdict>reached|missed)$")
SPEED = re.compile(r": ([0-9]+) samples/s")
WORTH = 1.03  # smallest speed-up of a switch that is reported


class Goal(NamedTuple):
    what: str
    goal: float
    got: float
    unit: str
    reached: bool

    def __str__(self):
        words = "reached" if self.reached else f"{100 * (1 - self.got / self.goal):.0f} % short of it"
        return f"{self.what}: {self.got:g} {self.unit}, goal {self.goal:g} {self.unit}: {words}"


def read_goals(lines):
    for line in lines:
        found = GOAL.match(line)
        if found:
            yield Goal(found["what"].strip(), float(found["goal"]), float(found["got"]), found["unit"], found["verdict"] == "reached")


def lines_of(job, part, name):
    table = job.folder / part / f"{file_name(name)}.txt"
    return table.read_text(encoding="utf-8", errors="replace").splitlines() if table.is_file() else []


def every_line(job):
    for part, measurements in MEASURED.items():
        for one in measurements:
            yield from lines_of(job, part, one.name)


def goals(job):
    return list(dict.fromkeys(read_goals(every_line(job))))


def speeds(job, part):
    """Samples per second of each arm that the part has measured, by its name."""
    found = {one.name: SPEED.search("\n".join(lines_of(job, part, one.name)[:1])) for one in MEASURED[part]}
    return {name: int(speed[1]) for name, speed in found.items() if speed}


def worth_switching(job):
    """The switches with which one worker is faster, as [name, how many times]."""
    measured = {**speeds(job, QUICK), **speeds(job, "arms")}
    plain = measured.get("1 worker")
    for name in SWITCHES:
        with_it = measured.get(f"1 worker, {name}")
        if plain and with_it and with_it > WORTH * plain:
            yield name, with_it / plain


def to_try(job):
    """In the order of the parts, each once."""
    said = [line[len("try: "):] for line in every_line(job) if line.startswith("try: ")]
    said += [f"{name}: one worker of the convnet is {times:.2f} times as fast "
             f"({' '.join(f'{key}={value}' for key, value in SWITCHES[name].items())})" for name, times in worth_switching(job)]
    return list(dict.fromkeys(said))
