"""Adaptive summation (Maleki et al. 2020) of the moves since the last merge, tensor by tensor, in pairs by rank."""
import numpy as np
from common import Sender, main, merge_updaters


def adasum(a, b):
    ab, aa, bb = a @ b, a @ a, b @ b
    return (1 - ab / (2 * aa) if aa > 0 else 1) * a + (1 - ab / (2 * bb) if bb > 0 else 1) * b


def tree(moves):
    while len(moves) > 1:
        moves = [adasum(moves[i], moves[i + 1]) for i in range(0, len(moves), 2)]
    return moves[0]


class Adasum:
    def __init__(self, workers, frequency=10, state="average", codec=""):
        self.frequency, self.state, self.codec = frequency, state, codec

    def start(self, replicas):
        self.sender = Sender(self.codec, len(replicas), self.segments)

    def merge(self, replicas, weights, last):
        ends = np.cumsum(self.segments)[:-1]
        sent = self.sender.send_all(replicas, weights, self.parameters)
        moves = [np.split(x - self.parameters, ends) for x in sent]
        self.parameters = self.parameters + np.concatenate([tree(list(segment)) for segment in zip(*moves)])
        for r in replicas:
            r.parameters = self.parameters.copy()
        merge_updaters(replicas, weights, self.state)


if __name__ == "__main__":
    main(Adasum, numbers_of_workers=(2, 4, 8))
