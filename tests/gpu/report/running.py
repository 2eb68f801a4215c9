"""Programs that run within limits of time."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

TIMED_OUT, KILLED = 124, 137  # exit statuses of coreutils' timeout
MARGIN = 15  # seconds reserved at a call's end


class Stopped(Exception):
    """This call was ended from outside."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def ran_out(status):
    return status in (TIMED_OUT, KILLED)


def find_tool(name, *places):
    """CUDA's program of that name: in PATH, in the toolkit or in the other places given; None if it is in none of them."""
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    places = [shutil.which(name), f"{toolkit}/bin/{name}", *sorted(glob.glob(f"/usr/local/cuda-*/bin/{name}")), *places]
    return next((place for place in places if place and os.path.isfile(place) and os.access(place, os.X_OK)), None)


class Runner:
    """Runs programs, and knows how long this call may still last. Any thread may use it."""

    def __init__(self, seconds, began):
        self.environment = dict(os.environ)
        self.length = seconds or 1e6
        self.end = began + self.length
        self.children = set()
        self.stopping = None  # when stop() was called

    def left(self):
        return int(self.end - time.monotonic() - MARGIN)

    def fitting(self, limit):
        """A program's limit of seconds, shortened to what a whole call can give."""
        return int(min(limit, self.length - 60))

    def grant(self, limit):
        """The seconds for a program that may need `limit`; 0 if what is left of this call would be wasted on it."""
        seconds = min(limit, self.left())
        return seconds if seconds >= max(1, limit // 5) else 0

    def run(self, seconds, command, output, errors=subprocess.STDOUT, environment=None):
        """Runs a program for at most so many seconds, and returns its exit status as a shell gives it. `environment` comes on
        top of the others' for this program alone.

        A program that cannot even be killed, because it waits for a driver that hangs, is left behind. `timeout` keeps to
        the limit if this process is killed.
        """
        if self.stopping:
            raise Stopped
        child = subprocess.Popen(["timeout", "-k", "10", str(seconds), *map(str, command)], stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=errors, env={**self.environment, **(environment or {})})
        self.children.add(child)
        if self.stopping:  # set since the check above: stop() may have missed the child
            child.terminate()
        status, last = None, time.monotonic() + seconds + 30
        while status is None and time.monotonic() < (min(last, self.stopping + 20) if self.stopping else last):
            try:
                status = child.wait(timeout=1)
            except subprocess.TimeoutExpired:
                pass
        self.children.discard(child)
        if self.stopping:
            raise Stopped
        return KILLED if status is None else status if status >= 0 else 128 - status

    def ask(self, seconds, command):
        """Runs a program; returns its exit status and the texts that it printed and complained with."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            status = self.run(seconds, command, output, errors)
            return (status, *(os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace") for file in (output, errors)))

    def each(self, items, jobs, function, after):
        """Calls `function` with each item, so many at once, and `after` after each of them."""
        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(function, item) for item in items]):
                done.result()
                after()

    def stop(self, *_):
        """Ends what is running; every run() throws Stopped from now on. May be a signal's handler."""
        self.stopping = self.stopping or time.monotonic()
        for child in tuple(self.children):
            child.terminate()
