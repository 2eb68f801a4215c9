"""./run docs: makes the site of the guides, the READMEs and the API in build/docs. Undocumented members are allowed; all
other warnings of Doxygen are errors."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from project import ROOT, RUN, SKIPPED, Parser, build, fail, say
from site_search import index_pages

STYLE = Path("/usr/share/doxygen-awesome-css/doxygen-awesome.css")
MATHJAX = Path("/usr/share/javascript/mathjax")
LOG = ROOT / "build/docs/warnings.log"


def settings():
    text = (ROOT / "examples/docs/Doxyfile").read_text(encoding="utf-8")
    version = subprocess.run(["doxygen", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    # From Doxygen 1.9.5 on, the style requires the LIGHT colours.
    if tuple(map(int, re.findall("[0-9]+", version)[:3])) >= (1, 9, 5):
        text += "\nHTML_COLORSTYLE = LIGHT\n"
    return text


def without_lists(layout):
    """Doxygen's layout without the lists of all classes and of all functions in the navigation."""
    return re.sub(r'(<tab type="(?:class[a-z]*|hierarchy|namespacemembers)" visible=)"[^"]*"', r'\1"no"', layout)


def run_doxygen(text):
    """Runs Doxygen on these settings at the root, whose name they take from PWD."""
    return subprocess.run(["doxygen", "-"], cwd=ROOT, env={**os.environ, "PWD": str(ROOT)}, input=text, text=True).returncode


def options_page(folder):
    """The page of the commands and options of muster and the small examples, from their own help; builds those that are
    missing in this folder, but for torch_resnet, which is left out: it needs libtorch."""
    examples = sorted(file.stem for file in (ROOT / "examples").glob("*.cpp") if file.stem not in ("muster", "torch_resnet"))
    targets = {"muster": "muster_program", **{name: name for name in examples}}
    if missing := [target for name, target in targets.items() if not (folder / name).exists()]:
        build("release", *missing)
    told = lambda *command: subprocess.run([folder / command[0], *command[1:]], stdout=subprocess.PIPE, text=True,
                                           check=True).stdout
    whole = told("muster", "--help")
    text = f"# Commands and options {{#options}}\n\n[TOC]\n\n```text\n{whole}```\n"
    for command in re.findall(r"^  ([a-z]+)\b.*  \S", whole, re.M):
        if command != "muster":
            text += f"\n## {command} {{#options-{command}}}\n\n```text\n{told('muster', command, '--help')}```\n"
    text += "\n## Small examples {#options-examples}\n"
    for name in [*examples, *(["torch_resnet"] if (folder / "torch_resnet").exists() else [])]:
        text += f"\n### {name} {{#options-{name}}}\n\n```text\n{told(name, '--help')}```\n"
    return text


def main():
    Parser("docs", __doc__).parse()
    tree = ROOT / "build/docs/tree/muster"
    tree.parent.mkdir(parents=True, exist_ok=True)
    tree.unlink(missing_ok=True)
    tree.symlink_to(ROOT)
    subprocess.run([RUN, "packages", "doxygen", "doxygen-awesome-css", "libjs-mathjax"])
    if not shutil.which("doxygen") or not STYLE.exists() or not MATHJAX.exists():
        say("skipped: the site needs Doxygen 1.9.4 or newer [Debian: doxygen], its style, Doxygen Awesome 2 "
            "[doxygen-awesome-css], and for formulas MathJax 2 [libjs-mathjax]")
        return SKIPPED
    (ROOT / "build/docs/options.md").write_text(options_page(ROOT / "build/release/examples"), encoding="utf-8")
    layout = ROOT / "build/docs/layout.xml"
    subprocess.run(["doxygen", "-l", layout], check=True)
    layout.write_text(without_lists(layout.read_text(encoding="utf-8")), encoding="utf-8")
    if run_doxygen(settings()):
        fail("Doxygen failed")
    site = ROOT / "build/docs/html"
    index_pages(site)
    shutil.copytree(MATHJAX, site / "mathjax", ignore=shutil.ignore_patterns("unpacked", "localization", "test"),
                    dirs_exist_ok=True)
    warnings = [line for line in LOG.read_text(errors="replace").splitlines()
                if not re.search("Member .* of (class|struct|union|namespace) .* is not documented", line)]
    if warnings:
        say("\n".join(warnings))
        fail(f"Doxygen has warnings (log: {LOG}); the site is in build/docs")
    say("The site is in build/docs: open build/docs/html/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
