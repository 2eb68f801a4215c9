#!/usr/bin/env python3
"""Training over several nodes, measured: the convnet on MNIST over network namespaces with network cards of a given
rate (parallel/nodes/gloo/namespaces.sh; as root), beside PyTorch's DistributedDataParallel over Gloo in the same namespaces.

    ./run nodes --measure [--short]

Prints a table for each rate:
- samples/s of all nodes together, and as multiples of PyTorch's and of the same processes without a network
- samples and seconds to 97 % test accuracy: the samples from a training without a limited rate, which has the same
  bits, over the samples/s here; those of PyTorch are synchronous training's
- MB that node 0 has sent, by its own count, and by how much the kernel's is larger: with the headers of packets, among
  them those that only confirm what has come, and without. More than 5 % without is a failure of this program
- by how much the projection of ./run compare differs from the seconds measured"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SPACES = os.path.join(HERE, "../../parallel/nodes/gloo/namespaces.sh")
ARMS = {
    "synchronous": ["--strategy", "synchronous"],
    "averaging, 3": ["--averaging-frequency", "3"],
    "averaging, 30": ["--averaging-frequency", "30"],
    "averaging, 100": ["--averaging-frequency", "100"],
    "overlapped, 30": ["--strategy", "overlapped", "--strategy-options", "every=30,delay=20,updaterState=keep"],
    "overlapped, 30, 29 late, int8": ["--strategy", "overlapped", "--strategy-options",
                                      "every=30,delay=29,updaterState=keep,codec=int8"],
    "streaming, 30": ["--strategy", "streaming",
                      "--strategy-options", "every=30,fragments=2,delay=10,updaterState=keep"],
    "streaming, 30, int8": ["--strategy", "streaming",
                            "--strategy-options", "every=30,fragments=2,delay=10,updaterState=keep,codec=int8"],
}
BATCH = 128
HEADERS = 66  # bytes of Ethernet, IPv4, and TCP with timestamps

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program", help="muster")
parser.add_argument("--short", action="store_true", help="few iterations: whether all works, not how fast")
parser.add_argument("--nodes", type=int, default=3)
parser.add_argument("--rates", default="100mbit,1gbit")
parser.add_argument("--arms", default=",,".join(ARMS), help="separated by two commas")
parser.add_argument("--target", type=float, default=0.97, help="test accuracy; 0: speed alone")
parser.add_argument("--python", default="/usr/bin/python3", help="with PyTorch, for DistributedDataParallel")
parser.add_argument("--json", help="write all numbers there, too")
options = parser.parse_args()
TRAIN = [os.path.abspath(options.program), "train", os.path.join(HERE, "../../examples/mnist.json")]
folder = tempfile.TemporaryDirectory()
examples = BATCH * options.nodes * (30 if options.short else 150)


def run(rate, command):
    """Returns what the processes have printed, and the bytes and packets that each node has sent by the kernel's
    count."""
    done = subprocess.run([SPACES, str(options.nodes), rate, *command], text=True, capture_output=True,
                          cwd=folder.name, timeout=1800)
    if done.returncode != 0:
        return None, (done.stderr + done.stdout).strip().splitlines()
    counts = re.findall(r"node \d+ has sent (\d+) bytes in (\d+) packets", done.stderr)
    return done.stdout, [(int(sent), int(packets)) for sent, packets in counts]


def convnet(rate, arm, *more):
    """Returns the results of a training, and the bytes and packets that node 0 has sent by the kernel's count."""
    path = os.path.join(folder.name, "run.json")
    out, sent = run(rate, [*TRAIN, "--quiet", "--workers", "1", "--json", path, *ARMS[arm], *more])
    if out is None:
        why = next((line for line in sent if "refused" in line or "error" in line), sent[-1] if sent else "")
        return None, why.split(": ")[-1]
    with open(path) as file:
        return json.load(file), sent[0]


def samples_to_target(arm):
    results, why = convnet("none", arm, "--epochs", "3", "--test-iterations", "10")
    if results is None:
        return None
    per_iteration = BATCH * options.nodes
    for test in results.get("testAccuracyByEpoch", []):
        if test["testAccuracy"] >= options.target:
            return test["iteration"] * per_iteration
    return None


def alone():
    """Samples a second of the same processes, each of which trains by itself."""
    rates = []
    script = ("env -u MUSTER_STORE -u MUSTER_NODES -u MUSTER_NODE \"$@\" --json alone-$MUSTER_NODE.json"
              " --model alone-$MUSTER_NODE")
    out, why = run("none", ["bash", "-c", script, "alone", *TRAIN, "--quiet", "--workers", "1",
                            "--pin-threads", "false", "--averaging-frequency", "1000", "--epochs", "1",
                            "--train-examples", str(examples // options.nodes), "--test-examples", "1000"])
    if out is None:
        sys.exit(f"a process alone has failed: {why}")
    for node in range(options.nodes):
        with open(os.path.join(folder.name, f"alone-{node}.json")) as file:
            results = json.load(file)
        rates.append(results["trainingExamples"] / results["seconds"])
    return sum(rates)


def ddp(rate, *more):
    out, why = run(rate, [options.python, os.path.join(HERE, "torch_ddp.py"), "--batch", str(BATCH), "--seconds",
                          "3" if options.short else "20", *more])
    if out is None:
        return {"skipped": why[-1] if why else "it failed"}
    return json.loads(out.strip().splitlines()[-1])


def projected(results, rate, computing):
    """Seconds by the formula of ./run compare (exchangeSeconds, of a ring; the latency of these links is 0)."""
    bandwidth = {"k": 1e3, "m": 1e6, "g": 1e9}[rate[-4]] * float(rate[:-4]) / 8
    nodes = options.nodes
    return computing + 2 * (nodes - 1) / nodes * results["mergedBytes"] / bandwidth


def number(value, form="{:.0f}"):
    return "-" if value is None else form.format(value)


def measure(rate, arms, by_alone, needed):
    torch = ddp(rate)
    by_torch = torch.get("samplesPerSecond")
    print(f"\n{options.nodes} nodes at {rate}; without a network {by_alone:.0f} samples/s" +
          (f"; PyTorch: {torch['skipped']}" if "skipped" in torch else "") + "\n")
    print("| | samples/s | of PyTorch's | of those alone | samples to target | seconds to target | MB sent |"
          " kernel's more by | projection |")
    print("|---|---|---|---|---|---|---|---|---|")
    synchronous = needed.get("synchronous")
    if by_torch:
        seconds = synchronous / by_torch if synchronous else None
        print(f"| PyTorch's DDP | {by_torch:.0f} | 1.00 | {by_torch / by_alone:.0%} | {number(synchronous)} |"
              f" {number(seconds, '{:.1f}')} | | | |")
    rows = {"PyTorch": torch}
    for arm in arms:
        results, sent = convnet(rate, arm, "--epochs", "1", "--train-examples", str(examples), "--test-examples",
                                "1000")
        if results is None:
            print(f"| {arm} | {sent} | | | | | | | |", flush=True)
            continue
        speed = results["trainingExamples"] / results["seconds"]
        seconds = needed[arm] / speed if needed.get(arm) else None
        bytes_sent, packets = sent
        payload, error = bytes_sent - HEADERS * packets, None
        if "keep" not in " ".join(ARMS[arm]):  # the projection does not cover overlap
            computing = results["seconds"] * results["workers"][0]["computeShare"]
            error = projected(results, rate, computing) / results["seconds"] - 1
        row = {"samplesPerSecond": speed, "bytesSent": results["bytesSent"], "kernel": bytes_sent,
               "kernelPayload": payload,
               "mergedBytes": results["mergedBytes"], "merges": results["merges"], "seconds": results["seconds"],
               "projectionError": error, "samplesToTarget": needed.get(arm), "secondsToTarget": seconds}
        rows[arm] = row
        print(f"| {arm} | {speed:.0f} | {number(by_torch and speed / by_torch, '{:.2f}')} | {speed / by_alone:.0%} |"
              f" {number(needed.get(arm))} | {number(seconds, '{:.1f}')} | {results['bytesSent'] / 1e6:.1f} |"
              f" {bytes_sent / results['bytesSent'] - 1:.1%}, {payload / results['bytesSent'] - 1:.1%} |"
              f" {number(error, '{:+.0%}')} |", flush=True)
    return rows


chosen = options.arms.split(",,")
needed_samples = {} if options.short or options.target == 0 else {arm: samples_to_target(arm) for arm in chosen}
without = alone()
table = {rate: measure(rate, chosen, without, needed_samples) for rate in options.rates.split(",")}
wrong = [(rate, arm) for rate, rows in table.items() for arm, row in rows.items()
         if "kernel" in row and abs(row["kernelPayload"] / row["bytesSent"] - 1) > 0.05]
if options.json:
    with open(options.json, "w") as file:
        json.dump({"alone": without, "rates": table}, file, indent=1)
if wrong:
    sys.exit(f"the kernel's count of bytes differs by more than 5 % from ours: {wrong}")
