#!/usr/bin/env python3
"""Golden values for the updaters and schedules, in float64, with the standard library alone.

    python3 updater_golden.py > updater_golden.inc

Written from the formulas in the literature, element by element, without a look at the C++ code:

    SGD        w -= lr g
    momentum   v = mu v + g;  w -= lr v                           (PyTorch's SGD)
    Nesterov   v = mu v + g;  w -= lr (g + mu v)                  (PyTorch's form, lr outside the velocity)
    Adam       m, v exponential means of g, g^2, corrected by 1 - beta^t;  w -= lr m^ / (sqrt(v^) + eps)
    AdamW      Adam, and w -= lr lambda w_before
    RMSProp    s = d s + (1 - d) g^2;  w -= lr g / (sqrt(s) + eps)
    AdaGrad    s += g^2;  w -= lr g / (sqrt(s) + eps)
    Lion       w -= lr sign(b1 m + (1 - b1) g);  m = b2 m + (1 - b2) g    (Chen et al. 2023, algorithm 2)

A step clips by norm over everything, clips by value, adds L1 and L2 to the weights' gradients, updates, and
takes decoupled decay off the weights. There are five weights and two biases; all inputs are binary fractions.
"""

import math

WEIGHTS, BIASES, STEPS = 5, 2, 10


def start():
    return [((3 * i) % 7 - 3) / 4 for i in range(WEIGHTS + BIASES)]  # has a zero and both signs


def gradient(step):
    return [((7 * i + 5 * step) % 13 - 6) / 8 for i in range(WEIGHTS + BIASES)]


def clipped(g, norm, value):
    length = math.sqrt(math.fsum(x * x for x in g))
    if norm and length > norm:
        g = [x * norm / length for x in g]
    if value:
        g = [max(-value, min(value, x)) for x in g]
    return g


class Sgd:
    def step(self, i, g, t):
        return g


class Momentum:
    def __init__(self, momentum):
        self.momentum, self.v = momentum, {}

    def step(self, i, g, t):
        self.v[i] = self.momentum * self.v.get(i, 0.0) + g
        return self.v[i]


class Nesterovs:
    def __init__(self, momentum):
        self.momentum, self.v = momentum, {}

    def step(self, i, g, t):
        self.v[i] = self.momentum * self.v.get(i, 0.0) + g
        return g + self.momentum * self.v[i]


class Adam:
    def __init__(self, beta1, beta2, eps):
        self.b1, self.b2, self.eps, self.m, self.v = beta1, beta2, eps, {}, {}

    def step(self, i, g, t):
        self.m[i] = self.b1 * self.m.get(i, 0.0) + (1 - self.b1) * g
        self.v[i] = self.b2 * self.v.get(i, 0.0) + (1 - self.b2) * g * g
        mean = self.m[i] / (1 - self.b1**t)
        square = self.v[i] / (1 - self.b2**t)
        return mean / (math.sqrt(square) + self.eps)


class RmsProp:
    def __init__(self, decay, eps):
        self.decay, self.eps, self.s = decay, eps, {}

    def step(self, i, g, t):
        self.s[i] = self.decay * self.s.get(i, 0.0) + (1 - self.decay) * g * g
        return g / (math.sqrt(self.s[i]) + self.eps)


class AdaGrad:
    def __init__(self, eps):
        self.eps, self.s = eps, {}

    def step(self, i, g, t):
        self.s[i] = self.s.get(i, 0.0) + g * g
        return g / (math.sqrt(self.s[i]) + self.eps)


class Lion:
    def __init__(self, beta1, beta2):
        self.b1, self.b2, self.m = beta1, beta2, {}

    def step(self, i, g, t):
        m = self.m.get(i, 0.0)
        self.m[i] = self.b2 * m + (1 - self.b2) * g
        return sign(self.b1 * m + (1 - self.b1) * g)


def fixed(value):
    return lambda i: value


def stepped(initial, decay, every):
    return lambda i: initial * math.prod([decay] * (i // every))


def exponential(initial, decay):
    return lambda i: initial * math.prod([decay] * i)


def cosine(initial, final, iterations):
    return lambda i: final + (initial - final) * (1 + math.cos(math.pi * min(i, iterations) / iterations)) / 2


def warmup(iterations, then):
    return lambda i: then(i) * min(1.0, (i + 1) / iterations)


def sign(x):
    return (x > 0) - (x < 0)


def train(name, rule, rate, l1=0.0, l2=0.0, decay=0.0, norm=0.0, value=0.0):
    w = start()
    for n in range(STEPS):
        penalty = math.fsum(l1 * abs(x) + l2 / 2 * x * x for x in w[:WEIGHTS])
        g = clipped(gradient(n), norm, value)
        before = list(w)
        for i, x in enumerate(before):
            weight = i < WEIGHTS
            total = g[i] + (l1 * sign(x) + l2 * x if weight else 0.0)
            w[i] = x - rate(n) * rule.step(i, total, n + 1) - (rate(n) * decay * x if weight else 0.0)
        print(f'{{"{name}", {n}, {penalty!r}, {{' + ", ".join(repr(x) for x in w) + "}},")


SCHEDULES = {
    "fixed": fixed(0.05),
    "step": stepped(0.2, 0.5, 3),
    "exponential": exponential(0.2, 0.75),
    "cosine": cosine(0.2, 0.02, 8),
    "warmup": warmup(4, fixed(0.1)),
    "warmup cosine": warmup(3, cosine(0.2, 0.02, 8)),
}

ALL = dict(l1=0.01, l2=0.05, decay=0.1, norm=1.0, value=0.375)

print("// Printed by updater_golden.py; do not edit.")
print("// clang-format off")
print("const GoldenStep kGoldenSteps[] = {  // name, iteration, penalty before, parameters after")
train("sgd", Sgd(), fixed(0.1))
train("sgd l1 l2", Sgd(), fixed(0.1), l1=0.01, l2=0.05)
train("sgd decay", Sgd(), fixed(0.1), decay=0.1)
train("sgd clip norm", Sgd(), fixed(0.1), norm=1.0)
train("sgd clip value", Sgd(), fixed(0.1), value=0.375)
train("sgd all", Sgd(), fixed(0.1), **ALL)
train("sgd momentum", Momentum(0.9), fixed(0.01))
train("sgd momentum all", Momentum(0.5), fixed(0.1), **ALL)
train("nesterovs", Nesterovs(0.9), fixed(0.01))
train("nesterovs l2", Nesterovs(0.9), fixed(0.01), l2=5e-4)
train("nesterovs all", Nesterovs(0.5), fixed(0.1), **ALL)
train("adam", Adam(0.9, 0.999, 1e-8), fixed(0.001))
train("adam all", Adam(0.8, 0.95, 1e-3), fixed(0.05), **ALL)
train("adamw", Adam(0.9, 0.999, 1e-8), fixed(0.001), decay=0.01)
train("adamw all", Adam(0.8, 0.95, 1e-3), fixed(0.05), **{**ALL, "decay": 0.1 + 0.3})
train("rmsprop", RmsProp(0.95, 1e-8), fixed(0.001))
train("rmsprop all", RmsProp(0.75, 1e-3), fixed(0.05), **ALL)
train("adagrad", AdaGrad(1e-6), fixed(0.1))
train("adagrad all", AdaGrad(1e-3), fixed(0.1), **ALL)
train("lion", Lion(0.9, 0.99), fixed(0.0001), decay=0.1)
train("lion all", Lion(0.5, 0.75), fixed(0.05), **ALL)
for schedule, rate in SCHEDULES.items():
    train("sgd " + schedule, Sgd(), rate)
print("};")
print("const GoldenRate kGoldenRates[] = {  // schedule, iteration, value")
for schedule, rate in SCHEDULES.items():
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100):
        print(f'{{"{schedule}", {n}, {rate(n)!r}}},')
print("};")
print("// clang-format on")
