"""The series of each feed that this worker owns, read off its newest outputs."""

import math
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, get_args, runtime_checkable

import msgspec
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_peer.events.outputs import ErrorRateStatus, TrustState, WeightedExpert
from stream_peer.feeds.scored import BINS, scored_kind
from stream_peer.feeds.views import FeedView
from stream_peer.serve.metrics.catalogue import OF_FEEDS, MetricPoint, put

_TRUST_STATES: tuple[TrustState, ...] = get_args(TrustState)
_STATUSES: tuple[ErrorRateStatus, ...] = get_args(ErrorRateStatus)

OTHER = "other"
"""The label of all experts without series."""


def expert_label(expert_id: str) -> str:
    r"""The label of an expert: its id, with a backslash before it where it could be taken for ``OTHER``.

    Examples
    --------
    >>> [print(expert_label(expert_id)) for expert_id in ("ann", "other", r"\other")]
    ann
    \other
    \\other
    [None, None, None]
    """
    return f"\\{expert_id}" if expert_id.lstrip("\\") == OTHER else expert_id


class TopExperts:
    """Which experts of a feed have series of their own. One that has stays until it falls well out of the top.

    Without this, two experts that take turns at the edge would start and end series at every scrape.
    """

    def __init__(self) -> None:
        self._shown: frozenset[str] = frozenset()

    def choose(self, leading: Iterable[WeightedExpert], count: int) -> list[WeightedExpert]:
        """The experts to show, at most ``count``, of those who lead, by weight."""
        ranked = list(leading)
        names = [expert.id for expert in ranked]
        staying = [name for name in names[: count + math.ceil(count / 4)] if name in self._shown][:count]
        joining = [name for name in names if name not in staying]
        self._shown = frozenset(staying + joining[: count - len(staying)])
        return [expert for expert in ranked if expert.id in self._shown]


OF_AN_EXPERT = 5
"""Series of an expert that has its own, at most: two kinds of weights, the coverage, two losses."""

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
            for name, loss in ("expert_peer_loss", expert.peer_loss), ("expert_outcome_loss", expert.outcome_loss):
                if loss is not None:
                    yield MetricPoint(name, (self._feed, label), loss)
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


MOST_SERIES = 6000
"""Of all feeds of a worker. Those of the worker itself come on top: some hundred, and about ten a partition."""

_COUNTED: Sequence[tuple[str, str, tuple[str, ...]]] = (
    *(("feed_rounds_total", kind, (kind,)) for kind in ("scored", "low-evidence")),
    *(("feed_outcomes_total", kind, (kind,)) for kind in ("revealed", "revised", "annulled")),
    *(("feed_scored_total", scored_kind(bin_, one), (bin_, str(one))) for bin_ in BINS for one in (0, 1)),
)
"""What is counted, by kind, and the labels after the feed. All begin at 0: a series that began at 1 would hide what was
first."""


@runtime_checkable
class HasViews(Protocol):
    """A stage that can say what was last published of its feeds."""

    def latest_views(self) -> Mapping[str, FeedView]:
        """The last published outputs of each feed."""


class OwnedFeeds(NamedTuple):
    """Feeds of an owned partition, and what happened in them since it is owned: keyed by feed and kind."""

    stage: HasViews
    counts: Tally[tuple[str, str]]


class FeedCollector(Collector):
    """Reads the feeds of owned partitions when it is scraped.

    The first feeds by name are shown, as many as there is room for with one expert each; the room that is left is
    shared equally among them for their experts, up to ``top_experts`` of each.
    """

    def __init__(self) -> None:
        self._places: dict[int, OwnedFeeds] = {}
        self._series: dict[str, FeedSeries] = {}

    def own(self, partition: int, stage: HasViews) -> None:
        """Show the feeds of a partition from now on."""
        self._places[partition] = OwnedFeeds(stage, Tally())

    def release(self, partition: int) -> None:
        """Show them no more: the next owner does."""
        self._places.pop(partition, None)

    def count(self, partition: int, counts: Mapping[tuple[str, str], int]) -> None:
        """Add what happened in feeds, by feed and kind."""
        place = self._places.get(partition)
        if place is not None:
            place.counts.update(counts)

    def collect(self) -> Iterator[Metric]:
        """All series of feeds."""
        views, counts = self._read()
        shown = self._shown(views)
        families = {metric.name: metric.family() for metric in OF_FEEDS}
        left = MOST_SERIES - sum(len(series.common) + len(_COUNTED) + OF_OTHERS for series in shown.values())
        room = left // len(shown) if shown else 0
        for feed, series in shown.items():
            for point in (*series.common, *series.of_experts(room), *_counters(feed, counts)):
                put(families, point)
        put(families, MetricPoint("feeds_not_shown", (), len(views) - len(shown)))
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        """Registration reads no values."""
        return iter(())

    def _read(self) -> tuple[dict[str, FeedView], Tally[tuple[str, str]]]:
        """What is newest of all feeds, by name, and what was counted of them. Counts of feeds that ended are gone."""
        views: dict[str, FeedView] = {}
        counts: Tally[tuple[str, str]] = Tally()
        for place in self._places.values():
            here = place.stage.latest_views()
            for key in [key for key in place.counts if key[0] not in here]:
                del place.counts[key]
            views.update(here)
            counts.update(place.counts)
        return dict(sorted(views.items())), counts

    def _shown(self, views: Mapping[str, FeedView]) -> dict[str, FeedSeries]:
        """The feeds that there is room for. Of those not shown nothing is kept."""
        shown: dict[str, FeedSeries] = {}
        left = MOST_SERIES
        for feed, view in views.items():
            series = self._series.get(feed) or FeedSeries(feed)
            series.show(view)
            left -= len(series.common) + len(_COUNTED) + OF_OTHERS + OF_AN_EXPERT
            if left < 0:
                break
            shown[feed] = series
        self._series = shown
        return shown


def _counters(feed: str, counts: Mapping[tuple[str, str], int]) -> Iterator[MetricPoint]:
    for name, kind, labels in _COUNTED:
        yield MetricPoint(name, (feed, *labels), counts.get((feed, kind), 0))
