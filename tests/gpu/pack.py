"""Makes and packs a directory for a machine with a GPU that cannot build: the test programs with cases for GPUs and the
benchmarks, the program muster with the run files of examples/, stripped, their shared libraries except the C library, and the
report; not what needs libtorch."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
HELP = """./run gpu pack DIR [--arch 90]
                    builds in build/cuda, with CUDA's compiler but without a GPU, and makes from that DIR and DIR.tar.xz
                    (DIR.tar.gz without xz), none of which may be there before, for a machine with a GPU that cannot
                    build. There, call python3 gpu_report in DIR, or ./run gpu --build with either. It also has the
                    program muster and run files: LD_LIBRARY_PATH=lib examples/muster train examples/FILE.json
                    --arch N: for GPUs of compute capability N alone (90: H100 and H200), which takes less room.

It ends with 0 where both were made, 1 where building or packing failed, 2 where it was called wrongly. Tests of libtorch
are left out. It warns of a packed file of more than 50 MiB: some machines that are lent take 64 MiB, and the tree of
sources goes with it."""
BENCHMARKS = ("device_bits", "device_convolutions", "device_large", "device_launches", "device_speed", "gpu_end_to_end")
C_LIBRARY = re.compile(r"/(libc|libm|libdl|librt|libpthread|libresolv|libanl|libutil)\.so")
MOST = 50 << 20  # bytes
# The oldest driver for the packed CUDA runtime; see NVIDIA's table in CUDA's release notes.
DRIVERS = {"12": "driver 525 (CUDA 12) or newer", "13": "driver 580 (CUDA 13) or newer"}


def refuse(message):
    print(f"pack: {message}", file=sys.stderr)
    sys.exit(2)


def output(*command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def read(arguments):
    """The directory to make, and the compute capability or ""."""
    names, arch = [], ""
    arguments = list(arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument == "--arch" or argument.startswith("--arch="):
            arch = argument[len("--arch="):] if "=" in argument else arguments.pop(0) if arguments else ""
            if not re.fullmatch("[1-9][0-9]+", arch):
                refuse("--arch wants a compute capability without its point, as 90; --help says more")
        else:
            names.append(argument)
    if len(names) != 1:
        refuse("expected the name of one directory to make; --help says more")
    if names[0].startswith("-"):
        refuse(f"there is no option {names[0]}; --help says more")
    return names[0].rstrip("/") or names[0][:1], arch


def check(name):
    """Refuses a directory that cannot be made."""
    if not name:
        refuse("the name of the directory to make is empty")
    for made in name, f"{name}.tar.xz", f"{name}.tar.gz":
        if os.path.lexists(made):
            refuse(f"{made} is there already")
    parent = os.path.dirname(name) or "."
    if not os.path.isdir(parent):
        refuse(f"there is no directory {parent} to make {os.path.basename(name)} in")
    if not os.access(parent, os.W_OK):
        refuse(f"nothing can be made in {parent}")


def programs_of(build):
    """What is packed, named by places in the build."""
    tests = output(sys.executable, HERE / "report", "--build", build, "--list").split()
    # libtorch is far larger than all else, and a machine with a GPU has another one, which the programs do not fit.
    tests = [program for program in tests if "libtorch" not in output("ldd", build / program)]
    return tests + [f"tests/bench/{name}" for name in BENCHMARKS] + ["examples/muster"]


def copy_programs(build, to, programs):
    for program in programs:
        (to / program).parent.mkdir(parents=True, exist_ok=True)
        output("install", "-s", build / program, to / program)
    shutil.copy(build / "tests/bench/torch_training.py", to / "tests/bench")
    shutil.copytree(HERE / "report", to / "gpu_report", ignore=shutil.ignore_patterns("__pycache__"))
    for file in EXAMPLES.glob("*.json"):
        shutil.copy(file, to / "examples")
    described = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    if described.returncode == 0:
        (to / "revision").write_text(described.stdout)


def copy_libraries(build, to, programs):
    """The C library and its parts come from the other machine and must be as new as this one's."""
    (to / "lib").mkdir()
    linked = output("ldd", *programs, cwd=build)
    for library in sorted(set(re.findall(r"=> (/\S+)", linked))):
        if not C_LIBRARY.search(library):
            shutil.copy(library, to / "lib")


def cuda_version(build):
    """The major version of CUDA's compiler; "" if it is unknown."""
    found = [re.search(r'^set\(CMAKE_CUDA_COMPILER_VERSION "([0-9]+)', file.read_text(), re.MULTILINE)
             for file in sorted(build.glob("CMakeFiles/*/CMakeCUDACompiler.cmake"))]
    return next((match[1] for match in reversed(found) if match), "")


def copy_cupti(build, to, cuda):
    """CUPTI, which traces kernels, is opened by name, so no program links it; the report adds lib/ to the loader's path."""
    cache = build / "CMakeCache.txt"
    place = re.search("^CUDA_cupti_LIBRARY:[A-Z]*=(.*)$", cache.read_text(), re.MULTILINE) if cache.is_file() else None
    if cuda and place and os.path.isfile(place[1]):
        shutil.copy(place[1], to / "lib" / f"libcupti.so.{cuda}")
    else:
        print("pack: CUPTI was not found, so kernels can be traced only where that machine has it", file=sys.stderr)


def pack(to):
    """Packs the directory beside it. The programs share muster and CUDA's runtime: only a large dictionary finds repetitions
    that are so far apart."""
    if not shutil.which("xz"):
        return Path(shutil.make_archive(str(to), "gztar", to))
    packed = Path(f"{to}.tar.xz")
    with open(packed, "wb") as out:
        tar = subprocess.Popen(["tar", "-C", to, "-cf", "-", "."], stdout=subprocess.PIPE)
        subprocess.run(["xz", "--threads=1", "--lzma2=preset=1,dict=192MiB"], stdin=tar.stdout, stdout=out, check=True)
        tar.stdout.close()
        if tar.wait():
            raise subprocess.CalledProcessError(tar.returncode, "tar")
    return packed


def mebibytes(*files):
    return -(-sum(file.stat().st_size for file in files) >> 20)


def make(build, to):
    """Makes the directory `to` and its archive from a build directory."""
    programs = programs_of(build)
    copy_programs(build, to, programs)
    copy_libraries(build, to, programs)
    cuda = cuda_version(build)
    copy_cupti(build, to, cuda)
    packed = pack(to)
    if packed.stat().st_size > MOST:
        print(f"pack: {packed} has more than 50 MiB, and the sources go with it where at most 64 MiB are taken: with --arch 90 "
              "it is for one kind of GPU alone, and smaller", file=sys.stderr)
    glibc = output("ldd", "--version").splitlines()[0].split()[-1]
    print(f"{to}: {len(programs)} programs, {mebibytes(*(file for file in to.rglob('*') if file.is_file()))} MiB; {packed}: "
          f"{mebibytes(packed)} MiB. For x86-64 with glibc {glibc} or newer and NVIDIA's "
          f"{DRIVERS.get(cuda, f'a driver for CUDA {cuda}')}: there, call python3 gpu_report in the directory, or ./run gpu "
          "--build with either.")


def main(arguments, build):
    """Packs what `build(arch)` builds. Returns the exit status."""
    if "--help" in arguments:
        print(HELP)
        return 0
    name, arch = read(arguments)
    check(name)
    print(f"Building in build/cuda, to pack it in {name} ...", file=sys.stderr)
    try:
        make(build(arch), Path(name))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"pack: {error}", file=sys.stderr)
        return 1
    return 0
