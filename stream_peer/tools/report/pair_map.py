"""Who agrees with whom beyond what their skills explain: the experts with the most votes, pair by pair."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.arguments import FloatArray, IntArray, SmallIntArray
from stream_peer.tools.replay.history import FeedHistory
from stream_peer.tools.report.residuals import PairResiduals, neighbourly_order, pair_residuals

MOST_EXPERTS = 40
FEWEST_COMMON = 20
"""Common questions below which a pair is not looked at, as in `pair_residuals`."""

_CLIP = 8.0


class Pair(NamedTuple):
    """Two experts: on how many questions both voted, on which share they agreed and would by skill, and z."""

    one: str
    other: str
    common: int
    agreed: float
    expected: float
    z: float


class PairMap(NamedTuple):
    """Experts in an order in which groups stand together, with z and common questions of each two.

    ``pairs`` are those with enough common questions, the most alike first; ``mean_square`` is that of z, about 1 or
    less for independent experts.
    """

    experts: list[str]
    z: FloatArray
    common: IntArray
    pairs: list[Pair]
    mean_square: float | None


def pair_map(feed: FeedHistory) -> PairMap | None:
    """The map of a feed, from the forecasts in its ``peer-losses``; None if no two experts have enough in common.

    An expert's vote is its forecast above or below 1/2; where the feed votes by own medians, above or below the median
    of all of the expert's forecasts (the service uses the median of those so far).
    """
    names, votes = _together(*_votes(feed))
    if not names:
        return None
    found = pair_residuals(votes)
    order = neighbourly_order(np.clip(found.z, -_CLIP, _CLIP))
    return PairMap(
        [names[place] for place in order.tolist()],
        found.z[np.ix_(order, order)],
        _common(votes)[np.ix_(order, order)],
        sorted(_pairs(names, votes, found), key=lambda pair: (-pair.z, pair.one, pair.other)),
        found.mean_square,
    )


def _together(names: list[str], votes: SmallIntArray) -> tuple[list[str], SmallIntArray]:
    """Those who have enough questions in common with somebody."""
    known = [place for place, row in enumerate(_common(votes)) if int(row.max()) >= FEWEST_COMMON]
    return [names[place] for place in known], votes[:, known]


def _common(votes: SmallIntArray) -> IntArray:
    """On how many questions each two voted; 0 on the diagonal."""
    present = (votes != 0).astype(np.float64)
    common: IntArray = np.einsum("ti,tj->ij", present, present, optimize=True).astype(np.int64)
    np.fill_diagonal(common, 0)
    return common


def _pairs(names: Sequence[str], votes: SmallIntArray, found: PairResiduals) -> Iterator[Pair]:
    signs, common = votes.astype(np.float64), _common(votes)
    agreement = np.einsum("ti,tj->ij", signs, signs, optimize=True) / np.maximum(common, 1)
    expected = np.outer(found.alignments, found.alignments)
    for i, j in combinations(range(len(names)), 2):
        if common[i, j] >= FEWEST_COMMON:
            agreed, by_skill = (float(1.0 + each[i, j]) / 2.0 for each in (agreement, expected))
            yield Pair(names[i], names[j], int(common[i, j]), agreed, by_skill, float(found.z[i, j]))


def _votes(feed: FeedHistory) -> tuple[list[str], SmallIntArray]:
    """Votes of the most active experts: +1, -1, or 0 for none, question by question."""
    said = [{expert.id: expert.probability for expert in record.experts} for record in feed.losses.values()]
    active = Counter(name for forecasts in said for name in forecasts)
    names = [name for name, _ in sorted(active.items(), key=lambda each: (-each[1], each[0]))[:MOST_EXPERTS]]
    forecasts = np.array([[question.get(name, np.nan) for name in names] for question in said])
    forecasts = forecasts.reshape(len(said), len(names))
    lines = _lines(forecasts, own=feed.error_rates is not None and feed.error_rates.vote_rule == "own-median")
    return names, np.nan_to_num(np.sign(forecasts - lines)).astype(np.int8)


def _lines(forecasts: FloatArray, *, own: bool) -> float | Sequence[float]:
    """Above what a forecast is a vote for yes."""
    return [float(np.nanmedian(column)) for column in forecasts.T] if own else 0.5
