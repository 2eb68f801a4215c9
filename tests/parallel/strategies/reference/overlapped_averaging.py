"""Averaging that lands `delay` iterations after its launch. With m the mean of what was sent and s the base:

    D <- momentum D + rate (m - s);  W <- W + D;  s <- W, or with Nesterov W + momentum D

and then each worker, from what it has trained meanwhile:

    delta (Shen et al. 2019):                   x <- s + (x - sent)
    pull (Wang, Liang & Joshi 2020):            x <- (1 - strength) x + strength s
    eager (Kale, Douillard & Donchev 2025):     as delta; at the launch x took the outer step with (x - s) / workers
                                                in the place of m - s
"""
import numpy as np
from common import main, mean, merge_updaters


class OverlappedAveraging:
    def __init__(self, workers, frequency=2, delay=1, landing="delta", strength=0.6, rate=1, momentum=0, nesterov=0,
                 state="average"):
        self.workers, self.period, self.delay, self.landing, self.strength = workers, frequency, delay, landing, strength
        self.rate, self.momentum, self.nesterov, self.state = rate, momentum, nesterov, state
        self.sent = None

    def start(self, replicas):
        self.d = np.zeros_like(self.parameters)
        self.base = self.parameters
        self.since_launch = np.zeros(self.workers)

    @property
    def frequency(self):
        return self.period - self.delay if self.sent is None else self.delay

    def step(self, move):
        d = self.momentum * self.d + self.rate * move
        return d, self.parameters + d, self.parameters + d + (self.momentum * d if self.nesterov else 0)

    def launch(self, replicas, eager):
        self.weights, self.since_launch = self.since_launch, np.zeros(self.workers)
        self.mean = mean([r.parameters for r in replicas], self.weights)
        if eager:
            for r in replicas:
                r.parameters = self.step((r.parameters - self.base) / self.workers)[2]
        self.sent = [r.parameters for r in replicas]

    def land(self, replicas):
        self.d, self.parameters, self.base = self.step(self.mean - self.base)
        for r, sent in zip(replicas, self.sent):
            if self.landing == "pull":
                r.parameters = (1 - self.strength) * r.parameters + self.strength * self.base
            else:
                r.parameters = self.base + (r.parameters - sent)
        merge_updaters(replicas, self.weights, self.state)
        self.sent = None

    def merge(self, replicas, weights, last):
        self.since_launch = self.since_launch + weights
        if self.sent is not None:
            self.land(replicas)
        elif not last:
            self.launch(replicas, self.landing == "eager")
        if last:
            self.flush(replicas)

    def flush(self, replicas):
        merged = False
        if self.sent is not None:
            self.land(replicas)
            merged = True
        if self.since_launch.any():
            self.launch(replicas, False)
            self.land(replicas)
            merged = True
        return merged


if __name__ == "__main__":
    main(OverlappedAveraging)
