"""Which experts of a feed have series of their own."""

import math
from collections.abc import Iterable

from stream_peer.events.outputs import WeightedExpert

OTHER = "other"
"""Stands for all experts without series."""


class TopExperts:
    """Which experts of a feed have series of their own. One that has stays until it falls well out of the top.

    Without this, two experts that take turns at the edge would start and end series at every scrape.
    """

    def __init__(self) -> None:
        self._shown: frozenset[str] = frozenset()

    def choose(
        self, experts: Iterable[WeightedExpert], count: int
    ) -> tuple[list[WeightedExpert], list[WeightedExpert]]:
        """The experts to show, at most ``count``, and the rest."""
        ranked = sorted(experts, key=lambda expert: (-expert.mix, expert.id))
        names = [expert.id for expert in ranked if expert.id != OTHER]
        staying = [name for name in names[: count + math.ceil(count / 4)] if name in self._shown][:count]
        kept = set(staying)
        others = [name for name in names if name not in kept]
        self._shown = frozenset(staying + others[: count - len(staying)])
        return [e for e in ranked if e.id in self._shown], [e for e in ranked if e.id not in self._shown]
