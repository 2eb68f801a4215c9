"""The command line."""
import argparse
import os
import re

# Ordered by information per second; `--only` also takes their numbers.
PARTS = ("machine", "contention", "convolutions", "arms", "tests", "bits", "comparison", "traces", "sanitizer", "large")
QUICK = "quick"  # the preset for a GPU that is there for minutes: a part of its own, not among all of them
USAGE = """./run gpu [options]             in the sources: builds first, unless --build is given
       python3 gpu_report [options]    in a packed build or a build directory"""
EPILOG = """
The parts, the most informative per second first, with the time that each may take on an H100 (estimates).
Each can be called by itself, by name or number. If a command may take only ten minutes, call `--minutes 9` about nine
times: each call continues where the last one stopped, also in the middle of a part.
   1 machine        10 s     the machine, its libraries and their versions
   2 contention      1 min   1, 2, 4 and 8 threads that launch graphs of 30 small kernels: straight, forked, with copies
   3 convolutions    2 min   by implementation and layout, in TF32 and in bfloat16
   4 arms            2 min   1 and 8 workers with the implementation of each layer, nodes of the graph, steps that were
                             launched, every warning; then one worker with each of the switches below
   5 tests           5 min   all cases for a GPU (--filter core/ops: 3, core/nn: 1, parallel: 1)
   6 bits            6 min   whether training gives the same bits whenever it runs, also with the implicit GEMM
   7 comparison     15 min   the convnet (7) and ResNet-18 (6) beside PyTorch, and the kernels of both
   8 traces          8 min   1, 2, 4 and 8 workers, kernel by kernel, and the idle time around merges; merges beside
                             copies; conflicts in shared memory of the implicit GEMM
   9 sanitizer      30 min   memcheck, racecheck, synccheck and initcheck; the report names the programs left out
  10 large           2 min   operations on tensors of more than 2^31 elements

   quick            11 min   instead of these, where a GPU is there for a quarter of an hour: is the implicit GEMM right,
                             how fast is it beside the others and PyTorch (--only quick --seconds 400), is it safe and
                             reproducible (the same again with --seconds 240). Stops if its tests fail.

Any program of muster takes these switches from its environment, for one call, to attribute time:
  MUSTER_CUDA_SIDE_STREAM=0              gradients of weights are computed in order with the others
  MUSTER_CUDA_GRAPHS=0                   steps are not recorded, but run call by call, which does not count as a failure
  MUSTER_CUDA_CONV2D=conv1=direct,...    the implementation by layer, or of all: auto, row-major, channels-last,
                                         padded, direct, implicit-gemm
  MUSTER_CUDA_MATH=fp32                  the math mode if the program sets none: fp32, tf32 or bf16

Exit status: 0 if the report is complete and nothing in it failed, 1 if something failed, 2 if the call was wrong, 3 if no
GPU can be used (then OUT-no-gpu.txt describes the machine and its libraries), 4 if the report is not complete yet. A failure
of Nsight Compute does not count, because many machines do not permit it to profile; the report quotes its message.
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
NUMBERED = {str(number): part for number, part in enumerate(PARTS, 1)}
PART_LIST = reader(f"some of {', '.join(PARTS)}, or of their numbers, with commas between them, or {QUICK}",
                   lambda given: {*given.split(",")} <= {*PARTS, *NUMBERED, QUICK},
                   lambda given: [NUMBERED.get(part, part) for part in given.split(",")])
OPTIONS = (
    ("--build", "DIR|FILE", TEXT, None, "a build directory, or a packed one [./run gpu: build/cuda; else where gpu_report is]"),
    ("--out", "FILE", FILE, "gpu-report.md", "the report; results and logs go into a folder of its name beside it "
     "[./run gpu: build/gpu-report.md in the sources; else gpu-report.md]"),
    ("--minutes", "N", number_from(2), None, "continue where the last call with this kind of GPU stopped, except for programs that "
     "another build has changed, and begin nothing that may not end within N minutes: repeat the call until it says that the report is complete, also on another machine "
     "with a copy of the results' folder [all parts, from the beginning]"),
    ("--seconds", "N", number_from(60), None, "the same in seconds, instead of --minutes"),
    ("--only", "PART,...", PART_LIST, PARTS, "parts by name or number; the report keeps the others' last results [all]"),
    ("--filter", "TEXT", TEXT, None, "run only test programs or cases with TEXT in their names, also again; the report keeps "
     "the others' results"),
    ("--jobs", "N", number_from(1), 8, "test programs at once; one if the GPU admits only one process [8]"),
    ("--time-limit", "S", number_from(1), 300, "seconds that a test program may run without an end [300]"),
    ("--sanitizer-limit", "S", number_from(1), 180, "the same under compute-sanitizer [180]"),
    ("--sanitizer-minutes", "N", number_from(1), 30, "that compute-sanitizer gets in all [30]"),
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
    parser.add_argument("--check", action="store_true", help="only check the options; needs no build, no GPU")
    parser.add_argument("--few-files", action="store_true",
                        help="leave the report and one archive of all results instead of the folder; a later call continues from it")
    for name, value, read, default, text in OPTIONS:
        parser.add_argument(name, metavar=value, type=read, default=default, help=text)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise Refused(f"there is no option {unknown[0]}; --help lists them")
    if options.minutes and options.seconds:
        raise Refused("give --minutes or --seconds, not both")
    options.seconds = options.seconds or (60 * options.minutes if options.minutes else None)
    options.filter = options.filter or ""
    return options
