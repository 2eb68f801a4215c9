"""What the scripts of the averaging rules share: two problems, their batches, an inner optimiser, and the rounds.

Everything is float64 and written from the formulas; nothing of the library's code is used. tests/parallel/strategies/reference.h
defines the same problems in C++. Their data are multiples of powers of two, so both sides read the same numbers, bit
for bit, and differ by rounding alone.

A rule is a class with

    frequency                      local iterations in a round
    start(replicas)                optional: before the first round
    plan(learning_rate, rounds)    optional: before each round; the learning rate is that of its first step
    scored(score, iterations)      optional: after each round, with the mean loss of its examples
    merge(replicas, weights, last) at a round's end; weights: examples that each worker has trained in it
    flush(replicas)                optional: an epoch ends without new batches; True if something was merged
    parameters                     the user's model afterwards

and ends with `main(make_rule)`.
"""
import sys

import numpy as np

BATCHES = 23  # per epoch: with 3 and 4 workers the last rounds are partial and uneven
EPOCHS = 2


def batch_size(batch):
    return 1 + (7 * batch * batch + 3 * batch) % 5


class Quadratic:
    """Loss of a batch: the mean over its examples of sum_j a_j (p_j - c_j)^2 / 2, with the batch's own curvature a."""
    segments = [45, 25]

    def start(self):
        return np.zeros(sum(self.segments))

    def gradient(self, p, batch, first):
        j = np.arange(p.size)
        curvature = (1 + (5 * batch + 3 * j) % 7) / 4
        gradient = np.zeros_like(p)
        for i in range(first, first + batch_size(batch)):
            gradient += curvature * (p - (((29 * i + 13 * j) % 64) / 32 - 1))
        return gradient / batch_size(batch)

    def loss(self, p, batch, first):
        j = np.arange(p.size)
        curvature = (1 + (5 * batch + 3 * j) % 7) / 4
        i = np.arange(first, first + batch_size(batch))[:, None]
        return (curvature * (p - (((29 * i + 13 * j) % 64) / 32 - 1)) ** 2 / 2).sum() / batch_size(batch)


class Network:
    """6 inputs, 5 units with tanh, 4 classes with softmax and cross-entropy."""
    inputs, hidden, classes = 6, 5, 4
    segments = [hidden * inputs, hidden, classes * hidden, classes]

    def start(self):
        return ((23 * np.arange(sum(self.segments))) % 32 - 16) / 32

    def forward(self, p, batch, first):
        """Weights of the output, inputs, hidden units, probabilities, and which class is right."""
        ends = np.cumsum(self.segments)
        w1, b1, w2, b2 = np.split(p, ends[:-1])
        w1, w2 = w1.reshape(self.hidden, self.inputs), w2.reshape(self.classes, self.hidden)
        i = np.arange(first, first + batch_size(batch))[:, None]
        j = np.arange(self.inputs)[None, :]
        x = ((37 * i + 11 * j + i * j) % 64) / 32 - 1
        labels = (7 * i + i // 3) % 4
        h = np.tanh(x @ w1.T + b1)
        logits = h @ w2.T + b2
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        return w2, x, h, e / e.sum(axis=1, keepdims=True), labels == np.arange(self.classes)

    def gradient(self, p, batch, first):
        w2, x, h, probabilities, right = self.forward(p, batch, first)
        d = (probabilities - right) / len(x)
        dh = (d @ w2) * (1 - h * h)
        return np.concatenate([(dh.T @ x).ravel(), dh.sum(axis=0), (d.T @ h).ravel(), d.sum(axis=0)])

    def loss(self, p, batch, first):
        _, x, _, probabilities, right = self.forward(p, batch, first)
        return -np.log(probabilities[right]).sum() / len(x)


class Sgd:
    def __init__(self, size):
        self.state = np.zeros(0)

    @staticmethod
    def learning_rate(iteration):
        return 0.25

    def move(self, gradient, iteration):
        return -self.learning_rate(iteration) * gradient


class Nesterovs:
    """v <- 0.5 v + g, p <- p - rate (g + 0.5 v); the rate is halved every 8 iterations."""

    def __init__(self, size):
        self.state = np.zeros(size)

    @staticmethod
    def learning_rate(iteration):
        return 0.125 * 0.5 ** (iteration // 8)

    def move(self, gradient, iteration):
        self.state = 0.5 * self.state + gradient
        return -self.learning_rate(iteration) * (gradient + 0.5 * self.state)


PROBLEMS = {"quadratic": Quadratic, "network": Network}
UPDATERS = {"sgd": Sgd, "nesterovs": Nesterovs}


class Replica:
    def __init__(self, problem, updater):
        self.problem = problem
        self.parameters = problem.start()
        self.updater = updater(self.parameters.size)

    def step(self, batch, first, iteration):
        gradient = self.problem.gradient(self.parameters, batch, first)
        self.parameters = self.parameters + self.updater.move(gradient, iteration)


def mean(values, weights):
    """The weighted mean, in worker order."""
    return sum(w / sum(weights) * v for w, v in zip(weights, values) if w > 0)


def merge_updaters(replicas, weights, how):
    """What a merge does with the updaters' state: average, keep or reset."""
    if how == "keep":
        return
    merged = mean([r.updater.state for r in replicas], weights)
    for r in replicas:
        r.updater.state = merged.copy() if how == "average" else np.zeros_like(merged)


def train(problem, updater, workers, rule):
    """Yields the user's model after each merge."""
    replicas = [Replica(problem, updater) for _ in range(workers)]
    rule.parameters = problem.start()
    rule.segments = problem.segments
    getattr(rule, "start", lambda replicas: None)(replicas)
    firsts = np.concatenate([[0], np.cumsum([batch_size(b) for b in range(BATCHES)])])
    iteration = rounds = 0
    for _ in range(EPOCHS):
        queues = [list(range(w, BATCHES, workers)) for w in range(workers)]
        ended = [False] * workers
        while not all(ended):
            getattr(rule, "plan", lambda rate, rounds: None)(updater.learning_rate(iteration), rounds)
            frequency = rule.frequency
            weights, longest, loss = [0] * workers, 0, 0.0
            for w, (replica, queue) in enumerate(zip(replicas, queues)):
                own = queue[:frequency]
                ended[w] = len(own) < frequency  # a worker notices the epoch's end when it requests a batch
                queues[w] = queue[frequency:]
                for k, batch in enumerate(own):
                    loss += problem.loss(replica.parameters, batch, firsts[batch]) * batch_size(batch)
                    replica.step(batch, firsts[batch], iteration + k)
                    weights[w] += batch_size(batch)
                longest = max(longest, len(own))
            iteration += longest
            rounds += 1
            if longest > 0:
                getattr(rule, "scored", lambda score, iterations: None)(loss / sum(weights), longest)
                rule.merge(replicas, weights, all(ended))
                yield rule.parameters
            elif getattr(rule, "flush", lambda replicas: False)(replicas):
                yield rule.parameters


def bf16(v):
    bits = v.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def int8(v):
    """One scale: there are at most 256 elements."""
    v = v.astype(np.float32)
    scale = np.abs(v).max() / np.float32(127)
    return np.clip(np.rint(v / scale), -127, 127) * scale if scale > 0 else np.zeros_like(v)


def e3m0(v):
    """Plus or minus a power of two, the nearest in the middle between two; seven of them, or 0."""
    v = v.astype(np.float32)
    nearest = lambda x: np.frexp(x)[1] - 1 + (np.abs(np.frexp(x)[0]) >= 0.75)
    lowest = nearest(np.abs(v).max()) - 6
    exponent = np.where(np.frexp(v)[1] == lowest, np.maximum(nearest(v), lowest), nearest(v))
    return np.where((exponent >= lowest) & (v != 0), np.sign(v) * 2.0 ** exponent, 0)


def top_k(v, share):
    count = int(np.ceil(share * v.size))
    sent = np.zeros_like(v)
    largest = np.argsort(-np.abs(v.astype(np.float32)), kind="stable")[:count]
    sent[largest] = v[largest]
    return sent


class Sender:
    """What the others get of replicas: a base that they know, and what a codec makes of the move from there. What it
    leaves out is added to the next move."""

    def __init__(self, codec, workers, segments):
        self.codec, self.segments = codec, segments
        self.residual = [np.zeros(sum(segments)) for _ in range(workers)]

    def send(self, worker, x, base, remember=1):
        if not self.codec:
            return x
        v = x - base + self.residual[worker]
        name, *share = str(self.codec).split(":")
        q = top_k(v, float(share[0])) if share else {"bf16": bf16, "int8": int8, "e3m0": e3m0}[name](v)
        self.residual[worker] = remember * (v - q.astype(float))
        return base + q.astype(float)

    def send_all(self, replicas, weights, base, remember=1):
        return [self.send(w, r.parameters, base, remember) if n > 0 else r.parameters
                for w, (r, n) in enumerate(zip(replicas, weights))]


def value_of(text):
    """A number, if the text is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def main(make_rule, numbers_of_workers=(3, 4)):
    """Options are name=value; `make_rule(workers=..., **options)` makes a rule for one training."""
    options = {name: value_of(text) for name, text in (argument.split("=", 1) for argument in sys.argv[1:])}
    for problem_name, problem in PROBLEMS.items():
        for updater_name, updater in UPDATERS.items():
            for workers in numbers_of_workers:
                print("case", problem_name, updater_name, workers)
                for parameters in train(problem(), updater, workers, make_rule(workers=workers, **options)):
                    print(*("%.17g" % p for p in parameters))
