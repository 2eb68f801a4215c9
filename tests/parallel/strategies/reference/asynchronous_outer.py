"""Asynchronous outer steps on a virtual clock, as a simulation of events, from the papers' formulas.

Delayed Nesterov (Liu et al. 2024) in the paper's own form: workers take theta. With g = x - s, what an arrival has
moved since it took s, and N arrivals in a step:
    each arrival:  theta <- theta + rate / N g
    at the N-th:   m <- momentum m + (mean of the N);  theta <- theta + rate momentum m
The user's model is theta less the look-ahead, theta - rate momentum m. Without `nesterov` workers take W:
    each arrival:  W <- W + rate / N g;   at the N-th:  W <- W + rate momentum m;  m <- momentum m + (mean of the N)
Times are fractions, so that events at one time are seen to be at one time.
"""
import sys
from fractions import Fraction

import numpy as np
from common import BATCHES, EPOCHS, PROBLEMS, UPDATERS, Replica, Sender, batch_size, mean, value_of


class Training:
    def __init__(self, problem, updater, workers, frequency=1, rate=1, momentum=0, nesterov=0, arrivals=0, speeds="1",
                 fewer=0, staleness=1 << 60, grace=0, codec=""):
        self.sender = Sender(codec, workers, problem.segments)
        self.updater, self.workers = updater, range(workers)
        speeds = [Fraction(s) for s in str(speeds).split(",")]
        self.pace = [1 / speeds[w % len(speeds)] for w in self.workers]
        fastest = min(self.pace)
        self.quota = [max(1, int(frequency * fastest / p)) if fewer else frequency for p in self.pace]
        self.rate, self.momentum, self.nesterov = rate, momentum, nesterov
        self.n = arrivals or workers
        self.staleness, self.grace = staleness, grace
        self.replicas = [Replica(problem, updater) for _ in self.workers]
        self.point = problem.start()  # the point that workers start from
        self.m = np.zeros_like(self.point)
        self.sum, self.counted = np.zeros_like(self.point), 0
        self.taken = [self.point] * workers

    def model(self):
        return self.point - self.rate * self.momentum * self.m if self.nesterov else self.point

    def land(self, who, weights, go_on, last):
        """Merges the arrivals `who`; those who go on take the point."""
        trained = [w for w in who if weights[w] > 0]
        count = len(trained)
        if last and self.counted + count > 0:
            count = max(count, self.n - self.counted)
        if trained:
            sent = [self.sender.send(w, self.replicas[w].parameters, self.taken[w]) for w in trained]
            move = mean([x - self.taken[w] for w, x in zip(trained, sent)], [weights[w] for w in trained])
            self.point = self.point + self.rate * count / self.n * move
            self.sum = self.sum + count / self.n * move
        self.counted += count
        if self.counted >= self.n:
            if self.nesterov:
                self.m = self.momentum * self.m + self.sum
                self.point = self.point + self.rate * self.momentum * self.m
            else:
                self.point = self.point + self.rate * self.momentum * self.m
                self.m = self.momentum * self.m + self.sum
            self.sum, self.counted = np.zeros_like(self.point), 0
        for w in go_on:
            self.taken[w] = self.point
            self.replicas[w].parameters = self.point.copy()
        for w in trained:
            weights[w] = 0

    def epoch(self, iteration):
        """Yields the model after each landing."""
        workers = self.workers
        clock = [Fraction(0) for _ in workers]
        had, arrived, weights = [0 for _ in workers], [0 for _ in workers], [0 for _ in workers]
        lacking = set()  # workers that got no batch
        running, waiting = set(workers), []  # waiting workers have arrived and not landed, or must not continue
        pending, opened, batch, first, apart = [], None, 0, 0, False
        may_go_on = lambda w: arrived[w] - min(arrived) <= self.staleness
        while True:
            # Next events: (time, landing before arrival before batch, worker).
            events = [(clock[w], 1 if had[w] == self.quota[w] else 2, w) for w in running]
            now = max(clock[w] for w in workers if w not in running) if len(running) < len(clock) else 0
            if pending and any(may_go_on(w) for w in waiting):
                events.append((now if not running else max(now, opened + self.grace), 0, -1))
            time, kind, w = min(events)
            if kind == 2:
                if batch < BATCHES:
                    self.replicas[w].step(batch, first, iteration + batch // len(clock))
                    weights[w] += batch_size(batch)
                    first += batch_size(batch)
                    batch += 1
                else:  # time continues: arrivals of the others before this one still land
                    lacking.add(w)
                had[w] += 1
                clock[w] += self.pace[w]
            elif kind == 1:
                running.remove(w)
                waiting.append(w)
                opened = opened if pending else time
                pending.append(w)
                arrived[w] += 1
            else:  # without grace each arrival lands by itself, unless all wait for all
                alone = self.grace == 0 and self.staleness > 0
                who, left = (pending[:1], pending[1:]) if alone else (pending, [])
                if lacking.intersection(who):
                    break
                slowest = min(arrived[w] - (w in left) for w in workers)  # of what has landed
                go_on = [w for w in waiting if w not in left and arrived[w] - slowest <= self.staleness]
                self.land(who, weights, go_on, False)
                for w in go_on:
                    waiting.remove(w)
                    running.add(w)
                    clock[w], had[w] = time, 0
                pending, apart = left, len(go_on) < len(clock)
                yield self.model()
        if any(weights) or apart or (self.momentum > 0 and self.counted > 0):
            self.land(workers, weights, workers, True)
            yield self.model()

    def run(self):
        iteration = 0
        for _ in range(EPOCHS):
            yield from self.epoch(iteration)
            iteration += -(-BATCHES // len(self.workers))


options = {name: value_of(text) for name, text in (argument.split("=", 1) for argument in sys.argv[1:])}
for problem_name, problem in PROBLEMS.items():
    for updater_name, updater in UPDATERS.items():
        for workers in (3, 4):
            print("case", problem_name, updater_name, workers)
            for parameters in Training(problem(), updater, workers, **options).run():
                print(*("%.17g" % p for p in parameters))
