"""Calls the report on builds whose test programs end in every way there is, and reads what it says of them: at once, in
pieces, and ended from outside. Usage: report_test.py REPORT_SAMPLE [unittest's arguments]. Scripts stand in for benchmarks,
compute-sanitizer and the driver's tool."""
import contextlib
import fnmatch
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "report"))

from advice import read_goals  # noqa: E402
from cases import GPU_CASES, Case, Run, conclude, read_run  # noqa: E402
from measurements import MEASURED, QUICK_FIRST, QUICK_SECOND, SECTIONS  # noqa: E402
from options import PARTS  # noqa: E402
from sanitizer import read_verdict, tasks  # noqa: E402
from report import main  # noqa: E402
from running import Runner  # noqa: E402

SAMPLE = None  # the path of report_sample
ENDINGS = {"core/ops/fine": "", "core/ops/crashing": "crash", "core/ops/killed": "killed", "core/ops/hanging": "hang",
           "core/ops/leaving": "exit", "core/ops/failing": "fail", "core/ops/lost": "lost", "nn/fine": ""}

DEVICE_SPEED = """
case $* in
  *--about*) echo "device: Toy 100 (cuda:0)"; echo "cuDNN: 91002 (/somewhere/libcudnn.so.9)" ;;
  *--probe* | *--planted-error*) exit 0 ;;
  *) echo "copies: fast"
    echo "merging replicas of 100 MB and more: goal 90 % of a copy, measured at least 93.5 %: reached" ;;
esac
"""
# The arm of eight workers is half as fast; without the side stream it is a tenth faster.
END_TO_END = """
[[ $* != *resnet18* || -e ${0%/*}/luck ]] || { echo "out of luck" >&2; exit 9; }
[[ $* != *--trace* ]] || { echo "most of it in conv_kernel"; echo "try: a faster conv_kernel"
  exit "$(cat "${0%/*}/trace_status" 2>/dev/null || echo 0)"; }
if [[ $* == *--details* ]]; then
  [[ ${MUSTER_CUDA_SIDE_STREAM-} == 0 ]] && speed=1100 || speed=1000
  [[ ${MUSTER_CUDA_GRAPHS-} == 0 ]] && speed=300
  [[ $* == *"--arm 8"* ]] && speed=500
  echo "convnet, batch 128, tf32: $speed samples/s, 64 us a step"
  echo "conv2: planned: cuDNN ${MUSTER_CUDA_CONV2D-as it likes} (1 x)"
  exit
fi
while (($#)); do
  if [[ $1 == --table ]]; then
    echo "MNIST: 7 images a second" >"$2"
    echo "one worker against PyTorch eager                         goal 5.0 x, measured 4.00 x: missed" >>"$2"
    echo "8 workers against one                                    goal 3.0 x, measured -: no figure" >>"$2"
  fi
  shift
done
sleep "$(cat "${0%/*}/seconds" 2>/dev/null || echo 0)"
echo "not for the report"
for worker in 1 2; do echo "muster: warning: conv1: planned row-major" >&2; done
"""
NVIDIA_SMI = """
[[ $* != *compute_mode* ]] || { cat "${0%/*}/compute_mode" 2>/dev/null || echo Default; exit; }
echo "580.1, 700.00 W, 1980 MHz, 2619 MHz"
"""
# A stand-in without --kernel-name; some programs run under it.
COMPUTE_SANITIZER = """
case $* in *crashing_test* | *fine_test*) (while [[ $1 != /* ]]; do shift; done; "$@" >/dev/null) ;; esac
case $* in
  *--kernel-name*) echo "unrecognised option" >&2; exit 1 ;;
  *--probe*) echo "========= ERROR SUMMARY: 0 errors" ;;
  *--planted-error*) cat "${0%/*}/planted" ;;
  *synccheck*device_bits*) [[ ! -e ${0%/*}/barrier ]] || echo "========= Barrier error detected"
    echo "========= ERROR SUMMARY: $(cat "${0%/*}/barrier" 2>/dev/null || echo 0 errors)" ;;
  *racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  *failing_test*) printf '========= Invalid __global__ read of size 4 bytes\\n========= ERROR SUMMARY: 3 errors\\n' ;;
  *lost_test*) exit 1 ;;
  *) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
"""


class Sandbox(unittest.TestCase):
    """A build of stand-ins, and a PATH that begins with the stand-ins of tools."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.build, self.bin = self.folder / "build", self.folder / "bin"
        self.report, self.results = self.folder / "report.md", self.folder / "report"
        environment = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(environment)))
        os.environ["PATH"] = f"{self.bin}:{os.environ['PATH']}"
        os.environ.pop("CUDA_HOME", None)
        places = unittest.mock.patch("build.USUAL_PLACES", ())  # CUDA's libraries on this machine are large
        places.start()
        self.addCleanup(places.stop)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        bench = self.build / "tests/bench"
        self.script(bench / "device_speed", DEVICE_SPEED)
        self.script(bench / "device_convolutions", 'echo "convolutions: quick"')
        self.script(bench / "device_launches", 'echo "8 threads: busy"')
        self.script(bench / "device_bits", 'echo "convnet: the same bits"')
        self.script(bench / "device_large", 'echo "axpy: right"')
        self.script(bench / "gpu_end_to_end", END_TO_END)
        (bench / "torch_training.py").write_text("print('volta_sgemm 7 us')\n")
        self.script(self.bin / "nvidia-smi", NVIDIA_SMI)
        self.script(self.bin / "compute-sanitizer", COMPUTE_SANITIZER)
        (self.bin / "planted").write_text("========= ERROR SUMMARY: 16 errors\n")
        self.script(self.bin / "ncu", "[[ $* == --version ]] || printf '==PROF== Connected\\n  conv_kernel Invocations 20\\n'")

    @staticmethod
    def script(file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/bash\n" + text)
        file.chmod(0o755)

    def programs(self, *names, **endings):
        """Test programs that end as ENDINGS says of their names, or as given."""
        for name in names:
            ending = endings.get(name.rsplit("/")[-1], ENDINGS.get(name))
            self.script(self.build / f"tests/{name}_test", f"REPORT_SAMPLE='{ending}' exec '{SAMPLE}' \"$@\"")

    def call(self, expected, *options, ago=0):
        """Calls the report, which is to end with status `expected`; returns what it says. It began so many seconds ago."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            status = main(["--build", str(self.build), "--out", str(self.report), *options], time.monotonic() - ago)
        self.assertEqual(status, expected, said.getvalue())
        return said.getvalue()

    def lines(self):
        return self.report.read_text().splitlines()

    def has(self, *lines):
        for line in lines:
            self.assertIn(line, self.lines())

    def like(self, *patterns):
        for pattern in patterns:
            self.assertRegex(self.report.read_text(), re.compile(pattern, re.MULTILINE))

    def lacks(self, *pieces):
        for piece in pieces:
            self.assertNotIn(piece, self.report.read_text())


class Reading(unittest.TestCase):
    XML = """<?xml version="1.0" encoding="UTF-8"?>
<doctest binary="a">
  <Options first="3"/>
  <TestSuite>
    <TestCase name="one&lt;gpu>" filename="a.cpp" line="1">
      <OverallResultsAsserts successes="1" failures="0" test_case_success="true" duration="0.5"/>
    </TestCase>
    <TestCase name="two" filename="a.cpp" line="2">
      <Expression success="false" type="CHECK" filename="a.cpp" line="3"><Original>x</Ori"""

    def test_run_that_was_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.xml"
            self.assertEqual(read_run(file), Run())
            for end in "", "ginal>\n<<Message>":  # killed in the middle of a line; two threads wrote at once
                file.write_text(self.XML + end)
                self.assertEqual(read_run(file), Run(3, (Case("one<gpu>", "passed", 0.5),), "two"))

    def test_what_another_run_takes(self):
        fine, bad, last = Case("a", "passed"), Case("b", "failed"), Case("c", "failed")
        whole = Run(1, (fine, bad, last), finished=True)
        self.assertEqual(conclude(whole, 1, 9, lost=False), ([fine, bad, last], False))
        self.assertEqual(conclude(whole, 1, 9, lost=True), ([fine, bad], True))
        self.assertEqual(conclude(whole, 139, 9, False), ([fine, bad, last._replace(reason="crashed (signal 11)")], False))
        at_end = Case("(the end of the program)", "failed", reason="crashed (signal 11)")
        self.assertEqual(conclude(Run(1, (fine,), finished=True), 139, 9, False), ([fine, at_end], False))
        told_to_end = Run(1, (fine, bad), crashed=True)
        self.assertEqual(conclude(told_to_end, 124, 9, False), ([fine, bad._replace(reason="did not end within 9 s")], True))
        self.assertEqual(conclude(told_to_end, None, 9, False), ([fine], True))
        self.assertEqual(conclude(Run(1, (fine,), "b"), None, 9, False), ([fine], True))

    def test_time_of_a_call(self):
        self.assertEqual(Runner(None, time.monotonic()).grant(300), 300)
        runner = Runner(120, time.monotonic() - 60.5)  # 44 of 105 seconds are left
        self.assertEqual([runner.grant(20), runner.grant(200), runner.grant(300)], [20, 44, 0])
        self.assertEqual([runner.fitting(20), runner.fitting(300)], [20, 60])


    def test_goals_as_programs_print_them(self):
        said = ["one worker against PyTorch's best graphed variant        goal 1.3 x, measured 0.65 x: missed",
                "merging replicas of 100 MB and more: goal 90 % of a copy, measured at least 91.0 %: reached",
                "8 workers against one                                    goal 3.0 x, measured -: no figure", "MNIST convnet"]
        self.assertEqual([str(goal) for goal in read_goals(said)],
                         ["one worker against PyTorch's best graphed variant: 0.65 x, goal 1.3 x: 50 % short of it",
                          "merging replicas of 100 MB and more: 91 %, goal 90 %: reached"])

    def test_every_part_fits_a_call_of_nine_minutes(self):
        """What does not is run in pieces: the tests and the sanitizer by program, the comparison by rounds."""
        self.assertEqual({*PARTS, "quick"}, {*MEASURED, "tests", "sanitizer"})
        whole = Runner(540, time.monotonic()).left()
        for part, measurements in MEASURED.items():
            for one in measurements:
                with self.subTest(part=part, name=one.name):
                    self.assertLess(one.needs, whole)
                    self.assertTrue(one.needs <= one.most and (one.most < whole or "--budget" in map(str, one.command(
                        unittest.mock.MagicMock(), whole))))

    def test_cases_that_need_a_gpu_are_found_by_their_names(self):
        """Those of a template are, by its type; the others' names have to say it."""
        unnamed = []
        for file in sorted(HERE.parent.rglob("*.cpp")):
            for case in re.split("^(?=TEST_)", file.read_text(), flags=re.MULTILINE)[1:]:
                plain = re.match(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', case)
                if plain and "OnGpu" in case:
                    name = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', plain[1])).lower()
                    if not any(fnmatch.fnmatchcase(name, pattern) for pattern in GPU_CASES.split(",")):
                        unnamed.append(f"{file}: {name}")
        self.assertEqual(unnamed, [])

    def test_a_step_that_fails_under_the_sanitizer_is_not_clean(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            log.write_text("========= ERROR SUMMARY: 0 errors\n")
            self.assertEqual(read_verdict(log, 0, 9, None), ("0 errors", True))
            self.assertEqual(read_verdict(log, 1, 9, None), ("0 errors, and the program ended with status 1", False))

    def test_checks_in_order_of_value(self):
        order = list(tasks(["core/ops/axpy_test", "core/ops/conv2d_test"]))
        self.assertEqual(order[:2], [("core/ops/axpy_test", "memcheck"), ("core/ops/conv2d_test", "memcheck")])
        self.assertEqual([check for what, check in order if what == "a step of the convnet"],
                         ["memcheck", "racecheck", "synccheck", "initcheck"])
        self.assertIn(("core/ops/conv2d_test with the libraries' kernels", "memcheck"), order)
        self.assertEqual(len(order), 2 * 4 + 4 + 1)
        self.assertEqual(order[-1], ("core/ops/conv2d_test", "initcheck"))


class WrongCalls(Sandbox):
    def refused(self, piece, *options):
        """A wrong call is told of in one sentence, whether or not there is a GPU."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            self.assertEqual(main([*map(str, options)]), 2)
        self.assertRegex(said.getvalue(), f"^gpu: .*{re.escape(piece)}.*\n$")

    def test_options(self):
        self.refused("there is no option --bogus", "--bogus")
        self.refused("there is no option foo", "foo")
        for option in "--build", "--out", "--minutes", "--only", "--filter", "--jobs", "--python":
            self.refused(f"{option} wants a value", option)
            self.refused(f"{option} wants a value", option, "")
        for option in "--jobs", "--time-limit", "--sanitizer-limit", "--sanitizer-minutes", "--bench-rounds":
            self.refused(f"{option} wants a number from 1 on, got 0", option, "0")
        self.refused("--minutes wants a number from 2 on, got x", "--minutes", "x")
        self.refused("--bench-seconds wants a number above 0, got 0.0", "--bench-seconds", "0.0")
        for part in "nonsense", ",", "tests traces", "tests,nonsense", "0", "11":
            self.refused("--only wants some of", "--only", part)
        self.refused("--out wants a file", "--out", self.folder)

    def test_builds(self):
        self.refused("/nonexistent is no build of muster", "--build", "/nonexistent")
        self.refused("is no build of muster", "--build", HERE.parent.parent)
        self.refused("is no build of muster")  # the folder of the report's modules
        text, other = self.folder / "text", self.folder / "other.tar"
        text.write_text("not packed\n")
        self.refused(f"{text} is no packed build", "--build", text)
        with tarfile.open(other, "w") as packed:
            packed.add(text, "text")
        self.refused(f"{other} is no build of muster", "--build", other)
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()), ["bin", "build", "other.tar", "text"])

    def test_right_calls(self):
        self.assertEqual(main("--check --only tests,8 --minutes 9 --bench-seconds .5".split()), 0)
        said = subprocess.run([sys.executable, HERE / "report", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(subprocess.run([sys.executable, HERE / "report", "foo"], stderr=subprocess.DEVNULL).returncode, 2)
        self.assertIn("./run gpu [options]", said.splitlines()[0])


class Whole(Sandbox):
    """Everything at once: programs of five cases each and one that cannot start."""

    def test_whole(self):
        self.programs(*ENDINGS)
        self.script(self.build / "tests/cpu_only_test", "echo '<doctest/>'")
        self.script(self.build / "tests/broken_test", 'echo "a library is missing" >&2; exit 127')
        (self.bin / "barrier").write_text("1 error")
        said = self.call(1, "--time-limit", "5", "--jobs", "3")
        self.assertEqual(re.findall("^Running (?:the GPU's )?([a-z0-9_-]+)", said, re.MULTILINE),
                         ["machine", "contention", "convolutions", "convolutions", *["1", "8", *8 * ["1"]], "tests", "bits", "bits", "convnet", "resnet18",
                          *2 * ["kernels_of_muster", "kernels_of_pytorch"], "traces", "merges", "kernels", "implicit_gemm", "merges_of_2", "merges_of_8",
                          "compute-sanitizer", "large"])
        self.has("| device | Toy 100 (cuda:0) |", "| cuDNN | 91002 (/somewhere/libcudnn.so.9) |", "| driver | 580.1 |",
                 "| limits | 700.00 W, 1980 MHz (SM), 2619 MHz (memory) |",
                 "41 cases of 9 programs: 33 run, 7 of them failed; 8 skipped.",  # includes cases lost by fatal ones
                 "- core/ops/killed_test: ends badly<gpu>, was killed, or did not end within 5 s",
                 "- core/ops/hanging_test: ends badly<gpu>, did not end within 5 s",
                 "- core/ops/leaving_test: ends badly<gpu>, ended with status 5",
                 "- core/ops/failing_test: ends badly<gpu>",
                 "- core/ops/lost_test: works, in a way<gpu, tf32>",
                 "- broken_test: (the start of the program), ended with status 127",
                 "- 8: one GPU, two are needed")
        self.like(r"^- core/ops/crashing_test: ends badly<gpu>, (crashed \(signal 11\)|ended with status [0-9]+)$",
                  "a library is missing", r"report_sample.cpp:\d+: .*two and two are five",
                  r"^\| core/ops/fine_test \| 4 \| 0 \| 1 \| [0-9.]+ \|$",
                  r"^\| core/ops/lost_test \| 4 \| 1 \| 1 \| [0-9.]+ \|$")
        self.lacks("cpu_only_test", "is not asked for")
        # compute-sanitizer
        hazards = "0 hazards displayed (0 errors, 0 warnings)"
        self.has(f"| core/ops/fine_test | 0 errors in 4 cases | {hazards} in 4 cases | 0 errors in 4 cases | 0 errors in 4 cases |",
                 f"| core/ops/failing_test | 3 errors in 0 cases | {hazards} in 0 cases | 3 errors in 0 cases | 3 errors in 0 cases |",
                 f"| a step of the convnet | 0 errors | {hazards} | 1 error | 0 errors |",
                 "- core/ops/hanging_test: ends badly<gpu>: did not end within 5 s without the tool")
        self.like(r"^\| core/ops/lost_test \| the tool gave no result \(status 1\)",
                  r"The tool looked at our kernels \(--kernel-regex kns=muster\)", "Invalid __global__ read")
        self.lacks("| nn/fine_test | 0 errors")
        # measurements
        self.has("copies: fast", "convolutions: quick", "MNIST: 7 images a second", "most of it in conv_kernel",
                 "  conv_kernel Invocations 20", "Merges of 8 replicas of 100 MB")
        self.has("8 threads: busy", "convnet: the same bits", "axpy: right", "volta_sgemm 7 us",
                 "conv2: planned: cuDNN conv2=padded (1 x)", "conv2: planned: cuDNN as it likes (1 x)",
                 "| 8 workers | 500 | 0.50 |", "| 1 worker, no recording | 300 | 0.30 |",
                 "| 1 worker, side stream off | 1100 | 1.10 |")
        # the summary
        text = self.report.read_text()
        head = text[text.index("## At a glance"):text.index("## 1. The machine")]
        for line in ("- test core/ops/failing_test: ends badly<gpu>", "- resnet18 (comparison) ended with status 9",
                     "- compute-sanitizer, a step of the convnet, synccheck: 1 error",
                     "- one worker against PyTorch eager: 4 x, goal 5 x: 20 % short of it",
                     "- merging replicas of 100 MB and more: 93.5 %, goal 90 %: reached", "- a faster conv_kernel",
                     "- side stream off: one worker of the convnet is 1.10 times as fast (MUSTER_CUDA_SIDE_STREAM=0)"):
            self.assertIn(f"{line}\n", head)
        self.assertNotIn("no recording", head)
        self.assertEqual([line for line in self.lines() if re.match("## [0-9]", line)],
                         sorted((line for line in self.lines() if re.match("## [0-9]", line)),
                                key=lambda line: int(line.split()[1][:-1])))
        self.like("^resnet18 ended with status 9: out of luck")
        self.assertEqual(self.lines().count("- muster: warning: conv1: planned row-major"), 1)
        self.lacks("not for the report", "==PROF==", "This report is not complete")

        # Running one part keeps the other parts' results; running cases by name keeps the other cases' results.
        self.call(1, "--only", "tests", "--filter", "in a way<gpu, tf32>", "--time-limit", "5")
        self.has("MNIST: 7 images a second", "41 cases of 9 programs: 33 run, 7 of them failed; 8 skipped.")
        self.like(r"^\| core/ops/crashing_test \| 4 \| 1 \| 1 \| [0-9.]+ \|$")

        # --filter matches names of programs and of cases.
        self.assertEqual(self.call(0, "--list", "--filter", "nn/"), "tests/nn/fine_test\n")
        self.assertEqual(self.call(2, "--list", "--filter", "zzzz"),
                         f"gpu: {self.build} has no tests for a GPU with zzzz in their names\n")

        # Results of another build's programs are not reused; those of programs that are the same are.
        self.programs("core/ops/fine", fine="slow")
        self.script(self.build / "tests/bench/device_bits", 'echo "convnet: other bits"')
        said = self.call(1, "--only", "contention", "--minutes", "9")
        self.assertIn("of another build's programs are dropped: core/ops/fine_test, bench/device_bits, bits (bits), "
                      "bits, conv2 by implicit GEMM (bits), and are in", said)
        self.has("36 cases of 8 programs: 29 run, 7 of them failed; 7 skipped.", "MNIST: 7 images a second", "- bits (bits)")
        self.lacks("| a step of the convnet |", "| core/ops/fine_test |", "- convnet (comparison)")
        self.assertTrue((Path(f"{self.results}-before") / "bits/bits.txt").is_file())
        # Nothing is kept of another kind of GPU.
        self.script(self.build / "tests/bench/device_speed", DEVICE_SPEED.replace("Toy 100", "Toy 200"))
        self.assertIn("the results so far are of another GPU", self.call(4, "--only", "contention", "--minutes", "9"))
        self.has("- convnet (comparison)")


class Pieces(Sandbox):
    def test_exclusive_gpu_gets_one_program_at_a_time(self):
        (self.bin / "compute_mode").write_text("Exclusive_Process\n")
        for name in "also", "as_well":
            self.script(self.build / f"tests/core/ops/{name}_test", f"""
                [[ "$*" == *--list* ]] || mkdir '{self.folder}/in use' || exit 9
                REPORT_SAMPLE=slow '{SAMPLE}' "$@"
                status=$?
                [[ "$*" == *--list* ]] || rmdir '{self.folder}/in use'
                exit $status""")
        self.call(4, "--only", "tests", "--filter", "core/ops/a", "--jobs", "3")
        self.has("| compute mode | exclusive to one process, so test programs ran one at a time |",
                 "10 cases of 2 programs: 8 run, 0 of them failed; 2 skipped.")

    def test_pieces_make_a_whole(self):
        """What hangs is cut short where a call has little time, and goes on in the next; nothing is run again."""
        self.programs("core/ops/fine", "core/ops/hanging", "nn/fine")
        few = "--only", "tests", "--minutes", "2", "--time-limit", "12"
        self.call(4, *few, "--jobs", "3", ago=93)  # at most 12 s are left
        self.has("12 cases of 3 programs: 10 run, 0 of them failed; 2 skipped.", "- 3 test cases of 1 programs",
                 "- compute-sanitizer")
        self.call(4, *few, ago=117)  # too late for anything
        first = (self.results / "tests/core__ops__fine_test.log").stat().st_mtime_ns
        self.call(1, *few)
        self.has("15 cases of 3 programs: 12 run, 1 of them failed; 3 skipped.",
                 "- core/ops/hanging_test: ends badly<gpu>, did not end within 12 s")
        self.lacks("test cases of")
        self.assertEqual(first, (self.results / "tests/core__ops__fine_test.log").stat().st_mtime_ns)
        self.call(1, "--minutes", "2", "--time-limit", "8", ago=100)
        self.has("### machine", "- contention (contention)", "- convnet (comparison)")  # the first one always runs
        self.like("^- compute-sanitizer")
        self.call(1, "--minutes", "9", "--time-limit", "8")
        self.lacks("This report is not complete")
        self.like("^resnet18 ended with status 9: out of luck")

    def test_measurement_cut_off_by_the_end_of_a_call(self):
        """It leaves what it printed, and is run again; only one that had its whole limit has failed."""
        self.script(self.build / "tests/bench/device_bits", 'echo "convnet: so far"; sleep 30')
        only = "--only", "bits", "--minutes", "2"
        self.call(4, *only, ago=102)  # 3 s are left
        self.has("convnet: so far", "It was cut off; so far:", "- bits (bits)", "Nothing that was run.")
        self.lacks("ended with status")
        self.script(self.build / "tests/bench/device_bits", 'echo "convnet: the same bits"')
        self.call(4, *only)
        self.has("convnet: the same bits")
        self.lacks("convnet: so far", "It was cut off", "- bits (bits)")
        self.script(self.build / "tests/bench/device_bits", 'echo "convnet: so far"; sleep 30')
        shutil.rmtree(self.results)
        hasty = (MEASURED["bits"][0]._replace(needs=1, most=2),)
        with unittest.mock.patch.dict(MEASURED, bits=hasty):
            self.call(1, *only)
        self.has("- bits (bits) ended with status 124", "convnet: so far")

    def test_ended_from_outside(self):
        """The report is one, the next call continues, and asked to end it leaves nothing running."""
        self.programs("core/ops/fine", "core/ops/slow", "nn/fine", slow="slow")
        (self.build / "tests/bench/seconds").write_text("0.7")
        (self.build / "tests/bench/luck").touch()
        for number, moment in ((signal.SIGKILL, 0.8), (signal.SIGKILL, 2.3), (signal.SIGTERM, 0.5), (signal.SIGTERM, 1.8)):
            with self.subTest(signal=number, moment=moment):
                shutil.rmtree(self.results, ignore_errors=True)
                self.report.unlink(missing_ok=True)
                call = subprocess.Popen([sys.executable, HERE / "report", "--build", self.build, "--out", self.report,
                                         "--jobs", "2"], stderr=subprocess.DEVNULL, start_new_session=True)
                time.sleep(moment)
                if number == signal.SIGKILL:
                    os.killpg(call.pid, number)  # as a shell kills a command with its children
                else:
                    call.send_signal(number)
                call.wait()
                if number == signal.SIGTERM:
                    self.assertFalse(self.still_running())
                if self.report.exists():
                    self.has("# muster on a GPU", "## 9. compute-sanitizer",
                             "This report is not complete. It lacks:")
                while self.still_running():
                    time.sleep(0.1)
                self.call(0, "--minutes", "9")
                self.has("15 cases of 3 programs: 12 run, 0 of them failed; 3 skipped.")
                self.lacks("This report is not complete")

    def still_running(self):
        return subprocess.run(["pgrep", "-f", f"{SAMPLE} --test-case"], stdout=subprocess.DEVNULL).returncode == 0


class Quick(Sandbox):
    """The preset for a quarter of an hour. Stand-ins write how they were called into one file."""

    def setUp(self):
        super().setUp()
        self.calls = self.folder / "calls"
        note = f'echo "${{0##*/}} $* [${{MUSTER_CUDA_CONV2D-}} ${{MUSTER_CUDA_SIDE_STREAM-}}]" >>{self.calls}\n'
        self.script(self.build / "tests/core/ops/conv2d_test", note)
        self.script(self.bin / "compute-sanitizer", note)
        self.script(self.bin / "ncu", note + "[[ $* == --version ]] || echo '  implicit_kernel conflicts 0'")
        for program in "device_bits", "device_launches", "device_convolutions":
            self.script(self.build / "tests/bench" / program, note)
        self.script(self.build / "tests/bench/gpu_end_to_end", note + END_TO_END)
        (self.build / "tests/bench/luck").touch()

    def called(self, program):
        return [line for line in self.calls.read_text().splitlines() if line.startswith(f"{program} ")]

    def test_each_half_fits_its_call(self):
        """Beside what a call needs to look at the GPU and to write the report."""
        self.assertLessEqual(sum(one.needs for one in QUICK_FIRST), 400 - 15 - 40)
        self.assertLessEqual(sum(one.needs for one in QUICK_SECOND), 240 - 15 - 30)
        names = [one.name for one in MEASURED["quick"]]
        self.assertEqual(len(names), len(set(names)))

    def test_two_calls_make_it_whole(self):
        half = unittest.mock.patch.dict(MEASURED, quick=QUICK_FIRST)
        with half:
            self.call(0, "--only", "quick", "--seconds", "400")
        self.assertEqual(self.called("compute-sanitizer"), [])
        first = self.calls.read_text()
        self.call(0, "--only", "quick", "--seconds", "240")
        self.assertTrue(self.calls.read_text().startswith(first))
        self.assertEqual(len(self.called("conv2d_test")), 1)
        self.assertIn(f"--source-file=*conv2d* --test-case={GPU_CASES} [ ]", self.called("conv2d_test")[0])
        checks = self.called("compute-sanitizer")
        self.assertEqual([call.split("--tool ")[1].split()[0] for call in checks], ["memcheck", "racecheck", "synccheck", "initcheck"])
        self.assertTrue(all("--kernel-name kns=implicit --error-exitcode 9" in call for call in checks))
        self.assertEqual(self.called("device_bits"),
                         ["device_bits --device cuda:0 --steps 20 --gradients 100 --runs 2 [conv2=implicit-gemm ]"])
        for section in SECTIONS:
            self.assertIn(f"--section {section} ", self.called("ncu")[0])
        self.assertIn("--kernel-name regex:implicit", self.called("ncu")[0])
        arms = [call for call in self.called("gpu_end_to_end") if "--details" in call]
        self.assertEqual([call.split("[")[1] for call in arms],
                         [" ]", "conv2=implicit-gemm ]", "conv2=implicit-gemm 0]", "conv2=padded ]", " ]", "conv2=implicit-gemm ]"])
        self.has("## 0. In a quarter of an hour", "| 1 worker, implicit GEMM, side stream off | 1100 | 1.10 |",
                 "| 8 workers | 500 | 0.50 |", "  implicit_kernel conflicts 0", "volta_sgemm 7 us")
        self.lacks("This report is not complete")

    def test_stops_at_a_failed_test(self):
        self.script(self.build / "tests/core/ops/conv2d_test", "echo wrong; exit 1")
        self.assertIn("cases of conv2d failed, so nothing else of quick is run", self.call(1, "--only", "quick", "--seconds", "400"))
        self.has("- cases of conv2d (quick) ended with status 1", "- 1 worker (quick)")
        self.assertFalse(self.calls.exists())

    def test_room_instead_of_a_program_of_its_own(self):
        os.rename(self.build / "tests/core/ops/conv2d_test", self.build / "tests/core/ops/core_ops_test")
        self.call(0, "--only", "quick", "--seconds", "400")
        self.assertIn("--source-file=*conv2d*", self.called("core_ops_test")[0])

    def test_changed_program_is_measured_again(self):
        """Only that one."""
        self.call(0, "--only", "quick", "--seconds", "400")
        self.calls.unlink()
        self.script(self.build / "tests/bench/device_launches", f"echo changed; echo device_launches >>{self.calls}")
        self.call(0, "--only", "quick", "--seconds", "60", ago=25)
        self.assertEqual(self.calls.read_text(), "device_launches\n")
        self.has("changed")

    def test_pytorch_keeps_what_it_has_compiled(self):
        self.call(0, "--only", "quick", "--seconds", "400", "--python", f"env >{self.folder}/environment; true")
        said = (self.folder / "environment").read_text()
        self.assertIn("TORCHINDUCTOR_FX_GRAPH_CACHE=1\n", said)
        self.assertRegex(said, "(?m)^TORCHINDUCTOR_CACHE_DIR=/.*-muster-torch$")


class Tools(Sandbox):
    def test_cold_libraries_do_not_use_up_a_limit(self):
        library = self.build / "lib/libcudnn_graph.so.9"
        library.parent.mkdir()
        os.mkfifo(library)  # opening it for writing needs a reader
        disk = threading.Thread(target=lambda: library.open("wb").close(), daemon=True)
        disk.start()
        self.script(self.build / "tests/bench/device_speed", "exit 1")
        self.call(3)
        disk.join(5)
        self.assertFalse(disk.is_alive())

    def test_what_counts_as_failure(self):
        self.programs("core/ops/fine")
        (self.build / "tests/bench/luck").touch()
        self.call(0)
        self.script(self.bin / "ncu", 'echo "no permission" >&2; exit 7')
        self.call(0, "--only", "traces")
        self.has("kernels ended with status 7: no permission")
        (self.build / "tests/bench/trace_status").write_text("134")
        self.call(1, "--only", "traces")
        self.like("^traces ended with status 134")
        (self.build / "tests/bench/trace_status").unlink()
        self.call(0, "--only", "traces")
        # If compute-sanitizer misses the planted error, its other verdicts do not count.
        (self.bin / "planted").write_text("========= ERROR SUMMARY: 0 errors\n")
        self.call(1, "--only", "sanitizer")
        self.like("^compute-sanitizer does not find an error on this machine that was made on purpose")
        self.lacks("| core/ops/fine_test | 0 errors")

    def run_gpu(self, build, *options):
        return subprocess.run([HERE.parent.parent / "run", "gpu", "--build", build, "--out", self.report, *options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_few_files(self):
        """All results are in one file, from which the next call goes on."""
        self.programs("core/ops/fine")
        few = "--few-files", "--only", "tests,contention"
        self.call(4, *few)
        self.assertEqual(sorted(file.name for file in self.folder.glob("report*")), ["report.md", "report.tar.gz"])
        said = self.call(4, *few, "--minutes", "9")
        self.assertNotIn("Running", said)
        self.has("5 cases of 1 programs: 4 run, 0 of them failed; 1 skipped.", "8 threads: busy")
        self.assertEqual(sorted(file.name for file in self.folder.glob("report*")), ["report.md", "report.tar.gz"])

    def test_packed_build(self):
        self.programs("nn/fine")
        with tarfile.open(self.folder / "packed.tar.xz", "w:xz") as packed:
            packed.add(self.build, ".")
        self.assertEqual(self.run_gpu(self.folder / "packed.tar.xz", "--only", "tests").returncode, 4)
        self.has("5 cases of 1 programs: 4 run, 0 of them failed; 1 skipped.")
        self.report.unlink()
        self.build = self.folder / "packed.tar.xz"
        self.call(4, "--only", "tests", "--few-files")
        # The build is unpacked beside the packed file, not beside the report.
        self.assertEqual(sorted(file.name for file in self.folder.glob("*report*")), ["report.md", "report.tar.gz"])
        self.assertTrue((self.folder / "packed-build/tests/nn/fine_test").is_file())
        self.has("5 cases of 1 programs: 4 run, 0 of them failed; 1 skipped.")

    def test_without_gpu(self):
        """It says so first, and keeps what may tell why, but touches no report; it ends with a status of its own."""
        library = self.build / "lib/libcudnn.so.9"
        library.parent.mkdir()
        library.write_text("no library")
        kept = self.folder / "report-no-gpu.txt"
        self.script(self.build / "tests/bench/device_speed", 'echo "device_speed: cuda:0 is not there" >&2; exit 1')
        with tarfile.open(self.folder / "packed.tar", "w") as packed:
            packed.add(self.build, ".")
        for build in self.build, self.folder / "packed.tar":
            self.build = build
            said = self.call(3)
            self.assertEqual(said.splitlines()[0], "gpu: no GPU can be used here: cuda:0 is not there")
            self.assertTrue(said.startswith(kept.read_text()))
            self.assertRegex(said, r"(?m)^Linux .*(\n.*)*\n/.*/lib/libcudnn.so.9: OSError: ")
            self.assertEqual(list(self.folder.glob("report*")), [kept])
            self.assertEqual(list(self.folder.glob("packed-build")), [])
        if not Path("/dev/nvidiactl").exists() and not Path("/dev/dxg").exists():
            self.script(self.bin / "nvidia-smi", "exit 9")
            call = self.run_gpu(self.build)
            self.assertEqual(call.returncode, 3, call.stdout)
            self.assertRegex(call.stdout, "^.*this machine has no NVIDIA GPU.*\n$")
            self.assertFalse(self.report.exists())


if __name__ == "__main__":
    SAMPLE = sys.argv.pop(1)
    unittest.main()
