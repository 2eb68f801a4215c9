"""Prints what the vertices of a graph give, in float64: the numbers in vertices_test.cpp."""
import numpy as np

N, C, H, W = 2, 3, 2, 2
a = np.sin(np.arange(1, N * C * H * W + 1, dtype=np.float64)).reshape(N, C, H, W)
b = np.cos(2 * np.arange(1, N * C * H * W + 1, dtype=np.float64)).reshape(N, C, H, W)
c = a * b + 0.25


def show(name, x):
    flat = x.reshape(-1)
    weights = np.cos(np.arange(flat.size))
    print(f'{{"{name}", {list(x.shape[1:])}, {flat @ weights:.12f}, {flat[0]:.12f}, {flat[-1]:.12f}}},')


def relu(x):
    return np.maximum(x, 0)


show("add", a + b + c)
show("addRelu", relu(a + b))
show("subtract", a - b)
show("product", a * b * c)
show("average", (a + b + c) / 3)
show("max", np.maximum(np.maximum(a, b), c))
show("maxTanh", np.tanh(np.maximum(a, b)))
show("mergeChannels", np.concatenate([a, b, c], axis=1))
show("mergeWidth", np.concatenate([a, b], axis=3))
show("subsetChannels", a[:, 1:3])
show("subsetHeight", a[:, :, 1:2])
show("reshape", b.reshape(N, 6, 2))
show("scale", -1.5 * a)
