"""Computes in NumPy what a LeNet of a model file predicts, from the file alone, and compares it with muster's outputs.

usage: lenet_in_numpy.py READER MODEL RUN   READER is examples/read_results.py; RUN is a safetensors file with `images`
                                            and `outputs`
Ends with 77 where Python has no NumPy.
"""

import importlib.util
import json
import sys

try:
    import numpy
except ImportError as error:
    print("skipped: %s" % error)
    sys.exit(77)


def reader_from(path):
    spec = importlib.util.spec_from_file_location("read_results", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def convolution(x, weight, bias, padding):
    x = numpy.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    windows = numpy.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    return numpy.einsum("nchwij,ocij->nohw", windows, weight, optimize=True) + bias[:, None, None]


def maximum(x, kernel):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // kernel[0], kernel[0], w // kernel[1], kernel[1]).max(axis=(3, 5))


def softmax(x):
    e = numpy.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def predictions(tensors, configuration, x):
    """@return the probabilities and the logits. Layers are called as muster calls those without a name."""
    counts, logits = {}, None
    for layer in configuration["layers"]:
        kind = layer["type"].removesuffix("2d")
        counts[kind] = counts.get(kind, 0) + 1
        name = layer["name"] if layer.get("name") else kind if kind == "output" else kind + str(counts[kind])
        if kind == "conv":
            x = convolution(x, tensors[name + ".weight"], tensors[name + ".bias"], layer.get("padding", [0, 0]))
        elif kind == "maxpool":
            x = maximum(x, layer.get("kernel", [2, 2]))
        else:
            x = x.reshape(len(x), -1) @ tensors[name + ".weight"].T + tensors[name + ".bias"]
        if layer.get("activation") == "relu":
            x = numpy.maximum(x, 0)
    logits = x
    return softmax(x), logits


def main():
    reader = reader_from(sys.argv[1])
    tensors, metadata = reader.model(sys.argv[2])
    run, _ = reader.model(sys.argv[3])
    wide = {name: values.astype(float) for name, values in tensors.items()}
    expected, logits = predictions(wide, json.loads(metadata["configuration"]), run["images"].astype(float))
    worst = abs(run["outputs"] - expected).max()
    # float32 against float64. The longest path sums 25 + 150 + 400 + 120 + 84 products; the relative error of each sum
    # is at most its number of terms times 2^-24. A probability changes less than its logit.
    bound = 779 * 2.0**-24 * abs(logits).max()
    print("at most %.1e off, allowed %.1e; probabilities from %.3g to %.3g" % (worst, bound, expected.min(), expected.max()))
    assert expected.shape == run["outputs"].shape == (5, 10)
    assert expected.max() < 0.99, "saturated probabilities prove nothing"
    assert worst <= bound


main()
