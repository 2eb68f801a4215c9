#!/usr/bin/env python3
"""Golden values for scaled dot-product attention, in float64, with the standard library alone.

    python3 attention_golden.py > attention_golden.inc

Written from the formula, one query at a time; the gradients of sum(weights * y) are central differences.
"""

import math

N, T, F, HEADS = 2, 4, 4, 2
MASKS = {
    "none": None,
    "end": [[1, 1, 1, 0], [1, 1, 1, 1]],
    "anywhere": [[0, 1, 0, 1], [0, 0, 0, 0]],
}


def values(count, salt):  # as numbers() in attention_test.cpp
    return [((5 * i * i + 3 * i + 7 * salt) % 17 - 8) / 8 for i in range(count)]


def forward(x, mask, causal):
    d = F // HEADS
    y = []
    for n in range(N):
        for t in range(T):
            for h in range(HEADS):
                def part(step, which):
                    at = (n * T + step) * 3 * F + which * F + h * d
                    return x[at : at + d]

                def real(step):
                    return mask is None or mask[n][step]

                seen = [s for s in range(T) if real(s) and (not causal or s <= t)]
                if not real(t) or not seen:
                    y += [0.0] * d
                    continue
                q = part(t, 0)
                powers = [math.exp(sum(a * b for a, b in zip(q, part(s, 1))) / math.sqrt(d)) for s in seen]
                total = sum(powers)
                y += [sum(p / total * part(s, 2)[k] for p, s in zip(powers, seen)) for k in range(d)]
    return y


def listed(numbers):
    return "{" + ", ".join(f"{v:.12g}" for v in numbers) + "}"


print("// Printed by attention_golden.py; do not edit.\n// clang-format off")
print("const AttentionGolden kAttentionGolden[] = {")
for causal in (False, True):
    for name, mask in MASKS.items():
        x, weights = values(N * T * 3 * F, 1), values(N * T * F, 2)
        of = lambda: sum(w * v for w, v in zip(weights, forward(x, mask, causal)))
        gradient = []
        for i in range(len(x)):
            before = x[i]
            x[i] = before + 1e-5
            above = of()
            x[i] = before - 1e-5
            below = of()
            x[i] = before
            gradient.append((above - below) / 2e-5)
        y = forward(x, mask, causal)
        print(f'{{{"true" if causal else "false"}, "{name}",\n {listed(y)},\n {listed(gradient)}}},')
print("};")
