"""./run docs: makes the site of the guides, the READMEs and the API in build/docs. Undocumented members are allowed; all
other warnings of Doxygen are errors."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

from project import ROOT, RUN, SKIPPED, Parser, fail, say

STYLE = Path("/usr/share/doxygen-awesome-css/doxygen-awesome.css")
LOG = ROOT / "build/docs/warnings.log"


def settings():
    text = (ROOT / "examples/docs/Doxyfile").read_text(encoding="utf-8")
    version = subprocess.run(["doxygen", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    # From Doxygen 1.9.5 on, the style requires the LIGHT colours.
    if tuple(map(int, re.findall("[0-9]+", version)[:3])) >= (1, 9, 5):
        text += "\nHTML_COLORSTYLE = LIGHT\n"
    return text


def main():
    Parser("docs", __doc__).parse()
    tree = ROOT / "build/docs/tree/muster"
    tree.parent.mkdir(parents=True, exist_ok=True)
    tree.unlink(missing_ok=True)
    tree.symlink_to(ROOT)
    subprocess.run([RUN, "packages", "doxygen", "doxygen-awesome-css"])
    if not shutil.which("doxygen") or not STYLE.exists():
        say("skipped: the site needs Doxygen 1.9.4 or newer [Debian: doxygen] and its style, Doxygen Awesome 2 [Debian: "
            "doxygen-awesome-css]")
        return SKIPPED
    if subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings(), text=True).returncode:
        fail("Doxygen failed")
    warnings = [line for line in LOG.read_text(errors="replace").splitlines()
                if not re.search("Member .* of (class|struct|union) .* is not documented", line)]
    if warnings:
        say("\n".join(warnings))
        fail(f"Doxygen has warnings (log: {LOG}); the site is in build/docs")
    say("The site is in build/docs: open build/docs/html/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
