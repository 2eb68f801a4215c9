"""./run docs: makes the site of the guides, the READMEs and the API in build/docs. Undocumented members are allowed; all
other warnings of Doxygen are errors."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from project import ROOT, RUN, SKIPPED, Parser, build, fail, say

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


def options_page(program):
    """The page of the program's commands and options, from its own help; builds the program if it is missing."""
    text = "# Commands and options of muster {#options}\n\n[TOC]\n"
    if not program.exists():
        build("release", "muster_program")
    told = lambda *arguments: subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
    whole = told("--help")
    text += f"\n```text\n{whole}```\n"
    for command in re.findall(r"^  ([a-z]+)\b.*  \S", whole, re.M):
        if command != "muster":
            text += f"\n## {command} {{#options-{command}}}\n\n```text\n{told(command, '--help')}```\n"
    return text


def headings(page):
    """The title of an HTML page, and its headings with their anchors."""
    text = page.read_text(encoding="utf-8", errors="replace")
    title = re.search(r'<div class="title">(.*?)</div>', text, re.S)
    found = re.findall(r'<h[1-3]><a class="anchor" id="([^"]+)"></a>\s*(.*?)</h[1-3]>', text, re.S)
    plain = lambda markup: html.unescape(re.sub("<[^>]*>", "", markup)).strip()
    return (plain(title[1]) if title else ""), [(anchor, plain(heading)) for anchor, heading in found]


def index_headings(site):
    """Doxygen's search finds a page by the beginning of its title alone; this adds each word of titles and headings."""
    entries = {}
    for page in sorted(site.glob("*.html")):
        if "PageDoc" not in page.read_text(encoding="utf-8", errors="replace"):
            continue
        title, found = headings(page)
        for anchor, heading in [("", title), *found]:
            for word in set(re.findall("[a-z0-9]{3,}", heading.lower())):
                link = f"../{page.name}" + (f"#{anchor}" if anchor else "")
                entries.setdefault(word[0], []).append((word, f"{heading} ({title})" if anchor else title, link))
    data = (site / "search/searchdata.js").read_text(encoding="utf-8")
    letters = re.search(r'0: "([^"]*)"', data)[1]
    for letter, all_of_it in entries.items():
        if letter in letters:
            file = site / f"search/all_{letters.index(letter):x}.js"
            lines = [f"  ['{word}_guide{n}',[{json.dumps(html.escape(text, False))},['{link}',1,'guide']]]"
                     for n, (word, text, link) in enumerate(sorted(all_of_it))]
            text = file.read_text(encoding="utf-8").rstrip().removesuffix("];").rstrip()
            file.write_text(text + ",\n" + ",\n".join(lines) + "\n];\n", encoding="utf-8")


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
    (ROOT / "build/docs/options.md").write_text(options_page(ROOT / "build/release/examples/muster"), encoding="utf-8")
    layout = ROOT / "build/docs/layout.xml"
    subprocess.run(["doxygen", "-l", layout], check=True)
    layout.write_text(without_lists(layout.read_text(encoding="utf-8")), encoding="utf-8")
    if run_doxygen(settings()):
        fail("Doxygen failed")
    site = ROOT / "build/docs/html"
    index_headings(site)
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
