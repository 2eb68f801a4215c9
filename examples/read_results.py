"""Opens in Python what muster writes. One file to copy; needs NumPy, and for tables pandas.

    import read_results
    tensors, metadata = read_results.model("model.safetensors")     # arrays by name, as tensors["conv1.weight"]
    points = read_results.grid("comparison/results.jsonl")          # pandas: a row a point of each arm and seed
    values = read_results.curves("runs")                            # pandas: a row a value of files of curves (muster page)
    values = read_results.events("runs")                            # pandas: a row a value of event files (TensorBoard)

    python3 read_results.py FILE...    prints the same of each file or directory
"""

import json
import pathlib
import struct
import sys

TYPES = {"F32": "<f4", "F64": "<f8", "U8": "u1", "I64": "<i8"}


def model(path):
    """The tensors of a model file or checkpoint as NumPy arrays, and its metadata as strings. The network's
    configuration is json.loads(metadata["configuration"])."""
    import numpy

    blob = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(blob[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def grid(path):
    """A comparison's points, one per row, with their arm and seed; `on` is "validation" for tuning runs."""
    import pandas

    runs = []
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            runs.append(json.loads(line))
        except ValueError as error:
            raise ValueError("%s: line %d is not whole: %s" % (path, number, error)) from None
    if not runs or runs.pop(0).get("program") != "muster compare":
        raise ValueError("%s was not written by muster compare" % path)
    rows = []
    for run in runs:
        points = run.pop("points")
        rows += [{**run, **point} for point in points]
    return pandas.json_normalize(rows)


def curves(directory):
    """The numbers of all files of curves below a directory: run, group, name, step, value (NaN where it was none)."""
    import pandas

    root = pathlib.Path(directory)
    rows = []
    for path in sorted(root.rglob("*.curves.jsonl")):
        run = path.relative_to(root).as_posix()[: -len(".curves.jsonl")]
        head, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # an incomplete last line is ignored
        group = json.loads(head)["group"] or run
        for line in lines:
            for series in json.loads(line).get("series", []):
                rows += [(run, group, series["name"], step, value) for step, value in series["points"]]
    return pandas.DataFrame(rows, columns=["run", "group", "name", "step", "value"])


def events(directory):
    """The numbers of all event files below a directory: run, tag, step, seconds (of the clock), value. Read by
    TensorBoard's own reader: pip install tensorboard."""
    import pandas
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    root = pathlib.Path(directory)
    rows = []
    for folder in sorted({file.parent for file in root.rglob("*tfevents*")}):
        reader = EventAccumulator(str(folder), size_guidance={"scalars": 0})  # 0: all points
        reader.Reload()
        for tag in reader.Tags()["scalars"]:
            for event in reader.Scalars(tag):
                rows.append((str(folder.relative_to(root)), tag, event.step, event.wall_time, event.value))
    return pandas.DataFrame(rows, columns=["run", "tag", "step", "seconds", "value"])


def show(path):
    path = pathlib.Path(path)
    if path.is_dir():
        print((curves(path) if any(path.rglob("*.curves.jsonl")) else events(path)).to_string())
    elif path.suffix == ".jsonl":
        print(grid(path).to_string())
    else:
        for name, values in model(path)[0].items():
            print("%s %s %s mean %g" % (name, values.dtype, list(values.shape), values.mean() if values.size else 0))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        show(argument)
