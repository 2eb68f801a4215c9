"""Elastic averaging (Zhang, Choromanska & LeCun 2015), synchronous:

    x_w <- x_w - alpha (x_w - c),   c <- c + beta (mean of x_w - c)

from the old values, or (order=centre) with the new centre in the first formula. alpha is beta / workers by default.
"""
from common import Sender, main, mean, merge_updaters


class ElasticAveraging:
    def __init__(self, workers, frequency=10, beta=0.9, alpha=None, order="both", state="keep", codec=""):
        self.frequency, self.beta, self.order, self.state = frequency, beta, order, state
        self.alpha = beta / workers if alpha is None else alpha
        self.codec = codec

    def start(self, replicas):
        self.sender = Sender(self.codec, len(replicas), self.segments)

    def merge(self, replicas, weights, last):
        old = self.parameters
        sent = self.sender.send_all(replicas, weights, old, remember=self.alpha)
        self.parameters = old + self.beta * (mean(sent, weights) - old)
        centre = self.parameters if self.order == "centre" else old
        for r in replicas:
            r.parameters = r.parameters - self.alpha * (r.parameters - centre)
        merge_updaters(replicas, weights, self.state)


if __name__ == "__main__":
    main(ElasticAveraging)
