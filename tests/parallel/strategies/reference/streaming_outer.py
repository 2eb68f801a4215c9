"""Streaming DiLoCo (Douillard et al. 2025): fragments in rotation, each launched `delay` iterations before it lands.
On the elements of a fragment, with m the mean of what was sent and s the base:

    D <- momentum D + rate (m - s);  W <- W + D;  s <- W, or with Nesterov W + momentum D;
    x <- (1 - mixing) s + mixing x

Fragments are made of tensors with their padding to multiples of 16, largest first, each to the smallest fragment.
"""
import numpy as np
from common import main, mean, merge_updaters


class StreamingOuter:
    def __init__(self, workers, frequency=10, fragments=2, delay=1, mixing=0.5, rate=1, momentum=0, nesterov=0,
                 state="average"):
        self.workers, self.count, self.delay, self.mixing = workers, fragments, delay, mixing
        self.rate, self.momentum, self.nesterov, self.state = rate, momentum, nesterov, state
        self.turn_length = frequency // fragments
        self.turn, self.in_flight = 0, False

    def start(self, replicas):
        self.d = np.zeros_like(self.parameters)
        self.base = self.parameters.copy()
        self.mean = np.zeros_like(self.parameters)
        padded = [(size + 15) // 16 * 16 for size in self.segments]
        begins = np.concatenate([[0], np.cumsum(self.segments)])
        sizes = [0] * self.count
        self.elements = [np.zeros(self.parameters.size, bool) for _ in range(self.count)]
        for s in sorted(range(len(padded)), key=lambda s: -padded[s]):
            f = sizes.index(min(sizes))
            sizes[f] += padded[s]
            self.elements[f][begins[s]:begins[s + 1]] = True
        self.since_launch = np.zeros((self.count, self.workers))
        self.launched = np.zeros((self.count, self.workers))

    @property
    def frequency(self):
        return self.delay if self.in_flight else self.turn_length - self.delay

    def launch(self, f, replicas):
        self.launched[f], self.since_launch[f] = self.since_launch[f], 0
        at = self.elements[f]
        self.mean[at] = mean([r.parameters for r in replicas], self.launched[f])[at]

    def land(self, f, replicas):
        at = self.elements[f]
        self.parameters = self.parameters.copy()
        self.d[at] = self.momentum * self.d[at] + self.rate * (self.mean - self.base)[at]
        self.parameters[at] += self.d[at]
        self.base[at] = self.parameters[at] + (self.momentum * self.d[at] if self.nesterov else 0)
        for r in replicas:
            r.parameters[at] = (1 - self.mixing) * self.base[at] + self.mixing * r.parameters[at]
        if f == self.count - 1:
            merge_updaters(replicas, self.launched[f], self.state)

    def merge(self, replicas, weights, last):
        self.since_launch += weights
        if last:
            return self.flush(replicas)
        if self.in_flight or self.delay == 0:
            if self.delay == 0:
                self.launch(self.turn, replicas)
            self.land(self.turn, replicas)
            self.in_flight, self.turn = False, (self.turn + 1) % self.count
        else:
            self.launch(self.turn, replicas)
            self.in_flight = True

    def flush(self, replicas):
        merged = self.in_flight
        for f in range(self.count):
            if self.in_flight and f == self.turn:
                self.land(f, replicas)
            if self.since_launch[f].any():
                self.launch(f, replicas)
                self.land(f, replicas)
                merged = True
        self.turn, self.in_flight = 0, False
        return merged


if __name__ == "__main__":
    main(StreamingOuter)
