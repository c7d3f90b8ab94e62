"""How scored forecasts did, beside the mean and the median of what they were made of."""

from collections.abc import Mapping

from stream_peer.feeds.columns import FEED, VOTE_RULES
from stream_peer.feeds.scored import FORECASTS
from stream_peer.feeds.sums import UNIT
from stream_peer.numerics.losses import IntArray

DECIMALS = 12
"""To which scores are rounded: the last digits of a mean differ between machines."""

_EVALUATED, _ASKED, _TIED = FEED.at("evaluated"), FEED.at("asked"), FEED.at("tied")
_COUNTED = [FEED.at("moment_weight", rule) for rule in VOTE_RULES]


def read_scores(feed: IntArray) -> Mapping[str, float]:
    """Mean squared loss of scored forecasts, by their kind; empty before the first."""
    evaluated = int(feed[_EVALUATED]) * UNIT
    if not evaluated:
        return {}
    losses = (feed[FEED.span("mix_squared", "median_squared")] * UNIT / evaluated).round(DECIMALS).tolist()
    return dict(zip(FORECASTS, losses, strict=True))


def tie_share(feed: IntArray) -> float | None:
    """Share of the rounds that count whose published reference answer was a tie; None before the first."""
    counted = sum(int(feed[column]) for column in _COUNTED)
    return round(int(feed[_TIED]) / counted, DECIMALS) if counted else None


def low_evidence_share(feed: IntArray) -> float | None:
    """Share of rounds that had too few voters to count; None before the first."""
    asked, counted = int(feed[_ASKED]), sum(int(feed[column]) for column in _COUNTED)
    return max(0.0, round(1.0 - counted / asked, DECIMALS)) if asked else None
