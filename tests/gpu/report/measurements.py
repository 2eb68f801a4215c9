"""The parts that are programs with a table each, one after the other, in order of what they tell by the second."""
import glob
from typing import Callable, NamedTuple, Sequence

from cases import GPU_CASES
from options import QUICK
from running import find_tool, ran_out, say

SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis_Tables", "WarpStateStats", "SchedulerStats", "Occupancy")
METRICS = ("gpu__time_duration.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
           "sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__warps_active.avg.pct_of_peak_sustained_active")
# Switches to attribute time, one program call each: name -> environment.
SWITCHES = {
    "side stream off": {"MUSTER_CUDA_SIDE_STREAM": "0"},
    "no recording": {"MUSTER_CUDA_GRAPHS": "0"},
    "conv2 by implicit GEMM": {"MUSTER_CUDA_CONV2D": "conv2=implicit-gemm"},
    "conv2 channels-last": {"MUSTER_CUDA_CONV2D": "conv2=channels-last"},
    "conv2 padded": {"MUSTER_CUDA_CONV2D": "conv2=padded"},
    "conv2 row-major": {"MUSTER_CUDA_CONV2D": "conv2=row-major"},
    "fp32": {"MUSTER_CUDA_MATH": "fp32"},
    "bf16": {"MUSTER_CUDA_MATH": "bf16"},
}


class Measurement(NamedTuple):
    """A program that prints a table. It is begun where a call has `needs` seconds left, and ended after `most`."""
    name: str
    needs: int
    most: int
    command: Callable  # function of the job and its seconds; None: the tool is missing
    title: str = ""
    may_fail: bool = False  # many machines forbid Nsight Compute's profiling
    environment: dict = {}
    kept: Callable = lambda text: text  # extracts the table from the printed text
    absent: str = ""  # message if there is no command
    first: bool = False  # the part ends here if this fails


def bench(program, *options):
    return lambda job, seconds: [job.build.bench / program, "--device", "cuda:0", *options]


def rounds(command):
    return lambda job, seconds: [*command(job, seconds), "--rounds", job.options.bench_rounds]


def arm(workers):
    return lambda job, seconds: [*bench("gpu_end_to_end", "--details", "--arm", workers, "--batch", 128)(job, seconds),
                                 "--seconds", job.options.bench_seconds]


def beside_pytorch(network):
    def command(job, seconds):
        base = job.folder / "comparison" / network
        return [*rounds(bench("gpu_end_to_end"))(job, seconds), "--seconds", job.options.bench_seconds, "--python",
                job.python_command(), "--network", network, "--json", f"{base}.json", "--table", f"{base}.txt",
                "--budget", seconds - 60 if seconds > 180 else 120]
    return command


def pytorch_kernels(*options):
    return lambda job, seconds: ["sh", "-c", f"exec {job.python_command()} \"$0\" \"$@\"", job.build.bench / "torch_training.py",
                                 "--device", "cuda:0", "--profile", *options]


def kernel_table(text):
    """The first lines of Nsight Compute's table, without its own messages."""
    return b"\n".join([line[:160] for line in text.splitlines() if not line.startswith(b"==")][:300]) + b"\n"


def nsight(name, needs, title, program, *options, most=300, **fields):
    """Kernels of a program under Nsight Compute; clocks and caches are left as they are."""
    def call(job, seconds):
        tool = find_tool("ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu")))
        return tool and [tool, "--clock-control", "none", "--cache-control", "none", "--print-summary", "per-kernel", *options,
                         *program(job, seconds)]
    return Measurement(name, needs, most, call, title, True, kept=kernel_table,
                       absent="Nsight Compute (ncu) was not found on this machine.", **fields)


def implicit_gemm(name, needs, most, skipped):
    """What bounds the kernels of the implicit GEMM, above all shared memory: conflicts between its banks, and what warps wait
    for. The first kernels of a training are left out."""
    sections = [word for section in SECTIONS for word in ("--section", section)]
    return nsight(name, needs, "Kernels of the implicit GEMM: shared memory, and what warps wait for", arm(1), "--kernel-name",
                  "regex:implicit", "--launch-skip", skipped, "--launch-count", 8, *sections, most=most,
                  environment=SWITCHES["conv2 by implicit GEMM"])


def merges_under(replicas):
    return nsight(f"merges_of_{replicas}", 120, f"Merges of {replicas} replicas of 100 MB",
                  bench("device_speed", "--megabytes", 100, "--rounds", 1, "--replicas", replicas), "--kernel-name",
                  "regex:[mM]ean", "--launch-count", 6, "--metrics", ",".join(METRICS))


ABOUT = """
cat /proc/driver/nvidia/version; nvidia-smi; nvidia-smi -q -d CLOCK,POWER,PERFORMANCE,MEMORY,ECC | sed -n '1,90p'
for tool in nvcc compute-sanitizer ncu nsys; do command -v $tool && $tool --version | tail -n 2; done
"$0" -c 'import torch; print("PyTorch", torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())' 2>&1 |
  tail -n 1
uname -srm; lscpu | grep -E '^(Model name|CPU\\(s\\)|Socket|NUMA)'; grep -E '^Mem(Total|Available)' /proc/meminfo
ldd --version | head -n 1
"""


def about(job, seconds):
    return ["sh", "-c", f"({ABOUT}) 2>&1; true", job.options.python]


def conv2d_cases(job, *tool):
    """A call of the cases of convolutions for a GPU, by the program of that name or the one that holds all of core/ops."""
    folder = job.build.tests / "core/ops"
    program = next((file for file in (folder / "conv2d_test", folder / "core_ops_test") if file.is_file()), None)
    return program and [*tool, program, "--source-file=*conv2d*", f"--test-case={GPU_CASES}"]


def quick_check(check):
    """One of compute-sanitizer's tools on the kernels of the implicit GEMM alone."""
    def command(job, seconds):
        tool = find_tool("compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")
        return tool and conv2d_cases(job, tool, "--tool", check, "--kernel-name", "kns=implicit", "--error-exitcode", 9)
    return Measurement(check, 25, 50, command, absent="compute-sanitizer was not found on this machine.")


def quick_arm(name, workers, **environment):
    return Measurement(name, 9, 25, bench("gpu_end_to_end", "--details", "--arm", workers, "--batch", 128, "--seconds", 1),
                       environment=environment)


def torch_once(job, seconds):
    return ["sh", "-c", f"exec {job.python_command()} \"$0\" \"$@\"", job.build.bench / "torch_training.py", "--device", "cuda:0",
            "--variant", "compiled-graph", "--seconds", 1]


IMPLICIT = SWITCHES["conv2 by implicit GEMM"]
# In the order of what a quarter of an hour is for; each half fits its call (see EPILOG) by `needs`.
QUICK_FIRST = (
    Measurement("cases of conv2d", 60, 90, lambda job, seconds: conv2d_cases(job), absent="This build has no tests of core/ops.",
                first=True),
    quick_arm("1 worker", 1),
    quick_arm("1 worker, conv2 by implicit GEMM", 1, **IMPLICIT),
    quick_arm("1 worker, implicit GEMM, side stream off", 1, **IMPLICIT, **SWITCHES["side stream off"]),
    quick_arm("1 worker, conv2 padded", 1, **SWITCHES["conv2 padded"]),
    quick_arm("8 workers", 8),
    quick_arm("8 workers, conv2 by implicit GEMM", 8, **IMPLICIT),
    Measurement("convolutions", 40, 60, bench("device_convolutions", "--rounds", 2)),
    Measurement("trace", 40, 60, bench("gpu_end_to_end", "--trace", "--trace-workers", 1, 8), environment=IMPLICIT),
    implicit_gemm("implicit GEMM", 50, 70, skipped=60),
    Measurement("PyTorch, captured, compiled", 60, 90, torch_once),
)
QUICK_SECOND = (
    *(quick_check(check) for check in ("memcheck", "racecheck", "synccheck", "initcheck")),
    Measurement("bits", 50, 70, bench("device_bits", "--steps", 20, "--gradients", 100, "--runs", 2), environment=IMPLICIT),
    Measurement("launches", 15, 30, bench("device_launches", "--threads", 1, 8, "--launches", 500, "--rounds", 1)),
    Measurement("ResNet-18", 30, 45, bench("gpu_end_to_end", "--trace", "--network", "resnet18")),
)
MEASURED = {
    "machine": (Measurement("machine", 10, 90, about),),
    "contention": (Measurement("contention", 60, 180, bench("device_launches")),),
    "convolutions": (
        Measurement("convolutions", 60, 240, rounds(bench("device_convolutions"))),
        Measurement("convolutions, bf16", 60, 240, rounds(bench("device_convolutions")), environment=SWITCHES["bf16"]),
    ),
    "arms": (
        Measurement("1 worker", 30, 120, arm(1)),
        Measurement("8 workers", 40, 120, arm(8)),
        *(Measurement(f"1 worker, {name}", 30, 120, arm(1), environment=environment)
          for name, environment in SWITCHES.items()),
    ),
    "bits": (
        Measurement("bits", 200, 400, bench("device_bits")),
        Measurement("bits, conv2 by implicit GEMM", 200, 400, bench("device_bits"),
                    environment=SWITCHES["conv2 by implicit GEMM"]),
    ),
    "comparison": (
        Measurement("convnet", 420, 3600, beside_pytorch("convnet")),
        Measurement("resnet18", 420, 3600, beside_pytorch("resnet18")),
        Measurement("kernels_of_muster", 60, 200, bench("gpu_end_to_end", "--trace", "--trace-workers", 1)),
        Measurement("kernels_of_pytorch", 90, 200, pytorch_kernels()),
        Measurement("kernels_of_muster, resnet18", 60, 200, bench("gpu_end_to_end", "--trace", "--network", "resnet18")),
        Measurement("kernels_of_pytorch, resnet18", 90, 200, pytorch_kernels("--network", "resnet18", "--batch", 256)),
    ),
    "traces": (
        Measurement("traces", 120, 400, bench("gpu_end_to_end", "--trace")),
        Measurement("merges", 120, 300, rounds(bench("device_speed"))),
        nsight("kernels", 180, "200 kernels of the convnet's training by one worker",
               bench("gpu_end_to_end", "--network", "convnet", "--arm", 1, "--batch", 128, "--seconds", 0.1), "--launch-skip",
               2000, "--launch-count", 200, "--metrics", ",".join(METRICS)),
        implicit_gemm("implicit_gemm", 120, 300, skipped=60),
        merges_under(2),
        merges_under(8),
    ),
    "large": (Measurement("large", 150, 300, bench("device_large")),),
    QUICK: (*QUICK_FIRST, *QUICK_SECOND),
}


def file_name(name):
    return name.replace(", ", "__").replace(" ", "_")


def measure(job, part, one: Measurement):
    """Runs a measurement that is not there yet; what comes first in a call always runs.

    The table is what it prints, as far as it is kept, unless it writes the table itself after each step, so that there is one
    when it is ended from outside. What only the end of the call cuts off leaves its table so far, and is run again by the next.
    """
    seconds = min(job.runner.left(), one.most)
    if one.name in job.data["measured"].get(part, {}) or (seconds < one.needs and job.begun):
        return
    command = one.command(job, seconds)
    base = job.folder / part / file_name(one.name)
    table, printed, log = (base.with_name(f"{base.name}.{kind}") for kind in ("txt", "printed", "log"))
    table.unlink(missing_ok=True)
    status = 0
    if command:
        job.begun = True
        say(f"Running {one.name} ...")
        with open(printed, "wb") as output, open(log, "wb") as errors:
            status = job.runner.run(max(seconds, 1), command, output, errors, one.environment)
        text = table.read_bytes() if table.exists() else f"{one.title}\n".encode() * bool(one.title) + one.kept(printed.read_bytes())
        printed.unlink()
    else:
        text = one.absent.encode() + b"\n"
    cut = ran_out(status) and seconds < job.runner.fitting(one.most)
    if status and not cut:
        last = b"\n".join(log.read_bytes().splitlines()[-3:])
        text += f"\n{one.name} ended with status {status}: ".encode() + last + b"\n"
    table.write_bytes(text)
    if cut:
        say(f"{one.name} was cut off by the end of this call")
        job.write_report()
        return
    with job.change() as data:
        data["measured"].setdefault(part, {})[one.name] = [status, job.build.stamp_of(command)]
    job.write_report()


def run(job, part):
    for one in MEASURED[part]:
        measure(job, part, one)
        if one.first and status_of(job.data, part, one):
            say(f"{one.name} failed, so nothing else of {part} is run")
            return


def status_of(data, part, one):
    """The exit status of a measurement; None if it has none yet."""
    return data["measured"].get(part, {}).get(one.name, [None])[0]


def missing(data, parts) -> Sequence[str]:
    return [f"{one.name} ({part})" for part in parts for one in MEASURED.get(part, ()) if status_of(data, part, one) is None]


def failed(data):
    """The measurements that count as failures, with their statuses."""
    return [(part, one.name, status_of(data, part, one)) for part, all_of in MEASURED.items() for one in all_of
            if status_of(data, part, one) and not one.may_fail]
