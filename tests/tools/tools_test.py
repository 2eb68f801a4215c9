"""Tests the tools of ./run without what they install: how they read their command lines, what they would run, and their
messages. tests/run_test.sh runs them whole, with scripts in place of CMake and apt."""
import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "gpu")]

import bench  # noqa: E402
import docs  # noqa: E402
import fuzz  # noqa: E402
import gpu  # noqa: E402
import nodes  # noqa: E402
import pack  # noqa: E402
import seeds  # noqa: E402
import selected  # noqa: E402
import site_search  # noqa: E402
import soak  # noqa: E402

TOOLS = sorted(file.stem for file in HERE.glob("*.py") if file.stem not in ("project", "optional_python", "site_search", "tools_test"))


def outcome(function, *arguments):
    """The exit status of a call that ends the program, and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            status = function(*arguments)
        except SystemExit as end:
            status = end.code
    return status, said.getvalue()


def script(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/bash\n" + text)
    file.chmod(0o755)


class Help(unittest.TestCase):
    def test_every_command_is_in_the_list(self):
        text = (HERE / "help.txt").read_text()
        cases = re.search(r"\ncase \$verb in\n(.*)\nesac", (ROOT / "run").read_text(), re.DOTALL)[1]
        commands = {name for line in re.findall(r"^  ([a-z| -]+)\)", cases, re.MULTILINE) for name in line.split(" | ")
                    if name[0] != "-"}
        self.assertLessEqual({"mnist", "test", "bench", "gpu", "help"}, commands)
        for command in commands - {"build", "packages"}:  # for the tools
            self.assertRegex(text, rf"(?m)^  \./run {command}\b")
        for part in soak.PARTS:
            self.assertRegex(text, rf"\b{part}\b")

    def test_every_tool_explains_itself(self):
        for tool in set(TOOLS) - {"bench", "gpu"}:  # whose --help is that of the programs
            with self.subTest(tool=tool):
                call = subprocess.run([sys.executable, "-B", HERE / f"{tool}.py", "--help"], capture_output=True, text=True)
                self.assertEqual((call.returncode, call.stderr), (0, ""))
                self.assertIn("./run ", call.stdout)

    def test_packages_are_lines_of_name_and_contents(self):
        section, found = None, {}
        for line in (HERE / "packages.txt").read_text().splitlines()[3:]:
            if line.startswith("["):
                section = line.strip("[]")
            elif line:
                self.assertRegex(line, r"^[a-z0-9.+@-]+ \| \S")
                found.setdefault(section, []).append(line.split(" ")[0])
        self.assertEqual(set(found), {"build", "test", "mpi", "gloo", "page", "tensorboard", "optional", "bench", "clang", "fuzz"})
        self.assertLessEqual(set(found["clang"]), set(found["fuzz"]))


class CommandLines(unittest.TestCase):
    def test_nodes(self):
        def read(*arguments):
            options = nodes.read(arguments)
            return options.by, options.processes, options.interface, options.namespaces, options.rate, options.rest
        self.assertEqual(read(), ("mpi", 2, "", "", "", []))
        self.assertEqual(read("3", "--epochs", "2"), ("mpi", 3, "", "", "", ["--epochs", "2"]))
        self.assertEqual(read("--gloo", "4", "--interface", "eth0", "--workers", "1", "--gloo"),
                         ("gloo", 4, "eth0", "", "", ["--workers", "1", "--gloo"]))
        self.assertEqual(read("--namespaces", "3", "--rate", "100mbit"), ("gloo", 2, "", "3", "100mbit", []))
        self.assertTrue(nodes.read(["--measure", "--short"]).measure)
        self.assertEqual(outcome(nodes.read, ["--rate", "1mbit"]), (1, "run: nodes: --rate needs --namespaces\n"))
        self.assertEqual(outcome(nodes.read, ["--interface"]), (1, "run: nodes: --interface wants a value\n"))
        self.assertEqual(outcome(nodes.read, ["000"]), (1, "run: ./run nodes wants at least 1 process\n"))

    def test_bench(self):
        tests = Path("/b")
        self.assertEqual(bench.commands("inference", tests, ["--rounds", "1"]), [[tests / "bench/inference", "--rounds", "1"]])
        self.assertEqual(bench.commands("all", tests, []), [[tests / "bench/end_to_end", "--kernels", "."]])
        self.assertEqual(bench.commands("all", tests, ["--kernels=pool"]), [[tests / "bench/end_to_end", "--kernels=pool"]])

    def test_fuzz(self):
        call = [str(word) for word in fuzz.command("csv", "-runs=7")]
        program = next(index for index, word in enumerate(call) if word.endswith("/tests/fuzz/fuzz_csv"))
        self.assertEqual(call[program + 1], f"{ROOT}/build/fuzz/corpus/csv")
        for word in "-runs=7", "-max_len=2048", "-malloc_limit_mb=64", f"-artifact_prefix={ROOT}/build/fuzz/found/csv-":
            self.assertIn(word, call)
        self.assertIn("-max_len=8192", fuzz.command("model", "-runs=7"))
        self.assertEqual(fuzz.environment()["OMP_NUM_THREADS"], "1")

    def test_soak_in_bare_roots(self):
        def roots(*arguments):
            with unittest.mock.patch.object(soak, "check") as check, unittest.mock.patch("sys.argv", ["soak", *arguments]):
                status, _ = outcome(soak.main)
            for call in check.call_args_list:
                self.assertEqual(call.args[0][0], ROOT / "tests/bare_root.sh")
            return status, [(call.args[0][1], call.args[0][-1].split(";")[0]) for call in check.call_args_list]
        self.assertEqual(roots("walk"), (0, [("bookworm", "./run mnist"), ("trixie", "./run mnist")]))
        self.assertEqual(roots("walk", "--release", "trixie"), (0, [("trixie", "./run mnist")]))
        self.assertEqual(roots("aarch64"), (0, [("trixie", "tests/aarch64.sh")]))
        for wrong in ["--release"], ["--release", "buster"], ["--release="]:
            with unittest.mock.patch("sys.argv", ["soak", "walk", *wrong]):
                self.assertEqual(outcome(soak.main), (1, "run: --release wants bookworm or trixie\n"))

    def test_bare_roots_need_debootstrap(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in "bash", "dirname", "env", "id":
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            call = subprocess.run([ROOT / "tests/bare_root.sh", "trixie", "true"], capture_output=True, text=True,
                                  env={"PATH": folder})
        self.assertEqual((call.returncode, call.stdout), (77, "skipped: a bare root needs root and debootstrap\n"))

    @unittest.skipIf(os.geteuid() != 0 or not (ROOT / ".git").exists() or
                     subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode,
                     "needs root, mounts of its own and git's list of files")
    def test_a_bare_root_has_the_tree_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            script(Path(folder) / "bin/debootstrap", """
root=${@: -1}
mkdir -p "$root"/{proc,dev,bin,usr/bin}
for tool in bash env cat ls; do
  for file in "$(command -v $tool)" $(ldd "$(command -v $tool)" | grep -o '/[^ ]*'); do
    cp -L --parents "$file" "$root"
  done
done
ln -sf /usr/bin/* "$root/bin" 2>/dev/null
""")
            mounts = Path("/proc/mounts").read_text()
            call = subprocess.run([ROOT / "tests/bare_root.sh", "trixie", "bash", "-c",
                                   "echo $PWD $HOME $MUSTER_DATA_DIR $FOREIGN; ls CMakeLists.txt /dev/null /proc/self/exe; exit 3"],
                                  capture_output=True, text=True, env={"PATH": f"{folder}/bin:{os.environ['PATH']}",
                                                                       "TMPDIR": folder, "FOREIGN": "seen"})
            self.assertEqual((call.returncode, call.stderr), (3, ""))
            self.assertEqual(call.stdout.split(), ["/muster", "/root", "/dev/null", "/proc/self/exe", "CMakeLists.txt"])
            self.assertEqual(os.listdir(folder), ["bin"])
            self.assertEqual(Path("/proc/mounts").read_text(), mounts)

    def test_gpu_pack(self):
        self.assertEqual(pack.read(["dir/", "--arch", "90"]), ("dir", "90"))
        self.assertEqual(pack.read(["--arch=80", "dir"]), ("dir", "80"))
        for wrong in ["--arch"], ["dir", "--arch", "9.0"], ["dir", "--arch=all"]:
            self.assertEqual(outcome(pack.read, wrong)[0], 2)


class Programs(unittest.TestCase):
    """Lists of programs name what there is."""

    def test_selected(self):
        have = {file.stem for file in (ROOT / "tests").rglob("*_test.cpp")}
        for presets in selected.PLAIN, selected.SANITIZERS:
            for names in presets.values():
                self.assertEqual([name for name in names.split() if name not in have], [])

    def test_seeds(self):
        files = seeds.drawing_files()
        self.assertIn("core/ops/conv2d_test", files)
        self.assertNotIn("core/base/fields_test", files)

    def test_promises_name_tests_that_exist(self):
        page = (ROOT / "examples/docs/promises.md").read_text(encoding="utf-8")
        files = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*_test.cpp")}
        named = [row.split(" | ")[1] for row in page.split("\n\n")[2].splitlines()[2:]]
        self.assertGreater(len(named), 15)
        for proof in named:
            for text in re.findall("`([a-z_0-9]+_test)`", proof):
                self.assertIn(text, files)
            for case in re.findall('"([^"]+)"', proof):
                self.assertTrue(any(f'"{case}' in re.sub('"\\s+"', "", text) for text in files.values()), case)


class Nodes(unittest.TestCase):
    """Processes that write down what they got."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    def test_each_gets_its_place_and_the_first_failure_counts(self):
        script(self.folder / "program", f'echo "$MUSTER_NODES $MUSTER_INTERFACE $*" >{self.folder}/got$MUSTER_NODE\n'
                                        '[[ -d $MUSTER_STORE ]] || exit 9\nexit $((MUSTER_NODE == 1 ? 3 : 0))')
        self.assertEqual(nodes.run_by_gloo(nodes.read(["--gloo", "3", "--epochs", "1"]), [str(self.folder / "program")]), 3)
        self.assertEqual([(self.folder / f"got{node}").read_text() for node in range(3)], 3 * ["3 lo --epochs 1\n"])

    def test_interrupt_lets_them_save(self):
        """Ctrl-C reaches them once, as SIGUSR1, and the tool waits until they have ended."""
        program = self.folder / "program"
        script(program, f"trap 'echo saved >{self.folder}/saved$MUSTER_NODE; exit 130' USR1\ntouch {self.folder}/ready$MUSTER_NODE\n"
                        "while true; do sleep 0.05; done")
        call = subprocess.Popen([sys.executable, "-Bc", f"import sys; sys.path.insert(0, {str(HERE)!r}); import nodes\n"
                                 f"sys.exit(nodes.run_by_gloo(nodes.read(['--gloo', '2']), {[str(program)]!r}))"])
        while len(list(self.folder.glob("ready*"))) < 2:
            time.sleep(0.02)
        call.send_signal(signal.SIGINT)
        self.assertEqual(call.wait(), 130)
        self.assertEqual(len(list(self.folder.glob("saved*"))), 2)


class Pack(unittest.TestCase):
    """Packs a build of stand-ins."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.build, self.to, tools = self.folder / "build", self.folder / "to", self.folder / "bin"
        script(self.build / "tests/core/ops/conv2d_test", """echo '<doctest><TestCase name="works<gpu>"/></doctest>'""".replace("<gpu>", "&lt;gpu>"))
        script(self.build / "tests/core/interop/torch_test", """echo '<doctest><TestCase name="torch gpu"/></doctest>'""")
        for name in pack.BENCHMARKS:
            script(self.build / "tests/bench" / name, "")
        (self.build / "tests/bench/torch_training.py").touch()
        script(self.build / "examples/muster", "")
        (self.folder / "libours.so.1").write_text("ours")
        (self.folder / "libcupti.so").write_text("traces")
        (self.build / "CMakeFiles/3.25").mkdir(parents=True)
        (self.build / "CMakeFiles/3.25/CMakeCUDACompiler.cmake").write_text('set(CMAKE_CUDA_COMPILER_VERSION "12.4.131")\n')
        (self.build / "CMakeCache.txt").write_text(f"CUDA_cupti_LIBRARY:FILEPATH={self.folder}/libcupti.so\n")
        script(tools / "ldd", f"""
            case $* in
              --version) echo 'ldd (Debian GLIBC 2.36-9) 2.36' ;;
              *torch_test) echo '  libtorch_cpu.so => /lib/libtorch_cpu.so (0x1)' ;;
              *) echo '  libours.so.1 => {self.folder}/libours.so.1 (0x2)'; echo '  libc.so.6 => /lib/libc.so.6 (0x3)' ;;
            esac""")
        script(tools / "install", 'cp "$2" "$3"')  # without stripping
        path = unittest.mock.patch.dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)

    def test_what_is_packed(self):
        status, said = outcome(pack.main, [str(self.to), "--arch", "90"], lambda arch: self.assertEqual(arch, "90") or self.build)
        self.assertEqual(status, 0, said)
        files = {str(file.relative_to(self.to)) for file in self.to.rglob("*") if file.is_file()} - {"revision"}
        report = {name for name in files if name.startswith("gpu_report/")}
        self.assertIn("gpu_report/__main__.py", report)
        run_files = {f"examples/{file.name}" for file in (ROOT / "examples").glob("*.json")}
        self.assertEqual(files - report - run_files, {
            "examples/muster", "tests/core/ops/conv2d_test", "tests/bench/torch_training.py", "lib/libours.so.1",
            "lib/libcupti.so.12", *(f"tests/bench/{name}" for name in pack.BENCHMARKS)})
        self.assertLessEqual(run_files, files)
        self.assertIn(f"{self.to}: 8 programs", said)
        self.assertIn("glibc 2.36 or newer and NVIDIA's driver 525 (CUDA 12) or newer", said)
        self.assertNotIn("MiB, and the sources", said)
        packed = next(self.folder.glob("to.tar.*"))
        listed = subprocess.run(["tar", "-tf", packed], capture_output=True, text=True, check=True).stdout
        self.assertIn("./tests/core/ops/conv2d_test\n", listed)

    def test_limit_counts_the_sources(self):
        with unittest.mock.patch.object(pack, "MOST", 100):
            status, said = outcome(pack.main, [str(self.to)], lambda arch: self.build)
        self.assertEqual(status, 0)
        self.assertIn("has more than 50 MiB, and the sources go with it", said)

    def test_failure_of_a_tool(self):
        script(self.folder / "bin/install", "exit 5")
        status, said = outcome(pack.main, [str(self.to)], lambda arch: self.build)
        self.assertEqual(status, 1)
        self.assertRegex(said, r"pack: Command .*install.* returned non-zero exit status 5")


class Gpu(unittest.TestCase):
    def test_capability(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
            for said, expected in (("9.0\\n9.0", "90"), ("8.0\\n9.0", ""), ("", "")):
                script(Path(folder) / "nvidia-smi", f"printf '{said}'")
                self.assertEqual(gpu.capability(), expected)


class Docs(unittest.TestCase):
    def test_search_finds_headings_and_what_guides_are_about(self):
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder)
            (site / "search").mkdir()
            (site / "search/searchdata.js").write_text('var indexSectionsWithContent =\n{\n  0: "aelm",\n  1: "a"\n};\n')
            for number in range(4):
                (site / f"search/all_{number}.js").write_text(
                    "var searchData=\n[\n  ['x_0',['x',['../x.html',1,'']]],\n  ['y_1',['y',['../tables.html',1,'guides']]]\n];\n")
            page = '<!-- PageDoc --><div class="title">{}</div><div class="textblock"><p>{}</p></div><!-- contents -->'
            section = '<h1><a class="anchor" id="{}"></a>\n{}</h1><p>{}</p>'
            (site / "guides.html").write_text('<div class="title">Guides</div><a class="el" href="tables.html">Tables</a>'
                                              '<a class="el" href="tables.html#tables-mpi">MPI</a>'
                                              '<a class="el" href="class.html">Example</a><a class="el" href="tables.html">All</a>')
            (site / "bare.html").write_text("<!-- PageDoc --><p>no title, no text</p>")
            (site / "index.html").write_text(page.format("muster", "one <b>MPI</b>" + 40 * " filler"))
            (site / "tables.html").write_text(page.format(
                "A table, end to end", "with mpi and the <code>learningRate</code>" +
                section.format("tables-early", "Early <code>&amp;</code> all", "") +
                section.format("tables-mpi", "Several", "mpi-run, mpi, mpi; the learning rate minimises") +
                '<div class="ttc"><div class="ttname">apibox</div></div>\n'))
            (site / "core.html").write_text(page.format("Merges", "unread" + section.format("core-x", "Each merge", "")))
            (site / "class.html").write_text('<div class="title">Example Class</div>')
            site_search.index_pages(site)
            found = [(site / f"search/all_{number}.js").read_text() for number in range(4)]
            self.assertEqual(found[1].splitlines(), [
                "var searchData=", "[",
                """  ['early_20_26_20all_guide0',["Early &amp; all (A table, end to end)",['../tables.html#tables-early',1,'guide']]],""",
                """  ['end_20to_20end_guide1',["A table, end to end",['../tables.html',1,'guide']]],""",
                "  ['x_0',['x',['../x.html',1,'']]]", "];"])
            self.assertNotIn("guide", found[0])  # all, and: function words
            self.assertIn("""['learning_20rate_guide""", found[2])
            self.assertEqual(re.findall(r"'(m[a-z_0-9]*)_[a-z]*[0-9]+',\[\"([^\"]*)", found[3]), [
                ("muster", "muster"), ("minimises", "minimises: Several (A table, end to end)"),
                ("minimizes", "minimizes: Several (A table, end to end)"),
                ("mpi", "mpi: muster"), ("mpi_2drun", "mpi-run: Several (A table, end to end)"),
                ("merge", "Each merge (Merges)"), ("merges", "Merges")])
            self.assertNotRegex("".join(found), "unread|apibox|'y_1'")

    def test_doxygen_sees_the_root_from_any_folder(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", PWD=folder, OUT=f"{folder}/out"):
            tool = Path(folder) / "doxygen"
            tool.write_text(f'#!{sys.executable}\nimport os, sys\n'
                            'open(os.environ["OUT"], "w").write(f"{os.environ[\'PWD\']} {os.getcwd()} {sys.stdin.read()}")\n')
            tool.chmod(0o755)
            self.assertEqual(docs.run_doxygen("settings"), 0)
            self.assertEqual((Path(folder) / "out").read_text(), f"{ROOT} {ROOT} settings")

    def test_navigation_has_no_list_of_all_classes(self):
        layout = ('<tab type="modules" visible="yes" title=""/>\n<tab type="classlist" visible="yes"/>\n'
                  '<tab type="classindex" visible="$ALPHABETICAL_INDEX"/>\n<tab type="namespacemembers" visible="yes"/>\n')
        self.assertEqual(docs.without_lists(layout),
                         '<tab type="modules" visible="yes" title=""/>\n<tab type="classlist" visible="no"/>\n'
                         '<tab type="classindex" visible="no"/>\n<tab type="namespacemembers" visible="no"/>\n')

    def test_options_page_builds_missing_programs(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make = lambda _, *targets: [script(folder / target.removesuffix("_program"), f"echo '  train   {target}'\n")
                                        for target in targets]
            make("", "own_layer")
            with unittest.mock.patch.object(docs, "build", side_effect=make) as build:
                page = docs.options_page(folder)
                for heading, target in ("## train {#options-train}", "muster_program"), \
                                       ("### mnist_convnet {#options-mnist_convnet}", "mnist_convnet"):
                    self.assertIn(f"{heading}\n\n```text\n  train   {target}\n```\n", page)
                self.assertNotIn("torch_resnet", page)
                make("", "torch_resnet")
                self.assertIn("### torch_resnet {", docs.options_page(folder))
            build.assert_called_once()
            self.assertIn("muster_program", build.call_args.args)
            self.assertFalse({"muster", "own_layer", "torch_resnet"} & set(build.call_args.args))


class Examples(unittest.TestCase):
    def test_guides_quote_examples_as_they_are(self):
        quoted = set()
        for page in (ROOT / "examples/docs").glob("*.md"):
            text = page.read_text(encoding="utf-8")
            for file, block in re.findall(r"<!-- tested: excerpt of ([^ ]*) -->\n```cpp\n(.*?)\n```\n", text, re.S):
                plain = lambda text: "\n".join(line.strip() for line in text.splitlines())
                self.assertIn(plain(block), plain((ROOT / file).read_text(encoding="utf-8")), f"{page.name} quotes {file}")
                quoted.add(Path(file).stem)
        self.assertLessEqual({"char_lstm", "data_parallel", "fine_tune", "lenet_from_scratch", "own_layer", "own_model",
                              "own_strategy", "resnet18_fashion", "torch_resnet"}, quoted)

    def test_pages_name_source_files_that_exist(self):
        known = {file.name for folder in ("core", "datasets", "examples", "parallel", "tests")
                 for file in (ROOT / folder).rglob("*.*")}
        known |= {"first.cpp", "layers.h", "x.h", "x.cpp", "x_test.cpp"}  # the reader's, one that CMake writes, any op's
        pages = [page for folder in ("core", "datasets", "examples", "parallel", "tests") for page in (ROOT / folder).rglob("*.md")]
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages]:
            named = re.findall(r"`(?:[\w.-]+/)*([\w-]+\.(?:cpp|cu|h|py|sh))`", page.read_text(encoding="utf-8"))
            self.assertEqual(set(named) - known, set(), page)

    def test_small_examples_stay_small(self):
        programs = sorted(file for file in (ROOT / "examples").glob("*.cpp") if file.stem != "muster")
        self.assertGreater(len(programs), 8)
        for file in programs:
            with self.subTest(file=file.name):
                most = 60 if file.stem == "mnist_convnet" else 150
                self.assertLessEqual(len(file.read_text(encoding="utf-8").splitlines()), most)


if __name__ == "__main__":
    unittest.main()
