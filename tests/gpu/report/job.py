"""What the parts of a call share: its options, the build, the machine, and the results so far."""
import contextlib
import json
import os
import re
import shlex
import shutil
import tarfile
import tempfile
import threading
from pathlib import Path

from build import is_executable
from measurements import MEASURED
from running import find_tool, say

# All results, in one JSON file.
EMPTY = {
    "device": "",      # the kind of GPU
    "stamps": {},      # test program -> Build.stamp of the one that gave its results, also under compute-sanitizer
    "about": [],       # [name, value] of the machine
    "known": {},       # program -> number of its cases for a GPU; empty until they were listed
    "tests": {},       # program -> its finished cases
    "measured": {},    # part -> measurement -> [exit status, Build.stamp_of its command]
    "sanitizer": {},   # see sanitizer.py
}


class NoGpu(Exception):
    """No GPU can be used, with the reason."""


def write_whole(file, text):
    """Writes a file whole or not at all."""
    with open(f"{file}.new", "w", encoding="utf-8", errors="replace") as out:
        out.write(text)
    os.replace(f"{file}.new", file)


class Job:
    def __init__(self, options, build, runner, write):
        self.options, self.build, self.runner, self.write = options, build, runner, write
        self.out = Path(options.out)
        self.folder = results_folder(options.out).absolute()
        self.found = None  # the test programs, once listed
        self.begun = False  # whether this call has run something for the report
        self.lock = threading.RLock()  # guards data

    def open(self):
        """Looks at the GPU, and takes up the results so far of this kind of GPU, each if its program is still the same."""
        self.build.stamp(sorted(map(str, filter(is_executable, self.build.tests.rglob("*")))))
        self.build.read_libraries()  # programs, then CUDA's libraries, before any limit starts
        about = self.look_at_machine()
        device = "".join(value for name, value in about if name == "device")
        self.data = json.loads(json.dumps(EMPTY))
        if self.options.few_files:
            unpack_results(self.folder)
        with contextlib.suppress(OSError, ValueError):
            self.data.update(json.loads((self.folder / "results.json").read_text()))
        if self.folder.is_dir() and self.data["device"] != device:
            self.keep_before("the results so far are of another GPU")
            shutil.rmtree(self.folder)
            self.data = json.loads(json.dumps(EMPTY))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.drop_changed()
        with self.change() as data:
            data.update(device=device, about=about)

    def keep_before(self, why):
        """Copies the results aside."""
        before = Path(f"{self.folder}-before")
        say(f"gpu: {why}, and are in {before} now")
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(self.folder, before)

    def drop_changed(self):
        """Drops the results of programs that another build has changed."""
        programs = [program for program, stamp in self.data["stamps"].items() if stamp != self.program_stamp(program)]
        measured = [(part, one) for part, all_of in MEASURED.items() for one in all_of
                    if one.name in self.data["measured"].get(part, {}) and
                    self.data["measured"][part][one.name][1] != self.build.stamp_of(one.command(self, one.most))]
        if not programs and not measured:
            return
        self.keep_before("results of another build's programs are dropped: " +
                         ", ".join([*programs, *(f"{one.name} ({part})" for part, one in measured)]))
        for program in programs:
            for part in "stamps", "tests":
                self.data[part].pop(program, None)
            verdicts = self.data["sanitizer"].get("verdicts", {})
            for what in [what for what in verdicts if program_of(what) == program]:
                del verdicts[what]
        for part, one in measured:
            del self.data["measured"][part][one.name]

    def program_stamp(self, program):
        """Of a test program, "" where the build has none of this name."""
        file = self.build.tests / program
        return self.build.stamp([str(file)]) if file.is_file() else ""

    def look_at_machine(self):
        """Lines of name and value. A GPU that admits one process gets one test program at a time."""
        status, said, complaints = self.runner.ask(120, [self.build.bench / "device_speed", "--device", "cuda:0", "--about"])
        if status:
            last = complaints.strip().split("\n")[-1].replace("device_speed: ", "", 1)
            raise NoGpu(last or f"device_speed ended with status {status}")
        about = [line.split(": ", 1) for line in said.splitlines() if ": " in line]
        tool = find_tool("nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
        limits, modes = (self.runner.ask(60, [tool, f"--query-gpu={fields}", "--format=csv,noheader"])[1] if tool else ""
                         for fields in ("driver_version,power.limit,clocks.max.sm,clocks.max.memory", "compute_mode"))
        limits = re.split(", *", limits.split("\n")[0])
        if len(limits) == 4:
            about += [["driver", limits[0]], ["limits", "{1}, {2} (SM), {3} (memory)".format(*limits)]]
        if "exclusive" in modes.lower():
            self.options.jobs = 1
            about.append(["compute mode", "exclusive to one process, so test programs ran one at a time"])
        return about

    def python_command(self):
        """PyTorch's Python, with the libraries of this call's environment and not those of the build. What torch.compile has
        compiled is kept, so that later rounds and calls do not compile it again."""
        libraries = os.environ.get("LD_LIBRARY_PATH")
        cache = shlex.quote(f"{tempfile.gettempdir()}/{os.getuid()}-muster-torch")
        return (f"env {f'LD_LIBRARY_PATH={shlex.quote(libraries)}' if libraries else '-u LD_LIBRARY_PATH'} "
                f"TORCHINDUCTOR_CACHE_DIR={cache} TORCHINDUCTOR_FX_GRAPH_CACHE=1 TORCHINDUCTOR_AUTOGRAD_CACHE=1 "
                f"{self.options.python}")

    @contextlib.contextmanager
    def change(self):
        """Gives the results to be changed, by one thread at a time, and saves them."""
        with self.lock:
            yield self.data
            write_whole(self.folder / "results.json", json.dumps(self.data, indent=1))

    def write_report(self):
        with self.lock:
            write_whole(self.out, "".join(self.write(self)))

    def each(self, items, function):
        self.runner.each(items, self.options.jobs, function, self.write_report)

    def begin(self, part):
        """Deletes the part's results unless this call continues, or --filter takes some of its programs again."""
        if not self.options.seconds and not (self.options.filter and part in ("tests", "sanitizer")):
            shutil.rmtree(self.folder / part, ignore_errors=True)
            with self.change() as data:
                (data if part in data else data["measured"])[part] = {}
        (self.folder / part).mkdir(exist_ok=True)


STEP = "a step of the convnet"
ALL_KERNELS = " with the libraries' kernels"


def program_of(what):
    """The program below tests/ that runs what compute-sanitizer looks at."""
    return "bench/device_bits" if what == STEP else what.replace(ALL_KERNELS, "")


def archive_of(folder):
    return Path(f"{folder}.tar.gz")


def unpack_results(folder):
    """Takes up what `pack_results` has left, unless the folder is there."""
    archive = archive_of(folder)
    if archive.is_file() and not folder.is_dir():
        with contextlib.suppress(tarfile.TarError, EOFError, OSError), tarfile.open(archive) as packed:
            packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def pack_results(folder):
    """Leaves one file of the folder."""
    archive = archive_of(folder)
    with tarfile.open(f"{archive}.new", "w:gz") as packed:
        packed.add(folder, ".")
    os.replace(f"{archive}.new", archive)
    shutil.rmtree(folder, ignore_errors=True)


def results_folder(out):
    return Path(out[:-3] if out.endswith(".md") else f"{out}-logs")
