"""./run soak [parts]: long tests that are not part of ./run test; by default all of them."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from project import ROOT, RUN, SKIPPED, Parser, build, check, fail, number, say


def kills(options):
    """The training of digits is killed at random moments and resumed."""
    program = build("release", "kills_test") / "tests/examples/kills_test"
    check([program], env={**os.environ, "MUSTER_KILLS": str(options.kills)})


def storm(options):
    """Elastic processes join, are killed and are stopped."""
    program = build("release", "+gloo", "elastic_node") / "tests/parallel/nodes/node_processes/elastic_node"
    check([sys.executable, ROOT / "tests/parallel/nodes/node_processes/storms.py", program, "--storms", options.storms,
           "--seed", os.environ.get("MUSTER_TEST_SEED", "1")])


def long(options):
    """The tests that run long (ctest's label soak)."""
    check([RUN, "test", "--target=soak_tests", "--label-regex", "^soak$", "--no-tests=error"])


def preset(name):
    """All tests of a preset."""
    return lambda options: check([RUN, "test", "--preset", name])


def fuzz(options):
    check([RUN, "fuzz", "--minutes", options.minutes])


def valgrind(options):
    """One training under valgrind."""
    if not shutil.which("valgrind"):
        say("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    program = build("release", "muster_program") / "examples/muster"
    with tempfile.TemporaryDirectory() as folder:
        # oneDNN's AVX code reads beyond the ends of buffers but does not use the values.
        isa = {"ONEDNN_MAX_CPU_ISA": "SSE41", "MUSTER_MAX_CPU_ISA": "baseline", "OMP_NUM_THREADS": "1"}
        check(["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", program,
               "train", ROOT / "examples/mnist.json",
               *"--device cpu --data generated --examples 64 --batch 8 --epochs 1 --pin-threads false --model".split(),
               f"{folder}/model.safetensors"], env={**os.environ, **isa})


RELEASES = ["bookworm", "trixie"]  # Debian 12 and 13


def known_release(text):
    if text not in RELEASES:
        raise argparse.ArgumentTypeError(f"wants {' or '.join(RELEASES)}")
    return text


def bare_root(release, command):
    """Runs a command in a new root with nothing but a release of Debian and a copy of this tree."""
    say(f"== in a bare root of {release}: {' '.join(command)} ==")
    check([ROOT / "tests/bare_root.sh", release, *command])


def walk(options):
    """The README from its beginning."""
    commands = "./run mnist; ./run test; ./run install ~/muster; tests/walk.sh installed ~/muster"
    for release in [options.release] if options.release else RELEASES:
        bare_root(release, ["bash", "-euxo", "pipefail", "-c", commands])


def aarch64(options):
    """Cross-builds for 64-bit ARM and runs tests under qemu."""
    bare_root("trixie", ["tests/aarch64.sh"])


# In the order in which all of them run.
PARTS = {"kills": kills, "storm": storm, "long": long, "valgrind": valgrind, "walk": walk, "aarch64": aarch64,
         "clang": preset("clang"), "asan": preset("asan"), "tsan": preset("tsan"), "fuzz": fuzz}


def run_part(part, options):
    """Returns the exit status of a part. A failure ends this part alone; Ctrl-C ends all."""
    say(f"== {part} ==")
    try:
        PARTS[part](options)
    except SystemExit as end:
        return end.code
    return 0


def main():
    parser = Parser("soak", __doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--kills", metavar="N", type=number, default=200, help="of the part kills [200]")
    parser.add_argument("--storms", metavar="N", type=number, default=100, help="of the part storm [100]")
    parser.add_argument("--minutes", metavar="N", type=number, default=30, help="of each fuzzer [30]")
    parser.add_argument("--release", metavar="NAME", type=known_release, nargs="?", const="",
                        help=f"of the part walk: {' or '.join(RELEASES)} [both]")
    options = parser.parse()
    for part in options.parts:
        if part not in PARTS:
            fail(f"soak: there is no option or part {part}; ./run help says what there is")
    statuses = {part: run_part(part, options) for part in options.parts or PARTS}
    passed = [part for part, status in statuses.items() if status == 0]
    skipped = [part for part, status in statuses.items() if status == SKIPPED]
    failed = [part for part in statuses if part not in passed + skipped]
    if passed:
        say("soak: passed:", *passed)
    if skipped:
        say("soak: skipped:", *skipped)
    if failed:
        fail(f"soak: failed: {' '.join(failed)}")
    return 0 if passed else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
