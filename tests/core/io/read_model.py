"""Reads a saved network with nothing but Python's standard library, as its users may, and compares it with
what the program that saved it says is in it.

usage: read_model.py MODEL EXPECTED    where EXPECTED has a line `name|dtype|shape|values` for each tensor,
                                       shape with commas, values in hexadecimal with blanks
"""

import json
import struct
import sys

FORMATS = {"F32": "f", "F64": "d", "U8": "B", "I64": "q"}


def read_safetensors(path):
    with open(path, "rb") as file:
        blob = file.read()
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length])
    data = blob[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = struct.unpack("<%d%s" % count_and_format(entry, end - begin), data[begin:end])
        tensors[name] = (entry["dtype"], entry["shape"], values)
    spans = sorted(tuple(entry["data_offsets"]) for entry in header.values())
    assert (8 + length) % 8 == 0, "the data are not aligned"
    assert spans[0][0] == 0 and spans[-1][1] == len(data), "the tensors do not fill the file"
    assert all(a[1] == b[0] for a, b in zip(spans, spans[1:])), "there are gaps between the tensors"
    return tensors, metadata


def count_and_format(entry, size):
    count = 1
    for n in entry["shape"]:
        count *= n
    code = FORMATS[entry["dtype"]]
    assert count * struct.calcsize(code) == size, entry
    return count, code


def read_expected(path):
    tensors = {}
    with open(path) as file:
        for line in file:
            name, dtype, shape, values = line.rstrip("\n").split("|")
            parse = int if dtype == "I64" else float.fromhex
            tensors[name] = (dtype, [int(n) for n in shape.split(",") if n], tuple(parse(v) for v in values.split()))
    return tensors


def check_with_library(path, expected):
    try:
        from safetensors.numpy import load_file
    except ImportError:
        return "without the safetensors package"
    tensors = load_file(path)
    assert set(tensors) == set(expected)
    for name, (_, shape, values) in expected.items():
        assert list(tensors[name].shape) == shape, name
        assert tuple(tensors[name].ravel().tolist()) == values, name
    return "also with the safetensors package"


def main():
    tensors, metadata = read_safetensors(sys.argv[1])
    expected = read_expected(sys.argv[2])
    assert set(tensors) == set(expected), sorted(set(tensors) ^ set(expected))
    for name in expected:
        assert tensors[name] == expected[name], (name, tensors[name], expected[name])
    assert metadata["format"] == "pt", metadata
    assert metadata["muster.version"].count(".") == 2, metadata
    configuration = json.loads(metadata["configuration"])
    assert configuration["format"] == "muster.MultiLayerConfiguration", configuration
    assert [layer["type"] for layer in configuration["layers"]] == ["conv2d", "maxpool2d", "dense", "output"]
    print("read %d tensors, %s" % (len(tensors), check_with_library(sys.argv[1], expected)))


main()
