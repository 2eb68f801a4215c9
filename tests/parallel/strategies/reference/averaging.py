"""Periodic averaging: every replica becomes the weighted mean. Also its periods, and the averages of merged models."""
from math import ceil, floor, sqrt

from common import main, mean, merge_updaters


class Averaging:
    """post_local: every iteration until that one. qsr: max(frequency, floor((qsr / learning rate)^2)) iterations, by the
    learning rate of the round's first step. adacomm: after that many rounds sqrt(their score / the first round's) times
    the frequency, or shrink times what it was if that is not fewer iterations; times sqrt(first learning rate / that of
    the round's first step). ema, swa: the model to look at is the average of all merged models."""

    def __init__(self, workers, frequency=1, state="average", post_local=0, qsr=0, adacomm=0, shrink=1, ema=0, swa=0):
        self.every = self.frequency = frequency
        self.state, self.post_local, self.qsr, self.ema, self.swa = state, post_local, qsr, ema, swa
        self.merged = 0
        self.adacomm, self.shrink = adacomm, shrink
        self.period, self.first_rate, self.first_score, self.seen = frequency, None, None, []

    def plan(self, learning_rate, rounds):
        self.frequency = self.every
        if self.qsr:
            self.frequency = max(self.every, floor((self.qsr / learning_rate) ** 2))
        if self.adacomm:
            self.first_rate = self.first_rate or learning_rate
            self.frequency = max(1, self.whole(self.period * sqrt(self.first_rate / learning_rate)))
        if rounds < self.post_local:
            self.frequency = 1

    @staticmethod
    def whole(iterations):
        """Rounded up, where it is above a whole number by more than rounding."""
        return ceil(iterations * (1 - 1e-12))

    def scored(self, score, iterations):
        self.first_score = self.first_score or score
        self.seen.append((score, iterations))
        if not self.adacomm or len(self.seen) < self.adacomm:
            return
        mean_score = sum(s * n for s, n in self.seen) / sum(n for _, n in self.seen)
        wanted = sqrt(mean_score / self.first_score) * self.every
        fewer = self.whole(wanted) < self.whole(self.period)
        self.period = max(1, wanted if self.shrink == 1 or fewer else self.shrink * self.period)
        self.seen = []

    def merge(self, replicas, weights, last):
        model = mean([r.parameters for r in replicas], weights)
        for r in replicas:
            r.parameters = model.copy()
        merge_updaters(replicas, weights, self.state)
        if not (self.ema or self.swa) or self.merged == 0:
            self.parameters = model
        elif self.swa:
            self.parameters = (self.merged * self.parameters + model) / (self.merged + 1)
        else:  # a smaller decay at first, as in TensorFlow
            decay = min(self.ema, (1 + self.merged) / (10 + self.merged))
            self.parameters = decay * self.parameters + (1 - decay) * model
        self.merged += 1


if __name__ == "__main__":
    main(Averaging)
