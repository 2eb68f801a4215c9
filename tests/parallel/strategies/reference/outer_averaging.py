"""Averaging with an outer optimiser, from the papers' formulas.

Classical block momentum (Chen & Huo 2016), from W, with G = mean - W:
    D <- momentum D + rate G;  W <- W + D
Nesterov: the workers start from S = W + momentum D, so G = mean - S, and the same two lines follow. With SlowMo (Wang
et al. 2019) the momentum is kept in units of the inner learning rate: U <- momentum U - rate G / lr, W <- W - lr U.
"""
import numpy as np
from common import Sender, main, mean, merge_updaters


class OuterAveraging:
    def __init__(self, workers, frequency=1, rate=1, momentum=0, nesterov=0, follow=0, state="average", codec=""):
        self.frequency, self.rate, self.nesterov, self.follow = frequency, rate, nesterov, follow
        self.momentum = 1 - 1 / workers if momentum == "bmuf" else momentum
        self.state, self.codec = state, codec

    def start(self, replicas):
        self.u = np.zeros_like(self.parameters)  # the momentum, divided by the learning rate if the rule follows it
        self.started = self.parameters
        self.sender = Sender(self.codec, len(replicas), self.segments)

    def plan(self, learning_rate, rounds):
        self.learning_rate = learning_rate if self.follow else 1

    def merge(self, replicas, weights, last):
        move = mean(self.sender.send_all(replicas, weights, self.started), weights) - self.started
        self.u = self.momentum * self.u + self.rate * move / self.learning_rate
        self.parameters = self.parameters + self.learning_rate * self.u
        ahead = self.momentum * self.learning_rate * self.u if self.nesterov else 0
        self.started = self.parameters + ahead
        for r in replicas:
            r.parameters = self.started.copy()
        merge_updaters(replicas, weights, self.state)


if __name__ == "__main__":
    main(OuterAveraging)
