"""Gossip: replicas are mixed with those of few others; the user's model is their mean.

Push-sum (Kempe et al. 2003; Assran et al. 2019) with weights that begin anew in each round: worker j sends
p_ij n_j x_j and p_ij n_j to i, which divides the one sum by the other.

With a codec (Koloskova, Stich & Jaggi 2019) worker j sends what the codec makes of its replica's distance from a public
copy v_j, by which v_j moves, and each takes x_i + (mix of all v)_i - v_i. On the complete graph the mean of what was sent
from the model replaces all.
"""
import numpy as np
from common import Sender, main, mean, merge_updaters


def tournament(workers, rounds):
    """Pairs in this round: all seats but the first move on by one; the first row faces the second."""
    seats = list(range(workers)) + ([None] if workers % 2 else [])
    fixed, others = seats[-1], seats[:-1]
    m = len(others)
    # Seats at the same distance left and right of seat `rounds` are paired.
    pairs = [(others[rounds % m], fixed)]
    for k in range(1, (m + 1) // 2):
        pairs.append((others[(rounds + k) % m], others[(rounds - k) % m]))
    return [pair for pair in pairs if None not in pair]


class Gossip:
    def __init__(self, workers, graph="exponential", frequency=1, state="average", codec=""):
        self.workers, self.graph, self.frequency, self.state = workers, graph, frequency, state
        self.codec = codec
        self.round = 0

    def start(self, replicas):
        self.public = [r.parameters.copy() for r in replicas]
        self.sender = Sender(self.codec, len(replicas), self.segments)

    def matrix(self):
        w = self.workers
        p = np.eye(w)
        if self.graph == "exponential":
            hops = [2**i for i in range(w) if 2**i < w]
            for sender in range(w):
                p[(sender + hops[self.round % len(hops)]) % w, sender] = 1
        elif self.graph == "ring":
            for i in range(w):
                p[i, (i + 1) % w] = p[(i + 1) % w, i] = 1
        elif self.graph == "pairs":
            for i, j in tournament(w, self.round):
                p[i, j] = p[j, i] = 1
        else:
            p = np.ones((w, w))
        return p / p.sum(axis=1, keepdims=True)

    def merge(self, replicas, weights, last):
        p = self.matrix()
        self.round += 1
        n = np.array(weights, dtype=float)
        sent = p * n  # [i, j]: the weight that j sends to i

        if self.codec and self.graph == "complete":
            self.parameters = mean(self.sender.send_all(replicas, weights, self.parameters), weights)
            for r in replicas:
                r.parameters = self.parameters.copy()
            return merge_updaters(replicas, weights, self.state)

        def mixed(values):
            return [sent[i] @ values / sent[i].sum() if sent[i].sum() > 0 else values[i] for i in range(len(replicas))]

        if self.codec:
            for w, r in enumerate(replicas):
                self.public[w] = self.sender.send(w, r.parameters, self.public[w], remember=0)
            for i, (r, x) in enumerate(zip(replicas, mixed(np.array(self.public)))):
                r.parameters = r.parameters + x - self.public[i]
        else:
            for r, x in zip(replicas, mixed(np.array([r.parameters for r in replicas]))):
                r.parameters = x
        if self.state == "average":
            for r, x in zip(replicas, mixed(np.array([r.updater.state for r in replicas]))):
                r.updater.state = x
        elif self.state == "reset":
            for i, r in enumerate(replicas):
                if sent[i].sum() > 0:
                    r.updater.state = np.zeros_like(r.updater.state)
        self.parameters = sum(r.parameters for r in replicas) / len(replicas)


if __name__ == "__main__":
    main(Gossip)
