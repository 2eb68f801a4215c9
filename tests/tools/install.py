"""./run install [PREFIX]: builds the library and the program muster, and installs them below a folder."""
import os
import subprocess
import sys
from pathlib import Path

from project import ROOT, Parser, build, fail, say


def prefix_of(given):
    """The folder to install below: the given one, else /usr/local as root, else ~/.local."""
    if not given and os.getuid() != 0 and not os.environ.get("HOME"):
        fail("install: there is no home: name a folder")
    return Path(os.path.realpath(given or ("/usr/local" if os.getuid() == 0 else Path.home() / ".local")))


def main():
    parser = Parser("install", __doc__)
    parser.add_argument("prefix", nargs="?", metavar="PREFIX")
    options, more = parser.parse_known_args()
    if more:
        fail("install: it takes one folder, as in ./run install ~/muster")
    prefix = prefix_of(options.prefix)
    exists = next(folder for folder in (prefix, *prefix.parents) if folder.exists())
    if not exists.is_dir() or not os.access(exists, os.W_OK):
        fail(f"install: {exists} is not a folder that you can write to; name another one, or use sudo")
    folder, log = build("release", "muster_installed"), ROOT / "build/install.log"
    with open(log, "wb") as out:
        status = subprocess.run(["cmake", "--install", folder, "--prefix", prefix], stdout=out, stderr=out).returncode
    if status:
        say(log.read_text(errors="replace"))
        fail("CMake could not install")
    say(f"Installed below {prefix}: the library, and the program muster in {prefix}/bin.")
    if str(prefix / "bin") not in os.environ.get("PATH", "").split(":"):
        say(f"So that the shell finds it:  export PATH={prefix}/bin:$PATH")
    if str(prefix) != "/usr/local":
        say(f"Your own CMake project finds the library with -DCMAKE_PREFIX_PATH={prefix}")


if __name__ == "__main__":
    sys.exit(main())
