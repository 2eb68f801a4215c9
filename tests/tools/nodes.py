"""./run nodes [N] [options]: trains the convnet on MNIST with N processes of this machine, which merge over MPI or Gloo. Own
options come first; from the first other one on they are the program's.

  N                    processes [2]
  --gloo               over Gloo, without a launcher
  --interface NAME     uses only this network interface [Gloo: lo]
  --namespaces N       over N network namespaces, as root; --rate 100mbit limits their network cards
  --measure [--short]  measures each rule's speed, as a table"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from types import SimpleNamespace

from project import ROOT, build, check, fail

MEASURE = ROOT / "tests/bench/nodes.py"
SPACES = ROOT / "parallel/nodes/gloo/namespaces.sh"


def read(arguments):
    """The call's own options, and in `rest` the program's."""
    options = SimpleNamespace(processes=2, by="mpi", interface="", namespaces="", rate="", measure=False)
    rest = list(arguments)
    while rest:
        first = rest[0]
        if first == "--gloo":
            options.by = "gloo"
        elif first == "--measure":
            options.by, options.measure = "gloo", True
        elif first in ("--namespaces", "--rate", "--interface"):
            if len(rest) == 1:
                fail(f"nodes: {first} wants a value")
            setattr(options, first[2:], rest.pop(1))
        elif re.fullmatch("[0-9]{1,3}", first):
            options.processes = int(first)
        else:
            break
        rest.pop(0)
    if options.processes < 1:
        fail("./run nodes wants at least 1 process")
    if options.rate and not options.namespaces:
        fail("nodes: --rate needs --namespaces")
    if options.namespaces:
        options.by = "gloo"
    options.rest = rest
    return options


def start(command, **options):
    """Starts a process that ends with this one and does not see the terminal's Ctrl-C."""
    dies = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    return subprocess.Popen([*dies, *command], start_new_session=True, **options)


def send_to(processes, number):
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)


def run_by_gloo(options, program):
    """Starts the processes and waits for them. They find each other in a new folder. If one fails, the others end by
    themselves. Returns the first exit status that is not 0."""
    processes = []
    # As Ctrl-C, SIGUSR1 ends a training after it has saved.
    signal.signal(signal.SIGINT, lambda *_: send_to(processes, signal.SIGUSR1))
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: send_to(processes, signal.SIGTERM))
    with tempfile.TemporaryDirectory() as store:
        for node in range(options.processes):
            place = {"MUSTER_STORE": store, "MUSTER_NODE": str(node), "MUSTER_NODES": str(options.processes),
                     "MUSTER_INTERFACE": options.interface or "lo"}
            processes.append(start([*program, *options.rest], env={**os.environ, **place}))
        return next((status for status in [process.wait() for process in processes] if status), 0)


def run_by_mpi(options, program):
    """mpirun would kill the processes after Ctrl-C, maybe before they have saved. It passes on SIGUSR1, which they take as
    Ctrl-C."""
    processes = []
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
        signal.signal(number, lambda *_: send_to(processes, signal.SIGUSR1))
    chosen = ["--allow-run-as-root"] if os.getuid() == 0 else []
    if options.interface:
        chosen += ["--mca", "btl_tcp_if_include", options.interface, "--mca", "oob_tcp_if_include", options.interface]
    processes.append(start(["mpirun", *chosen, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n",
                            str(options.processes), *program, *options.rest]))
    return processes[0].wait()


def main(arguments):
    options = read(arguments)
    muster = build("release", f"+{options.by}", "muster_program") / "examples/muster"
    program = [str(muster), "train", str(ROOT / "examples/mnist.json")]
    if options.measure:
        return check([sys.executable, MEASURE, muster, *options.rest])
    if options.namespaces:
        return check([SPACES, options.namespaces, options.rate or "none", *program, *options.rest])
    status = (run_by_gloo if options.by == "gloo" else run_by_mpi)(options, program)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__)
    else:
        sys.exit(main(sys.argv[1:]))
