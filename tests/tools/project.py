"""What the tools of ./run share: set-up and building, which `run` does, and messages."""
import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "run"
SKIPPED = 77

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a tool at once


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def fail(message, status=1):
    say(f"run: {message}")
    sys.exit(status)


def check(command, **options):
    """Runs a command that explains its failures itself, and ends this program if it fails."""
    status = subprocess.run([str(word) for word in command], **options).returncode
    if status:
        sys.exit(status if status > 0 else 128 - status)


def build(preset, *arguments):
    """Builds targets; `+SECTION` in front of them also installs that section of packages.txt, `-DNAME=VALUE` is CMake's.
    Returns the build directory."""
    check([RUN, "build", preset, *arguments])
    return ROOT / "build" / preset


def cores():
    return len(os.sched_getaffinity(0))


def fixed_addresses():
    """What a command with GCC's or Clang's sanitizers begins with: they cannot start if the kernel randomises addresses too
    widely."""
    command = ["setarch", "--addr-no-randomize"]
    try:
        works = subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        works = False
    return command if works else []


def number(text):
    """Reads an option's value: a whole number, at least 1."""
    if not re.fullmatch("[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError("wants a number, at least 1")
    return int(text)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence: `run: --minutes wants a number, at least 1`."""

    def __init__(self, name, description):
        super().__init__(prog=f"./run {name}", description=description, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.name = name

    def error(self, message):
        message = re.sub("^argument ([^ ]+): ", r"\1 ", message).replace("expected one argument", "wants a number, at least 1")
        fail(message if message.startswith("-") else f"{self.name}: {message}")

    def parse(self, arguments=None):
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            fail(f"{self.name}: there is no option {unknown[0]}; ./run help says what there is")
        return options
