"""Averaging in groups that grow. Of the levels whose period divides the iterations since all were merged the last one
merges; the last level merges at an epoch's end, too.

The user's model is what the last level would merge. It is formed top down: each group counts with what it has trained
since the level above merged it, and within it each smaller group likewise, down to the workers.

With a codec a worker sends its move from what the last merge of the level, or of one above, has left.
"""
import numpy as np
from common import Sender, main


class HierarchicalAveraging:
    def __init__(self, workers, first=1, second=2, state="average", codec=""):
        self.codec = codec
        self.workers, self.periods, self.state = workers, [first, second], state
        # Group sizes: half the workers, or one.
        self.groups = [workers // 2 if workers % 2 == 0 else 1, workers]
        self.trained = np.zeros((2, workers))  # trained since the last merge of each level
        self.done = 0

    def start(self, replicas):
        self.bases = [[r.parameters.copy() for r in replicas] for _ in self.periods]
        self.sender = Sender(self.codec, len(replicas), self.segments)

    def plan(self, learning_rate, rounds):
        self.frequency = min(p - self.done % p for p in self.periods)

    def joined(self, values, level, first):
        """The value of the group of this level that begins with worker `first`."""
        size = self.groups[level]
        below = 1 if level == 0 else self.groups[level - 1]
        parts, weights = [], []
        for start in range(first, first + size, below):
            parts.append(values[start] if level == 0 else self.joined(values, level - 1, start))
            weights.append(self.trained[level, start:start + below].sum())
        if sum(weights) == 0:
            return values[first]  # not trained since their merge, so they are equal
        return sum(w * p for w, p in zip(weights, parts)) / sum(weights)

    def merge(self, replicas, weights, last):
        self.trained += np.array(weights, dtype=float)
        self.done += self.frequency
        level = 1 if last or self.done % self.periods[1] == 0 else 0
        if level == 1:
            self.done = 0
        parameters = [r.parameters for r in replicas]
        if self.codec:
            counts = self.shares(level)
            parameters = [self.sender.send(w, x, self.bases[level][w]) if counts[w] > 0 else x
                          for w, x in enumerate(parameters)]
        states = [r.updater.state for r in replicas]
        self.parameters = self.joined(parameters, 1, 0)
        size = self.groups[level]
        for first in range(0, self.workers, size):
            group = slice(first, first + size)
            if self.trained[level, group].sum() == 0:
                continue
            for r in replicas[group]:
                r.parameters = self.joined(parameters, level, first)
                if self.state == "average":
                    r.updater.state = self.joined(states, level, first)
                elif self.state == "reset":
                    r.updater.state = np.zeros_like(r.updater.state)
        self.trained[:level + 1] = 0
        for below in range(level + 1):
            self.bases[below] = [r.parameters.copy() for r in replicas]

    def shares(self, level):
        """Whether each worker counts in a merge of this level: see `joined`."""
        one = [np.eye(self.workers)[w] for w in range(self.workers)]
        size = self.groups[level]
        joined = [self.joined(one, level, first) if self.trained[level, first:first + size].sum() > 0
                  else np.zeros(self.workers) for first in range(0, self.workers, size)]
        return sum(joined)

    def flush(self, replicas):
        if not self.trained.any():
            return False
        self.merge(replicas, [0] * self.workers, True)
        return True


if __name__ == "__main__":
    main(HierarchicalAveraging)
