"""Shadows once more, slow and obvious, beside the slow twin of their feed."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from stream_peer.events.feed_log import Round
from tests.slow_feed import PRIORS, Said, SlowFeed

PRIOR_NAMES = ("prior_mean", "prior_peer", "prior_truth_slow", "prior_truth_fast")
Mixed = tuple[float, float]


def losses(told: Mixed, y: int) -> tuple[float, float, float]:
    """Squared and log loss of the stretched forecast, squared loss of the mixed one."""
    mix, stretched = told
    chance = stretched if y else 1.0 - stretched
    return (stretched - y) ** 2, -math.log(min(max(chance, 0.001), 0.999)), (mix - y) ** 2


class SlowShadows(SlowFeed):
    """A feed that asks, at each round, what others would say of it; each is a mapping of settings by its name.

    ``others``: what they said, by question and boundary.
    ``beside``: the same, by what was said of the round.
    """

    def __init__(self, coin: Callable[[str, int], int], shadows: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(coin)
        self.shadows = shadows
        self.others: dict[tuple[str, int], dict[str, Mixed]] = {}
        self.beside: dict[int, dict[str, Mixed]] = {}
        self._now: dict[str, Mixed] = {}

    def round(self, event: Round, revision: int = -1) -> None:
        """As without shadows."""
        self._now = {}
        super().round(event, revision)
        self.others[event.question_id, event.boundary] = self._now

    def _said(self, p: Mapping[str, float], coin: int) -> Said:
        self._now = {name: self._told(p, shadow) for name, shadow in self.shadows.items()}
        said = super()._said(p, coin)
        self.beside[id(said)] = self._now
        return said

    def _told(self, p: Mapping[str, float], shadow: Mapping[str, Any]) -> Mixed:
        mixer, ids = shadow.get("mixer", {}), sorted(p)
        weights = self.mixers(
            ids,
            mixer.get("peer_rate", 24.0),
            mixer.get("truth_rate", 24.0),
            mixer.get("nominal_error_rate", 0.35),
            mixer.get("uniform_share", 0.0),
        )
        shares = self.shares([mixer.get(name, prior) for name, prior in zip(PRIOR_NAMES, PRIORS, strict=True)])
        mean = math.fsum(p.values()) / len(p)
        mixed = math.fsum(
            m * w * p[e] for m, ws in zip(shares, weights, strict=True) for w, e in zip(ws, ids, strict=True)
        )
        mix = (1.0 - self.net_share) * mixed + self.net_share * mean
        stretch = self.stretch() if shadow.get("stretch", True) else 0.0
        return mix, min(max(0.5 + (1.0 + stretch) * (mix - 0.5), 0.0), 1.0)

    def record(self, name: str) -> list[float]:
        """Questions, and losses of the shadow and of the live mixers by turns, summed over scored forecasts."""
        sums = [0.0] * 7
        for known in self.questions.values():
            said = known.evaluated
            told = None if said is None else self.beside[id(said)].get(name)
            if said is not None and told is not None:
                y = int(known.evidence)
                pairs = zip(losses(told, y), losses((said.mix, said.stretched), y), strict=True)
                row = [1.0, *(loss for pair in pairs for loss in pair)]
                sums = [total + known.weight * value for total, value in zip(sums, row, strict=True)]
        return sums
