"""How published forecasts did on resolved questions, beside the mean and the median of what they were made of."""

from collections.abc import Mapping

import numpy as np

from stream_peer.engine.facts import Stack
from stream_peer.engine.sums import UNIT, VOTE_RULES, feed_column, feed_columns
from stream_peer.numerics.losses import FloatArray, IntArray

DECIMALS = 12
"""To which scores are rounded: the last digits of a mean differ between machines."""

_SCORED = ("mix", "stretched", "mean", "median")
_SQUARED = feed_columns("mix_squared", "median_squared")
_RESOLVED, _ASKED, _TIED = feed_column("resolved"), feed_column("asked"), feed_column("tied")
_COUNTED = [feed_column("moment_weight", rule) for rule in VOTE_RULES]


def squared_losses(stack: Stack, outcome: int) -> list[float]:
    """Squared losses of the mixed forecast, the stretched one, mean and median, each averaged over the rounds."""
    totals = [0.0] * len(_SCORED)
    start = 0
    for head in stack.heads:
        median = _median(stack.forecasts[start : start + head.n_experts])
        start += head.n_experts
        for place, forecast in enumerate((head.mix, head.stretched, head.mean, median)):
            totals[place] += (forecast - outcome) * (forecast - outcome)
    return [total / len(stack.heads) for total in totals]


def _median(forecasts: FloatArray) -> float:
    ordered = np.sort(forecasts)
    middle = len(ordered) // 2
    return float(ordered[middle] + ordered[-1 - middle]) / 2.0


def read_scores(feed: IntArray) -> Mapping[str, float]:
    """Mean squared loss on resolved questions by forecast; empty before the first."""
    resolved = int(feed[_RESOLVED]) * UNIT
    if not resolved:
        return {}
    losses = (feed[_SQUARED] * UNIT / resolved).round(DECIMALS).tolist()
    return dict(zip(_SCORED, losses, strict=True))


def tie_share(feed: IntArray) -> float | None:
    """Share of the rounds that count whose published reference answer was a tie; None before the first."""
    counted = sum(int(feed[column]) for column in _COUNTED)
    return round(int(feed[_TIED]) / counted, DECIMALS) if counted else None


def low_evidence_share(feed: IntArray) -> float | None:
    """Share of rounds that had too few voters to count; None before the first."""
    asked, counted = int(feed[_ASKED]), sum(int(feed[column]) for column in _COUNTED)
    return max(0.0, round(1.0 - counted / asked, DECIMALS)) if asked else None
