"""How well forecasts of questions with options or thresholds did, each as one question, once outcomes are known."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from stream_peer.events.groups import group_id_of, limit_of
from stream_peer.events.outputs import MixedForecast
from stream_peer.feeds.scored import scored_of
from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.numerics.category_losses import multi_category_brier, ranked_probability_score
from stream_peer.numerics.coherent import isotonic_regression, simplex_projection
from stream_peer.tools.replay.history import FeedHistory

GroupKind: TypeAlias = Literal["options", "thresholds"]

COMPARED = ("mix", "mix, raw", "stretched", "stretched, raw", "mean")
"""Forecasts that are scored: made coherent as ``mixed-groups`` has them, raw as the parts have them; the plain mean."""


class _Group(NamedTuple):
    """Forecasts of the parts of a group, in order of options or thresholds, and their outcomes.

    ``is_rest``: it has options without a forecast.
    """

    forecasts: Mapping[str, FloatArray]
    outcomes: IntArray
    is_rest: bool


def group_losses(feed: FeedHistory, kind: GroupKind) -> Mapping[str, FloatArray]:
    """Losses of the scored forecasts of all groups of a kind whose outcome is known, by the names of ``COMPARED``.

    Of options multi-category Brier scores, of thresholds ranked probability scores. A group whose parts were resolved
    one by one, so that no single outcome gives theirs, is left out.
    """
    losses: dict[str, list[float]] = {name: [] for name in COMPARED}
    loss = multi_category_brier if kind == "options" else ranked_probability_score
    for group in _groups(feed, kind):
        for name in COMPARED:
            losses[name].append(loss(_said(group, kind, name), group.outcomes))
    return {name: np.array(values) for name, values in losses.items()}


def _said(group: _Group, kind: GroupKind, name: str) -> FloatArray:
    raw = group.forecasts[name.removesuffix(", raw")]
    if name == "mean" or name.endswith(", raw"):
        return raw
    return simplex_projection(raw, rest=group.is_rest) if kind == "options" else isotonic_regression(raw)


def _groups(feed: FeedHistory, kind: GroupKind) -> Iterator[_Group]:
    parts: dict[tuple[str, str], list[tuple[float, MixedForecast]]] = {}
    for record in feed.forecasts.values():
        group, limit = group_id_of(record.question), limit_of(record.question)
        if group is not None and (limit is None) == (kind == "options"):
            of_kind = parts.setdefault((group, "" if limit is None else limit.kind), [])
            of_kind.append((len(of_kind) if limit is None else limit.size, record))
    for of_group in parts.values():
        scored = [found for _, record in sorted(of_group, key=lambda one: one[0]) if (found := scored_of(record))]
        outcomes = np.array([outcome for _, outcome in scored], dtype=np.int64)
        is_one = int(outcomes.sum()) <= 1 if kind == "options" else not np.any(np.diff(outcomes) < 0)
        if scored and is_one:
            names = {name.removesuffix(", raw") for name in COMPARED}
            said = {name: np.clip([getattr(one, name) for one, _ in scored], 0.0, 1.0) for name in names}
            yield _Group(said, outcomes, is_rest=len(scored) < len(of_group))
