"""The command line."""
import argparse
import os
import re

PARTS = ("tests", "benchmarks", "profile", "sanitizer")
USAGE = """./run gpu [options]             in the sources: builds first, unless --build is given
       python3 gpu_report [options]    in a packed build or a build directory"""
EPILOG = """
Where a command may take ten minutes, `--minutes 9` is enough, called about five times. The pieces by hand, with what an
H100 may need for each (estimates: they were never timed on one), and with --filter the tests in smaller ones:
  --only tests                    7 minutes   all cases for a GPU (--filter core/ops: 4, core/nn: 1, parallel: 1)
  --only benchmarks              15 minutes   merges and launches 1, convolutions 1, MNIST convnet beside PyTorch 7,
                                              ResNet-18 6 (with --bench-rounds 2: 7 minutes)
  --only profile                  5 minutes   where the time of steps and merges goes, kernel by kernel
  --only sanitizer               20 minutes   memcheck and racecheck; the report names the programs left out

Exit status: 0 if the report is whole and nothing in it failed, 1 if something failed, 2 if the call was wrong, 3 if no GPU
can be used (then nothing is written), 4 if the report is not whole yet. A failure of Nsight Compute does not count, for
many machines do not let it look at kernels; the report has its words.
"""


class Refused(Exception):
    """A call that cannot be done, with the reason in one sentence."""


def reader(wants, accepts, convert=str):
    """Reads an option's value if it is not empty and `accepts` it."""
    def read(given):
        if not given or not accepts(given):
            raise argparse.ArgumentTypeError(f"wants {wants}, got {given}" if given else "wants a value")
        return convert(given)
    return read


def number_from(least):
    return reader(f"a number from {least} on", lambda given: re.fullmatch("[1-9][0-9]*", given) and int(given) >= least, int)


TEXT = reader("a value", len)
FILE = reader("a file, not a folder", lambda given: not os.path.isdir(given))
SECONDS = reader("a number above 0", lambda given: re.fullmatch(r"[0-9]*\.?[0-9]+", given) and float(given) > 0)
PART_LIST = reader(f"some of {', '.join(PARTS)}, with commas between them", lambda given: {*given.split(",")} <= {*PARTS},
                   lambda given: given.split(","))
OPTIONS = (
    ("--build", "DIR|FILE", TEXT, None, "a build directory, or a packed one [./run gpu: build/cuda; else where gpu_report is]"),
    ("--out", "FILE", FILE, "gpu-report.md", "the report; results and logs go into a folder of its name beside it "
     "[./run gpu: build/gpu-report.md in the sources; else gpu-report.md]"),
    ("--minutes", "N", number_from(2), None, "continue where the last call with this build and GPU stopped, and begin nothing "
     "that may not end within N minutes: call it until it says that the report is whole, elsewhere, too, if you take the "
     "results' folder along [all, anew]"),
    ("--only", "PART,...", PART_LIST, PARTS, f"{', '.join(PARTS)}; the report keeps the others' last results [all]"),
    ("--filter", "TEXT", TEXT, None, "run only test programs or cases with TEXT in their names, also again; the report keeps "
     "the others' results"),
    ("--jobs", "N", number_from(1), 4, "test programs at once; one if the GPU admits only one process [4]"),
    ("--time-limit", "S", number_from(1), 300, "seconds that a test program may run without an end [300]"),
    ("--sanitizer-limit", "S", number_from(1), 180, "the same under compute-sanitizer [180]"),
    ("--sanitizer-minutes", "N", number_from(1), 20, "that compute-sanitizer gets in all [20]"),
    ("--bench-seconds", "S", SECONDS, "2", "of each measurement [2]"),
    ("--bench-rounds", "N", number_from(1), 5, "measurements of each kind [5]"),
    ("--python", "PROGRAM", TEXT, "python3", "runs PyTorch, to compare with [python3]"))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(re.sub("^argument ([^ ]+): ", r"\1 ", message).replace("expected one argument", "wants a value"))


def parse(arguments):
    """The options of a call. Throws Refused where it is wrong."""
    parser = Parser(usage=USAGE, epilog=EPILOG, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only print the test programs of the build; needs no GPU")
    parser.add_argument("--check", action="store_true", help="only look whether the call is right; needs no build, no GPU")
    for name, value, read, default, text in OPTIONS:
        parser.add_argument(name, metavar=value, type=read, default=default, help=text)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise Refused(f"there is no option {unknown[0]}; --help lists them")
    options.filter = options.filter or ""
    return options
