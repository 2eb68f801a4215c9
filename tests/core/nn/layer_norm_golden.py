#!/usr/bin/env python3
"""Golden values of layer normalisation, in float64.

    python3 layer_norm_golden.py > layer_norm_golden.inc

Written from the paper (Ba et al. 2016), without a look at the C++ code: two sequences of three steps with five
features. The gradient by x is taken through each row's Jacobian. Inputs are binary fractions.
"""

import numpy as np

EPSILON, FEATURES = 1e-3, 5


def numbers(factor, offset):
    return ((factor * np.arange(30) + offset) % 19 - 9).reshape(6, FEATURES) / 4.0


def normalised(row):
    return (row - row.mean()) / np.sqrt(row.var() + EPSILON)


def jacobian(row):
    """d normalised / d row, [output, input]."""
    centred, root = row - row.mean(), np.sqrt(row.var() + EPSILON)
    return (np.eye(FEATURES) - 1 / FEATURES) / root - np.outer(centred, centred) / (FEATURES * root**3)


def show(name, values):
    text = ", ".join(repr(float(v)) for v in np.asarray(values).ravel())
    print(f"const std::vector<double> {name}{{{text}}};")


def main():
    x, grad = numbers(7, 3) + 1, numbers(5, 1)
    gamma, beta = np.array([1.5, -0.5, 1, 0.25, 2]), np.array([0.25, 0.75, -1, 0, 0.5])
    n = np.array([normalised(row) for row in x])
    print("// Printed by layer_norm_golden.py; do not edit.\n// clang-format off")
    show("kLayerInput", x)
    show("kLayerGradOutput", grad)
    show("kLayerGamma", gamma)
    show("kLayerBeta", beta)
    show("kLayerOutput", n * gamma + beta)
    show("kLayerGradInput", [jacobian(row).T @ (g * gamma) for row, g in zip(x, grad)])
    show("kLayerGradGamma", (grad * n).sum(0))
    show("kLayerGradBeta", grad.sum(0))


main()
