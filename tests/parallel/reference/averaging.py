"""Periodic averaging: every replica becomes the weighted mean."""
from common import main, mean, merge_updaters


class Averaging:
    def __init__(self, workers, frequency=1, state="average"):
        self.frequency, self.state = frequency, state

    def merge(self, replicas, weights, last):
        self.parameters = mean([r.parameters for r in replicas], weights)
        for r in replicas:
            r.parameters = self.parameters.copy()
        merge_updaters(replicas, weights, self.state)


if __name__ == "__main__":
    main(Averaging)
