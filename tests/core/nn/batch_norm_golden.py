#!/usr/bin/env python3
"""Golden values of batch normalisation as a layer, in float64.

    python3 batch_norm_golden.py > batch_norm_golden.inc

Written from the paper (Ioffe and Szegedy 2015), without a look at the C++ code. Two batches pass through in
training, momentum 0.3, then the first one in evaluation; the gradients are those of the second batch, by the chain
rule through mean and variance step by step as in the paper's section 3. Inputs are binary fractions.
"""

import numpy as np

SHAPE = (3, 2, 2, 2)
MOMENTUM, EPSILON = 0.3, 1e-3


def numbers(factor, offset):
    return ((factor * np.arange(24) + offset) % 17 - 8).reshape(SHAPE) / 4.0


def per_channel(v):
    return v.reshape(1, 2, 1, 1)


def forward(x, mean, var, gamma, beta):
    return per_channel(gamma) * (x - per_channel(mean)) / np.sqrt(per_channel(var) + EPSILON) + per_channel(beta)


def backward(x, grad_y, gamma):
    axes, m = (0, 2, 3), x.size // 2
    mean, var = x.mean(axes), x.var(axes)
    centred, root = x - per_channel(mean), np.sqrt(per_channel(var) + EPSILON)
    grad_n = grad_y * per_channel(gamma)
    grad_var = (grad_n * centred * -0.5 / root**3).sum(axes)
    grad_mean = (-grad_n / root).sum(axes) + grad_var * (-2 * centred).sum(axes) / m
    grad_x = grad_n / root + per_channel(grad_var) * 2 * centred / m + per_channel(grad_mean) / m
    return grad_x, (grad_y * centred / root).sum(axes), grad_y.sum(axes)


def show(name, values):
    text = ", ".join(repr(float(v)) for v in np.asarray(values).ravel())
    print(f"const std::vector<double> {name}{{{text}}};")


def main():
    x1, x2, grad = numbers(5, 1), numbers(7, 4) * 0.5 + 3, numbers(3, 2)
    gamma, beta = np.array([1.5, -0.5]), np.array([0.25, 0.75])
    mean, var = np.zeros(2), np.ones(2)
    print("// Printed by batch_norm_golden.py; do not edit.\n// clang-format off")
    show("kFirst", x1)
    show("kSecond", x2)
    show("kGradOutput", grad)
    for name, x in (("First", x1), ("Second", x2)):
        batch_mean, batch_var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        y = forward(x, batch_mean, batch_var, gamma, beta)
        show(f"k{name}Output", y)
        show(f"k{name}Relu", np.maximum(y, 0))
        mean = (1 - MOMENTUM) * mean + MOMENTUM * batch_mean
        var = (1 - MOMENTUM) * var + MOMENTUM * batch_var
        show(f"kMeanAfter{name}", mean)
        show(f"kVarianceAfter{name}", var)
    for name, g in (("", grad), ("Relu", grad * (forward(x2, x2.mean((0, 2, 3)), x2.var((0, 2, 3)), gamma, beta) > 0))):
        grad_x, grad_gamma, grad_beta = backward(x2, g, gamma)
        show(f"k{name}GradInput", grad_x)
        show(f"k{name}GradGamma", grad_gamma)
        show(f"k{name}GradBeta", grad_beta)
    show("kEvaluated", forward(x1, mean, var, gamma, beta))
    show("kEvaluatedGradInput", grad * per_channel(gamma) / np.sqrt(per_channel(var) + EPSILON))


main()
