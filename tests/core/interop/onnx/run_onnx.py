"""Runs ONNX models with onnxruntime and compares their outputs with muster's.

usage: run_onnx.py DIRECTORY    of models NAME.onnx, each with files NAME.K.safetensors that have its inputs, called
                                in:INPUT, and what muster computes from them, called out:OUTPUT
Ends with 77 where onnxruntime is not installed.
"""

import json
import pathlib
import struct
import sys

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print("skipped: %s" % error)
    sys.exit(77)

TOLERANCE = 1e-5  # relative to an output's largest value
TYPES = {"F32": "<f4", "I64": "<i8"}


def read_safetensors(path):
    blob = path.read_bytes()
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(blob[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def with_type(values, kind):
    return values.astype(numpy.int32) if kind == "tensor(int32)" else values


def compare(session, path):
    tensors = read_safetensors(path)
    given = {i.name: with_type(tensors["in:" + i.name], i.type) for i in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    assert set(tensors) == {"in:" + name for name in given} | {"out:" + name for name in names}, sorted(tensors)
    worst = 0
    for name, values in zip(names, session.run(names, given)):
        expected = tensors["out:" + name]
        assert values.shape == expected.shape, (path.name, name, values.shape, expected.shape)
        assert numpy.isfinite(values).all(), (path.name, name)
        largest = numpy.abs(expected).max()
        varied = (expected != 0) & (abs(expected) != largest)
        assert varied.any(), (path.name, name, "zeros and ones, as of a saturated softmax, prove nothing")
        worst = max(worst, numpy.abs(values.astype(float) - expected).max() / largest)
    return worst


def main():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    failed = []
    for model in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        runs = sorted(model.parent.glob(model.stem + ".*.safetensors"))
        assert runs, model
        worst = max(compare(session, path) for path in runs)
        print("%-40s %d runs, at most %.1e of the largest value off" % (model.stem, len(runs), worst))
        if worst > TOLERANCE:
            failed.append(model.stem)
    if failed:
        sys.exit("more than %g off: %s" % (TOLERANCE, ", ".join(failed)))


main()
