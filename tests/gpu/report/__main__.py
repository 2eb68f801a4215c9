"""Runs the GPU's tests and benchmarks of a build, and reports what they gave, whatever fails, crashes or hangs.

`./run gpu` calls it, and a packed build brings it along: it needs Python, coreutils and the driver. The report is written
anew after each result, so that it is true whenever this ends.
"""
import sys

if sys.version_info < (3, 9):
    sys.exit("gpu: Python 3.9 or newer is needed, and this is " + sys.version.split()[0])
sys.dont_write_bytecode = True  # these files may be in the source tree

from report import main

sys.exit(main(sys.argv[1:]))
