#!/usr/bin/env python3
"""Golden values for the recurrent operations, in float64, with the standard library alone.

    python3 recurrent_golden.py > recurrent_golden.inc

Written from the formulas, one unit at a time; the gradients of sum(weights * y) are central differences, so
that no derivative is worked out by hand. A padded step is skipped, and its output is zero.
"""

import math

N, T, F, H = 3, 4, 2, 3
MASKS = {
    "none": None,
    "end": [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]],
    "anywhere": [[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]],
}


def values(count, salt):  # as numbers() in recurrent_test.cpp
    return [((5 * i * i + 3 * i + 7 * salt) % 17 - 8) / 16 for i in range(count)]


def sigma(x):
    return 1 / (1 + math.exp(-x))


def lstm(x, h, c, p):
    pre = []
    for row in range(4 * H):
        total = p["bias"][row]
        total += sum(p["input"][row * F + k] * x[k] for k in range(F))
        total += sum(p["recurrent"][row * H + k] * h[k] for k in range(H))
        pre.append(total)
    after_h, after_c = [], []
    for u in range(H):
        i, f = sigma(pre[u]), sigma(pre[H + u])
        g, o = math.tanh(pre[2 * H + u]), sigma(pre[3 * H + u])
        after_c.append(f * c[u] + i * g)
        after_h.append(o * math.tanh(after_c[u]))
    return after_h, after_c


def gru(x, h, c, p):
    def of_input(row):
        return p["bias"][row] + sum(p["input"][row * F + k] * x[k] for k in range(F))

    def of_state(row):
        return sum(p["recurrent"][row * H + k] * h[k] for k in range(H))

    after = []
    for u in range(H):
        r = sigma(of_input(u) + of_state(u))
        z = sigma(of_input(H + u) + of_state(H + u))
        n = math.tanh(of_input(2 * H + u) + r * (of_state(2 * H + u) + p["recurrentBias"][u]))
        after.append((1 - z) * n + z * h[u])
    return after, c


def forward(cell, p, mask, sequences):
    y = []
    for n in range(N):
        h, c = [0.0] * H, [0.0] * H
        for t in range(T):
            real = mask is None or mask[n][t]
            if real:
                at = (n * T + t) * F
                h, c = cell(p["x"][at : at + F], h, c, p)
            if sequences:
                y += h if real else [0.0] * H
        if not sequences:
            y += h
    return y


def gradient(of, name, p):
    result = []
    step = 1e-5
    for i in range(len(p[name])):
        before = p[name][i]
        p[name][i] = before + step
        above = of()
        p[name][i] = before - step
        below = of()
        p[name][i] = before
        result.append((above - below) / (2 * step))
    return result


def listed(numbers):
    return "{" + ", ".join(f"{v:.12g}" for v in numbers) + "}"


print("// Printed by recurrent_golden.py; do not edit.\n// clang-format off")
print("const RecurrentGolden kRecurrentGolden[] = {")
for cell, gates in ((lstm, 4), (gru, 3)):
    for sequences in (True, False):
        for mask_name, mask in MASKS.items():
            p = {
                "x": values(N * T * F, 1),
                "input": values(gates * H * F, 2),
                "recurrent": values(gates * H * H, 3),
                "bias": values(gates * H, 4),
                "recurrentBias": values(H, 5),
            }
            weights = values(N * T * H if sequences else N * H, 6)
            y = forward(cell, p, mask, sequences)
            of = lambda: sum(w * v for w, v in zip(weights, forward(cell, p, mask, sequences)))
            kind = "LSTM" if cell is lstm else "GRU"
            print(f'{{RecurrentCell::{kind}, {"true" if sequences else "false"}, "{mask_name}",')
            print(f" {listed(y)},")
            names = ["x", "input", "recurrent", "bias"] + (["recurrentBias"] if cell is gru else [])
            grads = [listed(gradient(of, name, p)) for name in names]
            print(" " + ",\n ".join(grads + ["{}"] * (5 - len(grads))) + "},")
print("};")
