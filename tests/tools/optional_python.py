"""Makes a Python environment in BUILD/python for tests that compare with packages of PyPI. Fails if that is not possible.

    optional_python.py BUILD
"""
import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = ("numpy", "onnxruntime", "pandas", "tensorboard")


def main(build):
    folder = build / "python"
    if (folder / "complete").exists():
        return 0
    print("Installing from PyPI:", *PACKAGES, file=sys.stderr)
    with open(build / "pip.log", "w", encoding="utf-8") as log:
        try:
            venv.create(folder, clear=True, with_pip=True)
            subprocess.run([folder / "bin/pip", "install", "-q", *PACKAGES], stdout=log, stderr=log, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            log.write(f"{error}\n")
            return 1
    (folder / "complete").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
