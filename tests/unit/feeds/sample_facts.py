"""Facts by hand, for the tests of what is made of them."""

from collections.abc import Sequence

import numpy as np

from stream_peer.feeds.facts import Facts, ScoringInputs, score
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.weights import ExpertWeights, Mixing

METHOD = Method()


def scoring_inputs(
    n_experts: int,
    *,
    select: Sequence[float] | None = None,
    ticket: float = 0.5,
    net_share: float = 0.0,
    thresholds: Sequence[float] | None = None,
) -> ScoringInputs:
    uniform = np.full(n_experts, 1.0 / n_experts)
    return ScoringInputs(
        weights=ExpertWeights(uniform if select is None else np.array(select), uniform, uniform, uniform),
        mixing=Mixing((0.3, 0.5, 0.12, 0.08), 0.5),
        net_share=net_share,
        rule=0 if thresholds is None else 1,
        thresholds=None if thresholds is None else np.array(thresholds),
        rate_zero=0.1,
        rate_one=0.2,
        min_experts=3,
        stretch=True,
        coin=1,
        ticket=ticket,
    )


def facts_of(
    forecasts: Sequence[float],
    *,
    boundary: int = 1,
    experts: Sequence[int] | None = None,
    under: ScoringInputs | None = None,
    method: Method = METHOD,
) -> Facts:
    places = np.array(range(len(forecasts)) if experts is None else experts, dtype=np.int32)
    return score(boundary, places, np.array(forecasts), under or scoring_inputs(len(forecasts)), method)
