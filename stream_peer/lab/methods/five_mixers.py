"""The mixers that learn at their own forecast, in replay: what each has learnt from the questions of a feed.

Unlike the shadows of the service they go by what they said before, so they have sums of their own, in floats. A
question's share is taken out when its rounds or its outcome change, and put in again; each of its rounds counts as much
as the others.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_peer.feeds.facts import Facts
from stream_peer.feeds.ledger import Entry
from stream_peer.lab.formulas.five_mixers import FiveMixerSums, FiveMixerWeights
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.arguments import FloatArray, IndexArray

MIXERS = ("mean", "gradient-hedge", "gradient-normal-hedge", "outcomes", "hybrid")
"""By their places in ``FiveMixerWeights.mixers``; ``five`` is all of them, in the shares that outcomes give them."""

_OVER_EXPERTS = ("hedge", "normal", "truth", "hybrid_truth", "hybrid_peer")
_NEVER_NEGATIVE = ("absolute", "questions", "squares")
_Rates: TypeAlias = tuple[float, float]


class _Share(NamedTuple):
    """What a round of a question has added: of its experts, and of the mixers."""

    experts: IndexArray
    sums: FiveMixerSums
    weight: float


class FiveMixers:
    """Sums of `FiveMixerSums` over the questions of a feed."""

    def __init__(self) -> None:
        self._sums = FiveMixerSums.nothing(0)
        self._said: dict[Entry, dict[bytes, FiveMixerWeights]] = {}
        self._shares: dict[Entry, list[_Share]] = {}

    def weights(self, experts: IndexArray, rates: _Rates, n_experts: int, mixer: str) -> FloatArray:
        """Mixing weights over some experts, of one mixer or of ``five``."""
        said = self._weights(experts, rates, n_experts)
        return said.mix if mixer == "five" else np.asarray(said.mixers[MIXERS.index(mixer)], dtype=np.float64)

    def frozen(self) -> "FiveMixers":
        """The sums as they are now, for weights only: no question can be taken out of them."""
        twin = FiveMixers()
        twin._sums = deepcopy(self._sums)
        return twin

    def take_out(self, entry: Entry) -> None:
        """Forget what a question has added, until ``put_in``."""
        for share in self._shares.pop(entry, ()):
            self._add(share, -share.weight)

    def settle(self, entry: Entry) -> None:
        """A question has left the ledger: what it has added stays for good."""
        self._shares.pop(entry, None)
        self._said.pop(entry, None)

    def put_in(self, entry: Entry, n_experts: int) -> None:
        """Learn from a question as it is now known."""
        rounds = entry.facts()
        said = self._said.get(entry, {})
        self._said[entry] = {
            packed: said.get(packed) or self._weights(facts.experts, _rates(facts), n_experts)
            for packed, facts in zip(entry.rounds, rounds, strict=True)
        }
        if entry.evidence == "annulled":
            return
        outcome = None if entry.evidence == "open" else float(entry.evidence == 1)
        self._shares[entry] = [
            self._share(facts, self._said[entry][packed], outcome, entry.weight / len(rounds))
            for packed, facts in zip(entry.rounds, rounds, strict=True)
            if facts.votes.counts or (outcome is not None and len(facts.experts) > 1)
        ]
        for share in self._shares[entry]:
            self._add(share, share.weight)

    def _share(self, facts: Facts, said: FiveMixerWeights, outcome: float | None, weight: float) -> _Share:
        answers = facts.answers.astype(np.float64)
        sums = FiveMixerSums.contribution(said, facts.forecasts, answers, _rates(facts), outcome=outcome)
        return _Share(facts.experts, sums, weight)

    def _weights(self, experts: IndexArray, rates: _Rates, n_experts: int) -> FiveMixerWeights:
        self._reserve(int(experts.max(initial=-1)) + 1)
        own = {name: _columns(getattr(self._sums, name), experts) for name in _OVER_EXPERTS}
        sums = FiveMixerSums(**own, slope=self._sums.slope, above=self._sums.above)
        return sums.weights(rates, max(n_experts, 1))

    def _reserve(self, n_experts: int) -> None:
        room = self._sums.hedge.outcome.shape[0]
        if n_experts > room:
            grown = {name: getattr(self._sums, name).joined(max(n_experts, 2 * room)) for name in _OVER_EXPERTS}
            self._sums = FiveMixerSums(**grown, slope=self._sums.slope, above=self._sums.above)

    def _add(self, share: _Share, weight: float) -> None:
        for name in _OVER_EXPERTS:
            into, part = getattr(self._sums, name), getattr(share.sums, name)
            for field in fields(part):
                array = getattr(into, field.name)
                moved = array[share.experts] + weight * getattr(part, field.name)
                array[share.experts] = _kept(field.name, moved)
        for name in ("slope", "above"):
            into, part = getattr(self._sums, name), getattr(share.sums, name)
            for field in fields(part):
                array = getattr(into, field.name)
                array[...] = _kept(field.name, array + weight * getattr(part, field.name))


def _kept(name: str, amounts: FloatArray) -> FloatArray:
    """Amounts after a change. These sums are floats: what is taken out may leave a trace below 0 of what cannot be."""
    return np.maximum(amounts, 0.0) if name in _NEVER_NEGATIVE else amounts


def _rates(facts: Facts) -> _Rates:
    return facts.losses.rate_zero, facts.losses.rate_one


def _columns(sums: RegretSums, experts: Sequence[int] | IndexArray) -> RegretSums:
    return RegretSums(*(getattr(sums, field.name)[experts] for field in fields(sums)))
