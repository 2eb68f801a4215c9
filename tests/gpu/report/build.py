"""A build that brings tests and benchmarks: a directory, or a packed one."""
import contextlib
import glob
import os
import shutil
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

from options import Refused

FIND_WHEELS = """
import glob, importlib.util
spec = importlib.util.find_spec("nvidia")
for place in (spec.submodule_search_locations if spec else []):
    print(*sorted(glob.glob(place + "/*/lib")), sep="\\n")
"""

# Prints the version that a library reports when loaded.
ASK_VERSION = """
import ctypes, sys
library, version = ctypes.CDLL(sys.argv[1]), ctypes.c_uint32()
if hasattr(library, "cuDriverGetVersion"):
    library.cuDriverGetVersion(ctypes.byref(version))
elif hasattr(library, "cuptiGetVersion"):
    library.cuptiGetVersion(ctypes.byref(version))
else:
    says = getattr(library, "cudnnGetVersion", None) or library.cublasLtGetVersion
    says.restype = ctypes.c_size_t
    version.value = says()
print(version.value)
"""

LIBRARIES = ("libcublasLt.so*", "libcudnn*.so*", "libnvrtc*.so*")  # loaded by our programs
TOLD_OF = ("libcublasLt.so*", "libcudnn.so*", "libcupti.so*", "libcuda.so*")  # listed if no GPU can be used
USUAL_PLACES = ("/usr/local/cuda*/lib64", "/usr/local/cuda*/extras/CUPTI/lib64", "/usr/lib/*-linux-gnu",
                "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib")


def place_to_unpack(packed):
    """Beside the packed file, or in TMPDIR where nothing can be made there; no results' folder is, which may be taken along."""
    beside = os.access(packed.parent, os.W_OK)
    name = f"{packed.name.split('.tar')[0]}-build"
    return packed.parent / name if beside else Path(tempfile.gettempdir()) / f"{os.getuid()}-{name}"


def is_executable(file):
    return file.is_file() and os.access(file, os.X_OK)


class Build:
    """The build `given`; a packed one is unpacked, unless an earlier call did that."""

    def __init__(self, given):
        self.given, self.folder, self.unpacked = given, place_to_unpack(given) if given.is_file() else given, False
        if given.is_file():
            stamp, content = self.folder / "packed", f"{given.stat().st_size} {given.stat().st_mtime_ns}"
            if not stamp.is_file() or stamp.read_text() != content:
                self.unpack()
                stamp.write_text(content)
        if not is_executable(self.folder / "tests/bench/device_speed"):
            self.discard()
            raise Refused(f"{given} is no build of muster with its tests; build/release, for example, is one after ./run test")
        self.folder = self.folder.resolve()
        self.tests = self.folder / "tests"
        self.bench = self.tests / "bench"
        revision = self.folder / "revision"
        self.revision = revision.read_text().strip() if revision.is_file() else ""
        self.stamps = {}  # file -> checksum

    @staticmethod
    def check(given):
        """Throws Refused where this is no build, as far as can be seen without unpacking it."""
        if not given.is_file():
            Build(given)
        elif not tarfile.is_tarfile(given):
            raise Refused(f"{given} is no packed build")

    def unpack(self):
        self.unpacked = True
        try:
            self.discard()
            self.folder.mkdir(parents=True)
            with tarfile.open(self.given) as packed:
                packed.extractall(self.folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        except (tarfile.TarError, EOFError, OSError) as error:
            self.discard()
            raise Refused(f"{self.given} cannot be unpacked: {error}") from None

    def discard(self):
        """Deletes what this call has unpacked."""
        if self.unpacked:
            shutil.rmtree(self.folder, ignore_errors=True)

    def programs(self):
        """The test programs, named by their places below tests/."""
        return sorted(str(file.relative_to(self.tests)) for file in self.tests.rglob("*_test") if is_executable(file))

    def stamp(self, files):
        """Identifies the contents of files of this build; results of programs are kept as long as they are the same."""
        for file in files:
            if file not in self.stamps:
                self.stamps[file] = zlib.crc32(Path(file).read_bytes())
        return f"{zlib.crc32(str([self.stamps[file] for file in files]).encode()):08x}"

    def stamp_of(self, command):
        """The same of a command's files."""
        words = map(str, command or [])
        return self.stamp([word for word in words if word.startswith(f"{self.folder}/") and os.path.isfile(word)])

    def set_environment(self, runner, python):
        """Names to our programs the libraries that a packed build brings, and those in this Python's wheels, which cuDNN looks
        for by itself (NVRTC). The thread count is muster's to choose."""
        wheels = runner.ask(60, [python, "-c", FIND_WHEELS])[1].split("\n")
        brought = str(self.folder / "lib") if (self.folder / "lib").is_dir() else ""
        folders = [folder for folder in (brought, runner.environment.pop("LD_LIBRARY_PATH", ""), *wheels) if folder]
        runner.environment.update({"LD_LIBRARY_PATH": ":".join(folders)} if folders else {})
        for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_PROC_BIND"):
            runner.environment.pop(name, None)
        self.library_folders = [*folders, *(folder for place in USUAL_PLACES for folder in glob.glob(place))]

    def find_libraries(self, names):
        return sorted({os.path.realpath(file) for folder in self.library_folders for name in names
                       for file in glob.glob(f"{glob.escape(folder)}/{name}")})

    def read_libraries(self):
        """Brings CUDA's libraries, some gigabytes, into memory: from a slow disk, that may take longer than the first program
        that loads them may run."""
        for file in self.find_libraries(LIBRARIES):
            with contextlib.suppress(OSError), open(file, "rb", buffering=0) as content:
                while content.read(1 << 24):
                    pass

    def tell_versions(self, runner):
        """Each library that could be meant, those of the driver, too, with its version, a line each."""
        for file in self.find_libraries(TOLD_OF):
            _, version, complaints = runner.ask(60, [sys.executable, "-c", ASK_VERSION, file])
            yield f"{file}: {version.strip() or complaints.strip().split(chr(10))[-1] or 'no answer'}"
