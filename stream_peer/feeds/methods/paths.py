"""Learners that go by what they said before, and not only by the sums: of variants that only a replay can choose."""

from typing import NamedTuple

import numpy as np

from stream_peer.feeds.facts import Facts, losses_of
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.method import Method
from stream_peer.feeds.methods.five_mixers import FiveMixers
from stream_peer.feeds.reading.readings import Extent
from stream_peer.feeds.scoring import priced_regrets
from stream_peer.feeds.sums import IndexArray
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.learners import hedge_rate
from stream_peer.numerics.variants.learners import fixed_share

_TOO_SMALL = 1e-290


class SharedWeights:
    """The path of fixed share: the weights of all experts after the last round. It cannot be corrected afterwards."""

    def __init__(self) -> None:
        self._weights: FloatArray = np.zeros(0)

    def of(self, experts: IndexArray) -> FloatArray:
        """Weights of some experts, summing to 1; equal ones if theirs have become too small to be told apart."""
        self._take_in(int(experts.max()) + 1)
        present = self._weights[experts]
        total = float(np.add.reduce(present))
        return present / total if total > _TOO_SMALL else np.full(len(present), 1.0 / len(present))

    def copy(self) -> "SharedWeights":
        """The path up to here, which goes no further."""
        twin = SharedWeights()
        twin._weights = self._weights.copy()
        return twin

    def learn(self, experts: IndexArray, regrets: FloatArray, learning_rate: float, share: float) -> None:
        """Go on by a round: its experts and their priced regrets."""
        awake = np.zeros(len(self._weights), dtype=np.bool_)
        awake[experts] = True
        all_regrets = np.zeros(len(self._weights))
        all_regrets[experts] = regrets
        self._weights = unchecked(fixed_share)(self._weights, all_regrets, learning_rate, share, awake)

    def _take_in(self, n_experts: int) -> None:
        """Newcomers start at the mean weight of all."""
        before = len(self._weights)
        if n_experts > before:
            grown = np.full(n_experts, 1.0 / n_experts)
            grown[:before] = self._weights * (before / n_experts)
            self._weights = grown


class Paths(NamedTuple):
    """What such learners have come to over the questions of a feed; nothing where its method has none of them."""

    shared: SharedWeights
    five: FiveMixers

    @classmethod
    def beginning(cls) -> "Paths":
        """Before the first question."""
        return cls(SharedWeights(), FiveMixers())

    def frozen(self, method: Method) -> "Paths":
        """As they are now, whatever is learnt from here on; those that the method does not use are left out."""
        return Paths(
            self.shared.copy() if method.shares else SharedWeights(),
            self.five.frozen() if method.side_mixer is not None else FiveMixers(),
        )

    def learn(self, facts: Facts, entry: Entry, seen: Extent, method: Method) -> None:
        """Go on by a round of a question that is in the sums, if the learner is fixed share; ``seen``: until then."""
        variant, losses = method.variant, facts.losses
        if variant is None or not method.shares or not facts.votes.counts or entry.evidence == "annulled":
            return
        rates = losses.rate_zero, losses.rate_one
        regrets = entry.weight * priced_regrets(losses_of(facts, method), losses.own, rates)
        loss_range = 1.0 + abs(losses.rate_zero - losses.rate_one)
        rate = variant.learning_rate or float(unchecked(hedge_rate)(seen.experts, seen.questions, loss_range))
        self.shared.learn(facts.experts, regrets, rate, variant.share)

    def put_in(self, entry: Entry, n_experts: int, method: Method) -> None:
        """A question is in the sums again: so it is for mixers that learn at their own forecast, if one is chosen."""
        if method.side_mixer is not None:
            self.five.put_in(entry, n_experts)

    def take_out(self, entry: Entry) -> None:
        """A question's contribution was taken out of the sums."""
        self.five.take_out(entry)

    def settle(self, entry: Entry) -> None:
        """A question has left the ledger: what it has added stays for good."""
        self.five.settle(entry)
