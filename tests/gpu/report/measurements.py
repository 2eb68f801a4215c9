"""The parts "benchmarks" and "profile": programs that print tables, one after the other."""
import glob

from job import find_tool
from running import say

BENCHMARKS = ("merge_and_launches", "convolutions", "convnet", "resnet18")
PROFILE = ("steps", "kernels", "merges_of_2", "merges_of_8")
MAY_FAIL = PROFILE[1:]  # many machines do not let Nsight Compute look at kernels
METRICS = ("gpu__time_duration.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
           "sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__warps_active.avg.pct_of_peak_sustained_active")


def measure(job, part, name, needs, command, most=3600, program=None, title="", kept=lambda text: text):
    """Runs a measurement that is not there yet and may need so many seconds; what comes first in a call always runs.

    `command` is given the seconds that it has. The table is what it prints, as far as it is `kept`, unless it writes the table
    itself after each step, so that there is one when it is ended from outside.
    """
    seconds = min(job.runner.left(), most)
    if name in job.data[part] or (seconds < needs and job.begun):
        return
    job.begun = True
    say(f"Running {name} ...")
    table, printed, log = (job.folder / part / f"{name}.{kind}" for kind in ("txt", "printed", "log"))
    table.unlink(missing_ok=True)
    with open(printed, "wb") as output, open(log, "wb") as errors:
        status = job.runner.run(max(seconds, 1), command(seconds), output, errors)
    text = table.read_bytes() if table.exists() else title.encode() + kept(printed.read_bytes())
    if status:
        last = b"\n".join(log.read_bytes().splitlines()[-3:])
        text += f"\n{program or name} ended with status {status}: ".encode() + last + b"\n"
    table.write_bytes(text)
    with job.change() as data:
        data[part][name] = status
    job.write_report()


def run_benchmarks(job):
    common = ["--device", "cuda:0", "--rounds", job.options.bench_rounds]
    for name, program in (("merge_and_launches", "device_speed"), ("convolutions", "device_convolutions")):
        measure(job, "benchmarks", name, 120, lambda _: [job.build.bench / program, *common])
    for name in ("convnet", "resnet18"):
        base = job.folder / "benchmarks" / name
        measure(job, "benchmarks", name, 420, lambda seconds: [
            job.build.bench / "gpu_end_to_end", *common, "--seconds", job.options.bench_seconds, "--python",
            job.python_command(), "--network", name, "--json", f"{base}.json", "--table", f"{base}.txt",
            "--budget", seconds - 60 if seconds > 180 else 120])


def kernel_table(text):
    """The first lines of Nsight Compute's table, without its own messages."""
    return b"\n".join([line[:160] for line in text.splitlines() if not line.startswith(b"==")][:300]) + b"\n"


def run_profile(job):
    """Where the time of a step goes: by CUDA's own tracing, then how much of the GPU each kernel uses."""
    steps = [job.build.bench / "gpu_end_to_end", "--device", "cuda:0", "--network", "convnet"]
    merges = [job.build.bench / "device_speed", "--device", "cuda:0", "--megabytes", 100, "--rounds", 1]
    measure(job, "profile", "steps", 120, lambda _: [*steps, "--trace"], most=300)
    tool = find_tool("ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu")))
    if not tool:
        (job.folder / "profile" / "kernels.txt").write_text("Nsight Compute (ncu) was not found on this machine.\n")
        with job.change() as data:
            data["profile"].update(dict.fromkeys(MAY_FAIL, 0))
        return

    def look_at(name, needs, title, *command):  # clocks and caches are left as they are
        measure(job, "profile", name, needs, lambda _: [
            tool, "--clock-control", "none", "--cache-control", "none", "--print-summary", "per-kernel", "--metrics",
            ",".join(METRICS), *command], most=300, program="ncu", title=f"{title}\n", kept=kernel_table)

    look_at("kernels", 180, "200 kernels of the convnet's training by one worker", "--launch-skip", 2000, "--launch-count", 200,
            *steps, "--arm", 1, "--batch", 128, "--seconds", 0.1)
    for replicas in (2, 8):
        look_at(f"merges_of_{replicas}", 120, f"Merges of {replicas} replicas of 100 MB", "--kernel-name", "regex:[mM]ean",
                "--launch-count", 6, *merges, "--replicas", replicas)
