"""Prints what the vertices of a graph give, in float64.

    python3 vertices_golden.py > vertices_golden.inc

The gradients of sum(cos(i) y[i]) by each input are central differences, so that no derivative is worked out by
hand; no two inputs are equal and no sum is zero within a step.
"""
import numpy as np

N, C, H, W = 2, 3, 2, 2
a = np.sin(np.arange(1, N * C * H * W + 1, dtype=np.float64)).reshape(N, C, H, W)
b = np.cos(2 * np.arange(1, N * C * H * W + 1, dtype=np.float64)).reshape(N, C, H, W)
c = a * b + 0.25


def marks(x):
    """Three numbers that stand for all: sum(cos(i) x[i]), the first, the last."""
    flat = x.reshape(-1)
    return ", ".join(f"{v + 0.0:.10f}" for v in (flat @ np.cos(np.arange(flat.size)), flat[0], flat[-1]))


def gradient(f, inputs, which):
    result = np.zeros_like(inputs[which])
    for i in np.ndindex(*result.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [x.copy() for x in inputs]
            moved[which][i] += step
            flat = f(*moved).reshape(-1)
            ends.append(flat @ np.cos(np.arange(flat.size)))
        result[i] = np.round((ends[0] - ends[1]) / 2e-6, 9)
    return result


def show(name, f, *inputs):
    y = f(*inputs)
    shape = ", ".join(map(str, y.shape[1:]))
    gradients = ", ".join("{" + marks(gradient(f, inputs, i)) + "}" for i in range(len(inputs)))
    print(f'    {{"{name}", {{{shape}}}, {{{marks(y)}}}, {{{gradients}}}}},')


def relu(x):
    return np.maximum(x, 0)


print("// Printed by vertices_golden.py; do not edit.\n// clang-format off\nconst std::vector<Golden> kGolden = {")
show("add", lambda a, b, c: a + b + c, a, b, c)
show("addRelu", lambda a, b: relu(a + b), a, b)
show("subtract", lambda a, b: a - b, a, b)
show("product", lambda a, b, c: a * b * c, a, b, c)
show("average", lambda a, b, c: (a + b + c) / 3, a, b, c)
show("max", lambda a, b, c: np.maximum(np.maximum(a, b), c), a, b, c)
show("maxTanh", lambda a, b: np.tanh(np.maximum(a, b)), a, b)
show("mergeChannels", lambda a, b, c: np.concatenate([a, b, c], axis=1), a, b, c)
show("mergeWidth", lambda a, b: np.concatenate([a, b], axis=3), a, b)
show("subsetChannels", lambda a: a[:, 1:3], a)
show("subsetHeight", lambda a: a[:, :, 1:2], a)
show("reshape", lambda b: b.reshape(N, 6, 2), b)
show("scale", lambda a: -1.5 * a, a)
print("};")
