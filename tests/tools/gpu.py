"""./run gpu [options]: builds, and writes the report of tests/gpu/report. ./run gpu pack DIR: tests/gpu/pack.py."""
import re
import subprocess
import sys
from pathlib import Path

from project import ROOT, build, fail, say

HERE = ROOT / "tests/gpu"
BUILD = ROOT / "build/cuda"
NO_GPU = 3  # the report's status if no GPU is usable


def succeeds(command):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def has_gpu():
    return succeeds(["nvidia-smi", "-L"]) or Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


def capability():
    """The compute capability of this machine's GPUs without its point, as "90"; "" if it is unknown or they differ."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
    except OSError:
        return ""
    kinds = {line.replace(".", "") for line in said.split()}
    return kinds.pop() if len(kinds) == 1 else ""


def forget_one_arch(unless=""):
    """Configures a build that was made for one kind of GPU anew for all kinds, except for the kind `unless`."""
    cache = BUILD / "CMakeCache.txt"
    forced = re.search("^CMAKE_CUDA_ARCHITECTURES:[A-Z]*=([1-9][0-9]*)$", cache.read_text(), re.MULTILINE) if cache.is_file() else None
    if forced and forced[1] != unless:
        say(f"build/cuda is for GPUs of compute capability {forced[1]} alone: it is made anew")
        (BUILD / "build.ninja").unlink(missing_ok=True)
    return forced is not None and forced[1] == unless


def build_for_pack(arch):
    """Builds for GPUs of one compute capability, or for all."""
    if arch and not forget_one_arch(arch):
        (BUILD / "build.ninja").unlink(missing_ok=True)
    elif not arch:
        forget_one_arch()
    return build("cuda", *([f"-DCMAKE_CUDA_ARCHITECTURES={arch}"] if arch else []))


def report(*arguments):
    return subprocess.run([sys.executable, str(HERE / "report"), *arguments]).returncode


def run_report(arguments):
    has = {argument.split("=")[0] for argument in arguments}
    if has & {"--help", "--check"}:
        return report(*arguments)
    status = report("--check", *arguments)
    if status:
        return status
    if not has_gpu():
        if "--list" in has:  # the tests of an existing build are listed without a GPU
            return report(*([] if "--build" in has else ["--build", str(BUILD)]), *arguments)
        say("run: this machine has no NVIDIA GPU, or no driver for it, and ./run gpu needs both")
        return NO_GPU
    (ROOT / "build").mkdir(exist_ok=True)
    brought = []
    if "--build" not in has:
        forget_one_arch(capability())
        brought = ["--build", str(build("cuda"))]
    return report("--out", str(ROOT / "build/gpu-report.md"), *brought, *arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["pack"]:
        sys.path.insert(0, str(HERE))
        import pack
        sys.exit(pack.main(sys.argv[2:], build_for_pack))
    sys.exit(run_report(sys.argv[1:]))
