"""The series of a feed: read off its newest outputs, once for each."""

import math
from collections.abc import Iterator, Mapping
from typing import get_args

import msgspec

from stream_peer.events.outputs import ErrorRateStatus, TrustState
from stream_peer.feeds.views import FeedView
from stream_peer.serve.metrics.points import MetricPoint
from stream_peer.serve.metrics.top_experts import OTHER, TopExperts, expert_label

_TRUST_STATES: tuple[TrustState, ...] = get_args(TrustState)
_STATUSES: tuple[ErrorRateStatus, ...] = get_args(ErrorRateStatus)

OF_AN_EXPERT = 3
"""Series of an expert that has its own: two kinds of weights, and the coverage."""

OF_OTHERS = 2
"""Series of all other experts."""


class FeedSeries:
    """The series of a feed. They are made when its view or the number of its experts is another, not at each scrape."""

    def __init__(self, feed: str) -> None:
        self._feed = feed
        self._view: FeedView | None = None
        self._top = TopExperts()
        self._experts: tuple[int, list[MetricPoint]] = -1, []
        self.common: list[MetricPoint] = []

    @property
    def view(self) -> FeedView:
        """What they are read off."""
        if self._view is None:
            msg = f"nothing was shown of {self._feed} yet"
            raise LookupError(msg)
        return self._view

    def show(self, view: FeedView) -> None:
        """Read off another view, if it is another."""
        if view is not self._view:
            self._view = view
            self._experts = -1, []
            self.common = list(_common(self._feed, view))

    def of_experts(self, room: int) -> list[MetricPoint]:
        """At most ``room`` series of experts, and those of the others."""
        count = max(0, min(self.view.top_experts, room // OF_AN_EXPERT))
        if self._experts[0] != count:
            self._experts = count, list(self._weights(self.view, count))
        return self._experts[1]

    def _weights(self, view: FeedView, count: int) -> Iterator[MetricPoint]:
        shown = self._top.choose(view.leading, count)
        for expert in shown:
            label = expert_label(expert.id)
            yield MetricPoint("expert_weight", (self._feed, label, "mix"), expert.mix)
            yield MetricPoint("expert_weight", (self._feed, label, "select"), expert.select)
            yield MetricPoint("expert_coverage_ratio", (self._feed, label), expert.coverage)
        if len(shown) < len(view.weights.experts):
            mix = view.totals[0] - math.fsum(expert.mix for expert in shown)
            select = view.totals[1] - math.fsum(expert.select for expert in shown)
            yield MetricPoint("expert_weight", (self._feed, OTHER, "mix"), max(0.0, mix))
            yield MetricPoint("expert_weight", (self._feed, OTHER, "select"), max(0.0, select))


def _common(feed: str, view: FeedView) -> Iterator[MetricPoint]:
    """All but those of experts. What is not known has no series."""
    for name, value in (*_evidence(view), *_counted(view)):
        if value is not None:
            yield MetricPoint(name, (feed,), float(value))
    for name, values in _labelled(view):
        for label, number in values.items():
            yield MetricPoint(name, (feed, label), float(number))
    for shadow in view.weights.shadows or ():
        yield MetricPoint("shadow_regret", (feed, shadow.name), shadow.regret)
        if shadow.brier is not None and shadow.live_brier is not None:
            yield MetricPoint("shadow_brier", (feed, shadow.name, "shadow"), shadow.brier)
            yield MetricPoint("shadow_brier", (feed, shadow.name, "live"), shadow.live_brier)


def _evidence(view: FeedView) -> Iterator[tuple[str, float | None]]:
    rates, weights = view.error_rates, view.weights
    yield "reference_error_low_ratio", rates.low
    yield "reference_error_high_ratio", rates.high
    yield "reference_error_effective_questions", rates.effective_questions
    yield "reference_error_measured_ratio", weights.error_rate.measured
    yield "certificate_regret", None if weights.certificate is None else weights.certificate.regret_at_most
    yield "select_regret", view.select_regret
    yield "select_shrink_ratio", weights.select_shrink
    yield "dependence_z", view.dependence_z
    yield "loss_rank_correlation", view.rank_correlation
    yield "tie_ratio", view.ties
    yield "low_evidence_ratio", view.low_evidence
    yield "mean_voters", view.mean_voters
    drift = None if weights.drift is msgspec.UNSET else weights.drift
    yield "error_rate_drift_z", drift.error_rate.z if drift and drift.error_rate else 0.0
    yield "drifting_experts", drift.n_experts if drift else 0.0
    yield "grouped_experts", len({expert for group in weights.groups or () for expert in group.experts})


def _counted(view: FeedView) -> Iterator[tuple[str, float]]:
    weights = view.weights
    yield "effective_experts", view.effective_experts
    yield "feed_questions", weights.questions
    yield "feed_resolved_questions", weights.resolved
    yield "feed_updated_timestamp_seconds", view.updated / 1000
    yield "trust_acknowledged", view.acknowledged


def _labelled(view: FeedView) -> Iterator[tuple[str, Mapping[str, float]]]:
    rates, weights = view.error_rates, view.weights
    yield "reference_error_ratio", {"zero": rates.zero, "one": rates.one}
    yield "reference_error_status", {status: status == rates.status for status in _STATUSES}
    yield "trust_state", {state: state == weights.status for state in _TRUST_STATES}
    yield "mixer_share_ratio", msgspec.structs.asdict(weights.mixer)
    if weights.certificate is not None:
        yield "certificate_term", view.certificate_terms
    yield "brier", view.brier if view.best_brier is None else {**view.brier, "best-expert": view.best_brier}
