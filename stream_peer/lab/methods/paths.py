"""Learners that go by what they said before, and not only by the sums: of methods that only a replay computes."""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from stream_peer.feeds.facts import Facts, losses_of, priced_regrets
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.weights import DECIMALS, Basis, ExpertWeights, Extent
from stream_peer.lab.formulas.learners import fixed_share
from stream_peer.lab.methods.five_mixers import FiveMixers
from stream_peer.numerics.arguments import FloatArray, IndexArray, unchecked
from stream_peer.numerics.learners import hedge_rate
from stream_peer.settings.feed.model import MethodSettings

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


class Paths:
    """What such learners and mixers have come to over the questions of a feed.

    Parameters
    ----------
    chosen : MethodSettings
    shared : SharedWeights, optional
        If the learner is fixed share.
    five : FiveMixers, optional
        If a mixer learns at its own forecast.
    """

    def __init__(self, chosen: MethodSettings, shared: SharedWeights | None, five: FiveMixers | None) -> None:
        self._chosen = chosen
        self._shared = shared
        self._five = five

    @classmethod
    def beginning(cls, chosen: MethodSettings) -> Callable[[], "Paths"] | None:
        """How a path begins; None if the settings name nothing that has one."""
        shares, mixes = chosen.learner == "fixed-share", chosen.mixer not in ("auto", "select")
        if not shares and not mixes:
            return None
        return lambda: cls(chosen, SharedWeights() if shares else None, FiveMixers() if mixes else None)

    def frozen(self) -> "Paths":
        """As they are now, whatever is learnt from here on."""
        shared, five = self._shared, self._five
        return Paths(self._chosen, shared and shared.copy(), five and five.frozen())

    def weights(self, read: ExpertWeights, basis: Basis) -> ExpertWeights:
        """The weights of some experts, given those that were read off the sums."""
        if self._shared is not None and len(basis.experts):
            select = self._shared.of(basis.experts).round(DECIMALS)
            read = replace(read, select=select, peer=read.peer if basis.method.mixes else select)
        if self._five is not None:
            rates = basis.rates[0].zero, basis.rates[0].one
            mix = self._five.weights(basis.experts, rates, basis.seen.experts, self._chosen.mixer)
            read = replace(read, peer=mix.round(DECIMALS))
        return read

    def learn(self, facts: Facts, entry: Entry, seen: Extent, method: Method) -> None:
        """Go on by a round of a question that is in the sums, if the learner is fixed share; ``seen``: until then."""
        votes, losses = facts.votes, facts.losses
        if self._shared is None or not votes.counts or entry.evidence == "annulled":
            return
        rates = losses.rate_zero, losses.rate_one
        regrets = entry.weight * priced_regrets(losses_of(facts, method), losses.own, rates)
        loss_range = 1.0 + abs(losses.rate_zero - losses.rate_one)
        chosen = self._chosen
        rate = chosen.learning_rate or float(unchecked(hedge_rate)(seen.experts, seen.questions, loss_range))
        self._shared.learn(facts.experts, regrets, rate, chosen.share)

    def put_in(self, entry: Entry, n_experts: int) -> None:
        """A question is in the sums again: so it is for mixers that learn at their own forecast."""
        if self._five is not None:
            self._five.put_in(entry, n_experts)

    def take_out(self, entry: Entry) -> None:
        """A question's contribution was taken out of the sums."""
        if self._five is not None:
            self._five.take_out(entry)

    def settle(self, entry: Entry) -> None:
        """A question has left the ledger: what it has added stays for good."""
        if self._five is not None:
            self._five.settle(entry)
