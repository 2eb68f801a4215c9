#!/usr/bin/env python3
"""Golden values for convolutions and their relatives as layers, in float64, with the standard library alone.

    python3 convolution_golden.py > convolution_golden.inc

Written from the definitions, without a look at the C++ code. Only the forward passes are written down: all of
them are linear in the input, in the weight and in the bias, each by itself, so that a derivative is what a step
of one changes, exactly but for rounding. All inputs are binary fractions, those of layers_golden.py.
"""

import itertools


def product(shape):
    result = 1
    for size in shape:
        result *= size
    return result


def values(shape, salt, factor=1):
    """As in layers_golden.py and layers_golden_test.cpp."""
    step = [7, 11, 13, 17, 19, 23][salt]
    return Array(shape, [factor * ((step * i + 5 * salt) % 61 - 30.25) / 16 for i in range(product(shape))])


class Array:
    def __init__(self, shape, data=None):
        self.shape, self.data = shape, data or [0.0] * product(shape)

    def at(self, *index):
        place = 0
        for size, i in zip(self.shape, index):
            place = place * size + i
        return place

    def __getitem__(self, index):
        return self.data[self.at(*index)]


def every(*sizes):
    return itertools.product(*[range(size) for size in sizes])


def conv2d(x, w, b, stride, padding, dilation, groups):
    (n, c, h, wd), (out, cg, kh, kw) = x.shape, w.shape
    size = lambda s, k, a: (s + 2 * padding[a] - dilation[a] * (k - 1) - 1) // stride[a] + 1
    y = Array([n, out, size(h, kh, 0), size(wd, kw, 1)])
    for s, o, i, j in every(*y.shape):
        total = b.data[o] if b else 0.0
        for ci, p, q in every(cg, kh, kw):
            row = i * stride[0] + p * dilation[0] - padding[0]
            column = j * stride[1] + q * dilation[1] - padding[1]
            if 0 <= row < h and 0 <= column < wd:
                total += w[o, ci, p, q] * x[s, o // (out // groups) * cg + ci, row, column]
        y.data[y.at(s, o, i, j)] = total
    return y


def conv_transpose2d(x, w, b, stride, padding, output_padding, dilation, groups):
    (n, c, h, wd), (_, og, kh, kw) = x.shape, w.shape
    size = lambda s, k, a: (s - 1) * stride[a] - 2 * padding[a] + dilation[a] * (k - 1) + 1 + output_padding[a]
    y = Array([n, og * groups, size(h, kh, 0), size(wd, kw, 1)])
    for s, o, i, j in every(*y.shape):
        y.data[y.at(s, o, i, j)] = b.data[o] if b else 0.0
    for s, ci, i, j, o, p, q in every(n, c, h, wd, og, kh, kw):
        row, column = i * stride[0] - padding[0] + p * dilation[0], j * stride[1] - padding[1] + q * dilation[1]
        if 0 <= row < y.shape[2] and 0 <= column < y.shape[3]:
            place = y.at(s, ci // (c // groups) * og + o, row, column)
            y.data[place] += w[ci, o, p, q] * x[s, ci, i, j]
    return y


def conv1d(x, w, b, stride, before, after, dilation, groups):
    (n, t, f), (out, fg, k) = x.shape, w.shape
    y = Array([n, (t + before + after - dilation * (k - 1) - 1) // stride + 1, out])
    for s, i, o in every(*y.shape):
        total = b.data[o] if b else 0.0
        for fi, p in every(fg, k):
            step = i * stride + p * dilation - before
            if 0 <= step < t:
                total += w[o, fi, p] * x[s, step, o // (out // groups) * fg + fi]
        y.data[y.at(s, i, o)] = total
    return y


def upsample(x, scale, bilinear):
    n, c, h, w = x.shape
    y = Array([n, c, h * scale[0], w * scale[1]])

    def taps(o, factor, size):
        if not bilinear:
            return [(o // factor, 1.0)]
        place = max(0.0, (o + 0.5) / factor - 0.5)
        low = int(place)
        return [(low, 1 - (place - low)), (min(low + 1, size - 1), place - low)]

    for s, ci, i, j in every(*y.shape):
        y.data[y.at(s, ci, i, j)] = sum(
            p * q * x[s, ci, row, column] for row, p in taps(i, scale[0], h) for column, q in taps(j, scale[1], w))
    return y


def zero_pad(x, top, bottom, left, right):
    n, c, h, w = x.shape
    y = Array([n, c, top + h + bottom, left + w + right])
    for s, ci, i, j in every(*x.shape):
        y.data[y.at(s, ci, i + top, j + left)] = x[s, ci, i, j]
    return y


def derivative(f, at, grad):
    """d(sum of grad * f) / d at, for f linear in it."""
    before = f().data
    result = []
    for i in range(len(at.data)):
        at.data[i] += 1
        result.append(sum(g * (b - a) for g, a, b in zip(grad, before, f().data)))
        at.data[i] -= 1
    return result


def listed(numbers):
    return "{" + ", ".join(f"{v:.17g}" for v in numbers) + "}"


def of_shape(array):
    return f'Shape{{{", ".join(map(str, array.shape))}}}'


def print_golden(name, layer, x_shape, w_shape=None, biases=0):
    x = values(x_shape, 0)
    parameters = {"weight": values(w_shape, 1, 0.5)} if w_shape else {}
    if biases:
        parameters["bias"] = values([biases], 2, 0.5)
    f = lambda: layer(x, parameters.get("weight"), parameters.get("bias"))
    y = f()
    grad = values(y.shape, 5).data
    print(f'    {{"{name}",\n     {of_shape(y)},\n     {listed(y.data)},\n     {listed(derivative(f, x, grad))},')
    rows = [f'{{"{key}", {of_shape(p)}, {listed(derivative(f, p, grad))}}}' for key, p in parameters.items()]
    print("     {" + ",\n      ".join(rows) + "}},")


print("// Printed by convolution_golden.py; do not edit.\n// clang-format off\nconst std::vector<Golden> kConvolutionGoldens = {")
print_golden("conv2d, groups", lambda x, w, b: conv2d(x, w, b, (2, 1), (1, 0), (1, 2), 2),
             [2, 4, 5, 5], [6, 2, 3, 2], 6)
print_golden("conv2d, depthwise", lambda x, w, b: conv2d(x, w, b, (1, 1), (1, 1), (1, 1), 3),
             [2, 3, 4, 3], [3, 1, 3, 3])
print_golden("convtranspose2d", lambda x, w, b: conv_transpose2d(x, w, b, (2, 3), (1, 0), (1, 2), (1, 2), 1),
             [2, 3, 3, 2], [3, 2, 3, 2], 2)
print_golden("convtranspose2d, groups", lambda x, w, b: conv_transpose2d(x, w, b, (1, 1), (0, 1), (0, 0), (1, 1), 2),
             [1, 4, 3, 3], [4, 3, 2, 3])
print_golden("conv1d", lambda x, w, b: conv1d(x, w, b, 2, 1, 1, 1, 1), [2, 6, 3], [4, 3, 3], 4)
print_golden("conv1d, groups and dilation", lambda x, w, b: conv1d(x, w, b, 1, 0, 0, 2, 2), [2, 6, 4], [6, 2, 3])
print_golden("conv1d, causal", lambda x, w, b: conv1d(x, w, b, 1, 4, 0, 2, 1), [2, 5, 2], [3, 2, 3], 3)
print_golden("upsample2d, nearest", lambda x, w, b: upsample(x, (2, 3), False), [1, 2, 2, 3])
print_golden("upsample2d, bilinear", lambda x, w, b: upsample(x, (3, 2), True), [1, 2, 2, 3])
print_golden("zeropad2d", lambda x, w, b: zero_pad(x, 1, 0, 2, 3), [1, 2, 2, 3])
print("};")
