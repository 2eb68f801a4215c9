#!/usr/bin/env python3
"""Golden values for layers, in float64.

    python3 layers_golden.py > layers_golden.inc

Written from the definitions, one element or one step at a time, without a look at the C++ code. The gradients
of sum(weights * y) are central differences, so that no derivative is worked out by hand. No input is zero and none are equal, so that ReLU and the maximum have no kinks within a step.
"""

import math

import numpy as np


def values(shape, salt):
    """Different numbers of both signs, binary fractions; layers_golden_test.cpp makes the same."""
    factor = [7, 11, 13, 17, 19, 23][salt]
    return np.array([((factor * i + 5 * salt) % 61 - 30.25) / 16 for i in range(int(np.prod(shape)))]).reshape(shape)


def sigma(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


ACTIVATIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.where(x > 0, x, 0),
    "leakyrelu": lambda x: np.where(x > 0, x, 0.01 * x),
    "tanh": np.tanh,
    "sigmoid": sigma,
    "softmax": lambda x: softmax(x, 2 if x.ndim == 3 else 1),  # the channels of images, the features of a step
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
}


def conv2d(x, p, stride, padding):
    w, b = p["weight"], p.get("bias")
    n, c, height, width = x.shape
    padded = np.zeros((n, c, height + 2 * padding[0], width + 2 * padding[1]))
    padded[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width] = x
    rows = (padded.shape[2] - w.shape[2]) // stride[0] + 1
    columns = (padded.shape[3] - w.shape[3]) // stride[1] + 1
    y = np.zeros((n, w.shape[0], rows, columns))
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride[0], j * stride[1]
            window = padded[:, :, top : top + w.shape[2], left : left + w.shape[3]]
            for o in range(w.shape[0]):
                y[:, o, i, j] = (window * w[o]).sum(axis=(1, 2, 3)) + (0 if b is None else b[o])
    return y


def dense(x, p):
    y = x @ p["weight"].T
    return y + p["bias"] if "bias" in p else y


def pool(x, kernel, stride, padding, maximum):
    n, c, height, width = x.shape
    padded = np.full((n, c, height + 2 * padding[0], width + 2 * padding[1]), -np.inf if maximum else 0.0)
    padded[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width] = x
    rows = (padded.shape[2] - kernel[0]) // stride[0] + 1
    columns = (padded.shape[3] - kernel[1]) // stride[1] + 1
    y = np.zeros((n, c, rows, columns))
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride[0], j * stride[1]
            window = padded[:, :, top : top + kernel[0], left : left + kernel[1]]
            y[:, :, i, j] = window.max(axis=(2, 3)) if maximum else window.sum(axis=(2, 3)) / (kernel[0] * kernel[1])
    return y


def pool_steps(x, kernel, stride, padding, maximum):
    steps = x.transpose(0, 2, 1)[:, :, np.newaxis]
    return pool(steps, (1, kernel), (1, stride), (0, padding), maximum)[:, :, 0].transpose(0, 2, 1)


def real_steps(mask, n, steps):
    return [t for t in range(steps) if mask is None or mask[n][t]]


def embedding(indices, p, mask):
    y = np.zeros((*indices.shape, p["weight"].shape[1]))
    for n in range(indices.shape[0]):
        for t in real_steps(mask, n, indices.shape[1]):
            y[n, t] = p["weight"][indices[n, t]]
    return y


def last_step(x, p, mask):
    y = np.zeros((x.shape[0], x.shape[2]))
    for n in range(x.shape[0]):
        if real := real_steps(mask, n, x.shape[1]):
            y[n] = x[n, real[-1]]
    return y


def mean_over_time(x, p, mask):
    y = np.zeros((x.shape[0], x.shape[2]))
    for n in range(x.shape[0]):
        if real := real_steps(mask, n, x.shape[1]):
            y[n] = sum(x[n, t] for t in real) / len(real)
    return y


def self_attention(x, p, mask, heads, causal):
    y = np.zeros_like(x)
    size = x.shape[2] // heads
    for n in range(x.shape[0]):
        projected = x[n] @ p["inputWeight"].T + p["inputBias"]
        queries, keys, held = np.split(projected, 3, axis=1)
        real = real_steps(mask, n, x.shape[1])
        for t in real:
            seen = [s for s in real if not causal or s <= t]
            parts = []
            for h in range(heads):
                of = slice(h * size, (h + 1) * size)
                powers = np.exp([queries[t, of] @ keys[s, of] / math.sqrt(size) for s in seen])
                parts.append(sum(a * held[s, of] for a, s in zip(powers / powers.sum(), seen)))
            y[n, t] = np.concatenate(parts) @ p["outputWeight"].T + p["outputBias"]
    return y


def recurrent(cell):
    def layer(x, p, mask, sequences):
        units = p["recurrentWeight"].shape[1]
        y = np.zeros((x.shape[0], x.shape[1], units))
        last = np.zeros((x.shape[0], units))
        for n in range(x.shape[0]):
            h, c = np.zeros(units), np.zeros(units)
            for t in real_steps(mask, n, x.shape[1]):
                h, c = cell(x[n, t], h, c, p)
                y[n, t] = last[n] = h
        return y if sequences else last

    return layer


@recurrent
def lstm(x, h, c, p):
    i, f, g, o = np.split(p["weight"] @ x + p["recurrentWeight"] @ h + p["bias"], 4)
    c = sigma(f) * c + sigma(i) * np.tanh(g)
    return sigma(o) * np.tanh(c), c


@recurrent
def gru(x, h, c, p):
    of_input = np.split(p["weight"] @ x + p["bias"], 3)
    of_state = np.split(p["recurrentWeight"] @ h, 3)
    r, z = sigma(of_input[0] + of_state[0]), sigma(of_input[1] + of_state[1])
    n = np.tanh(of_input[2] + r * (of_state[2] + p["recurrentBias"]))
    return (1 - z) * n + z * h, c


def derivative(f, at):
    """d f / d at, f giving one number."""
    result = np.zeros_like(at)
    for i in np.ndindex(*at.shape):
        before = at[i]
        at[i] = before + 1e-5
        above = f()
        at[i] = before - 1e-5
        below = f()
        at[i] = before
        result[i] = (above - below) / 2e-5
    return result


def listed(array):
    return "{" + ", ".join(f"{v + 0.0:.10g}" for v in np.round(np.asarray(array).reshape(-1), 10)) + "}"


def of_shape(array):
    return "Shape{" + ", ".join(map(str, array.shape)) + "}"


def print_layer(name, layer, x, shapes=None):
    """Parameters are small: sums of many would saturate the gates."""
    p = {key: values(shape, 1 + i) / 2 for i, (key, shape) in enumerate((shapes or {}).items())}
    y = layer(x, p)
    grad = values(y.shape, 5)
    f = lambda: (grad * layer(x, p)).sum()
    print(f'    {{"{name}",\n     {of_shape(y)},\n     {listed(y)},')
    print("     {}," if x.dtype == np.int64 else f"     {listed(derivative(f, x))},")
    rows = [f'      {{"{name}", {of_shape(w)}, {listed(derivative(f, w))}}}' for name, w in p.items()]
    print("     {" + ",\n".join(rows).lstrip() + "}},")


image, sequence, row = values((2, 2, 4, 3), 0), values((3, 4, 2), 0), values((3, 5), 0)
indices = np.array([(3 * i + i // 4) % 5 for i in range(12)], dtype=np.int64).reshape(3, 4)
# Sequences that end early, one with only padding; and masks with holes.
END, ANYWHERE = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], [[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]]
MASKS = {"": None, ", end": END, ", anywhere": ANYWHERE}

print("// Printed by layers_golden.py; do not edit.\n// clang-format off\nconst std::vector<Golden> kLayerGoldens = {")
print_layer("conv2d", lambda x, p: conv2d(x, p, (1, 1), (0, 0)), image, {"weight": (3, 2, 3, 2), "bias": (3,)})
print_layer("conv2d, tanh", lambda x, p: np.tanh(conv2d(x, p, (2, 1), (1, 1))), image,
            {"weight": (2, 2, 2, 2), "bias": (2,)})
print_layer("dense", lambda x, p: dense(x, p), row, {"weight": (4, 5), "bias": (4,)})
print_layer("dense, gelu", lambda x, p: ACTIVATIONS["gelu"](dense(x, p)), row, {"weight": (4, 5)})
print_layer("dense, per step", lambda x, p: sigma(dense(x, p)), sequence, {"weight": (3, 2), "bias": (3,)})
for name, activation in ACTIVATIONS.items():
    print_layer(f"activation, {name}", lambda x, p: activation(x), values((2, 3, 2, 1), 0))
print_layer("activation, softmax over time", lambda x, p: ACTIVATIONS["softmax"](x), values((2, 2, 3), 0))
print_layer("maxpool2d", lambda x, p: pool(x, (2, 2), (2, 2), (0, 0), True), image)
print_layer("maxpool2d, padding", lambda x, p: pool(x, (3, 2), (1, 2), (1, 1), True), image)
print_layer("avgpool2d", lambda x, p: pool(x, (2, 2), (2, 2), (0, 0), False), image)
print_layer("avgpool2d, padding", lambda x, p: pool(x, (3, 2), (1, 2), (1, 1), False), image)
print_layer("globalpool2d, max", lambda x, p: x.max(axis=(2, 3), keepdims=True), image)
print_layer("globalpool2d, average", lambda x, p: x.mean(axis=(2, 3), keepdims=True), image)
for name, maximum in (("maxpool1d", True), ("avgpool1d", False)):
    print_layer(name, lambda x, p: pool_steps(x, 2, 2, 0, maximum), sequence)
    print_layer(name + ", padding", lambda x, p: pool_steps(x, 3, 1, 1, maximum), sequence)
for name, mask in MASKS.items():
    print_layer("embedding" + name, lambda x, p: embedding(x, p, mask), indices, {"weight": (5, 2)})
    print_layer("laststep" + name, lambda x, p: last_step(x, p, mask), sequence)
    print_layer("meanovertime" + name, lambda x, p: mean_over_time(x, p, mask), sequence)
for causal, word in ((False, ""), (True, ", causal")):
    for name, mask in MASKS.items():
        print_layer("selfattention" + word + name, lambda x, p: self_attention(x, p, mask, 2, causal),
                    values((3, 4, 4), 0) / 2,
                    {"inputWeight": (12, 4), "inputBias": (12,), "outputWeight": (4, 4), "outputBias": (4,)})
for sequences, word in ((True, ""), (False, ", last")):
    for name, mask in MASKS.items():
        print_layer("lstm" + word + name, lambda x, p: lstm(x, p, mask, sequences), sequence,
                    {"weight": (8, 2), "recurrentWeight": (8, 2), "bias": (8,)})
        print_layer("gru" + word + name, lambda x, p: gru(x, p, mask, sequences), sequence,
                    {"weight": (6, 2), "recurrentWeight": (6, 2), "bias": (6,), "recurrentBias": (2,)})
print("};")
