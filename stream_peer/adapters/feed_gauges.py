"""Gauges of feeds: read from the newest outputs of owned partitions whenever somebody scrapes."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

import msgspec
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from stream_peer.engine.views import FeedView
from stream_peer.events.outputs import TrustState, WeightedExpert

MAX_FEEDS = 200
OTHER = "other"

_TRUST_STATES: tuple[TrustState, ...] = (
    "ok",
    "warming-up",
    "low-evidence",
    "dependent",
    "contradicted",
    "uninformative",
)

_FAMILIES: Mapping[str, tuple[str, list[str]]] = {
    "expert_weight": (
        "Share of an expert; each kind sums to 1 over a feed. mix: combine forecasts. select: follow one expert.",
        ["feed", "expert", "kind"],
    ),
    "effective_experts": ("How many experts the mix listens to: 1 is one expert, N is the plain mean.", ["feed"]),
    "reference_error_ratio": (
        "Estimated share of wrong reference answers, by true outcome. At 0.5: weights are noise.",
        ["feed", "class"],
    ),
    "reference_error_low_ratio": ("Lower end of the interval of the mean error rate.", ["feed"]),
    "reference_error_high_ratio": ("Upper end of the interval of the mean error rate. At 0.5: unknown.", ["feed"]),
    "reference_error_measured_ratio": ("Share of wrong reference answers on resolved questions.", ["feed"]),
    "reference_error_effective_questions": ("Questions that the estimate rests on. Below 50: a guess.", ["feed"]),
    "certificate_regret": (
        "Upper bound on the summed loss of select above that of the best expert. No series: no bound holds.",
        ["feed"],
    ),
    "dependence_z": (
        "How far votes are from those of independent experts, in standard deviations. Above 3: trust is dependent.",
        ["feed"],
    ),
    "loss_rank_correlation": (
        "Rank correlation of peer and true losses over experts. Below 0.2: who agrees is not who is right.",
        ["feed"],
    ),
    "select_shrink_ratio": ("Share of uniform weights in select. Above 0: the feed is not trusted.", ["feed"]),
    "mean_voters": ("Independent voters a question. Below min_experts: nothing is learnt.", ["feed"]),
    "trust_state": ("1 for the state that the feed is in, 0 for the others. Not ok: read why.", ["feed", "state"]),
    "error_rate_drift_z": (
        "By how many standard deviations the error rate rose lately; 0: it is steady. Not 0: see drift of weights.",
        ["feed"],
    ),
    "drifting_experts": (
        "Experts that got better or worse lately beside the others. They are in weights.",
        ["feed"],
    ),
    "grouped_experts": (
        "Experts found to say the same as others, or as the crowd. Not 0: see groups of weights.",
        ["feed"],
    ),
    "feed_questions": ("Questions scored so far, by weight.", ["feed"]),
    "feed_resolved_questions": ("Questions whose outcome was revealed, by weight.", ["feed"]),
    "shadow_brier": (
        "Mean squared loss of stretched forecasts: of a shadow, and live on the same questions. Smaller is better.",
        ["feed", "shadow", "forecast"],
    ),
    "shadow_regret": (
        "Summed squared loss of a shadow above that of the live mixers. Below 0: it would have done better.",
        ["feed", "shadow"],
    ),
}
"""Gauges of feeds by name: what they say, and their labels."""


@runtime_checkable
class HasViews(Protocol):
    """A stage that can say what is newest of its feeds."""

    def views(self) -> Mapping[str, FeedView]:
        """The newest outputs of each feed."""


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
        others = [name for name in names if name not in staying]
        self._shown = frozenset(staying + others[: count - len(staying)])
        return [e for e in ranked if e.id in self._shown], [e for e in ranked if e.id not in self._shown]


class FeedCollector(Collector):
    """Reads the feeds of owned partitions when it is scraped."""

    def __init__(self) -> None:
        self.stages: dict[int, HasViews] = {}
        self._top: dict[str, TopExperts] = {}

    def collect(self) -> Iterator[Metric]:
        """All gauges of all owned feeds, the first ``MAX_FEEDS`` by name."""
        views = sorted((name, view) for stage in self.stages.values() for name, view in stage.views().items())
        shown = dict(views[:MAX_FEEDS])
        self._top = {feed: self._top.get(feed, TopExperts()) for feed in shown}
        families = _feed_families()
        for feed, view in shown.items():
            self._weights(families, feed, view)
            _error_rates(families, feed, view)
            _evidence(families, feed, view)
            _shadows(families, feed, view)
        yield from families.values()
        yield gauge(
            "feeds_not_shown",
            "Feeds without series because there are more than are shown. Above 0: read their topics instead.",
            value=max(0, len(views) - MAX_FEEDS),
        )

    def describe(self) -> Iterator[Metric]:
        """Nothing is read on registration."""
        return iter(())

    def _weights(self, families: dict[str, GaugeMetricFamily], feed: str, view: FeedView) -> None:
        shown, rest = self._top[feed].choose(view.weights.experts, view.top_experts)
        family = families["expert_weight"]
        for expert in shown:
            family.add_metric([feed, expert.id, "mix"], expert.mix)
            family.add_metric([feed, expert.id, "select"], expert.select)
        if rest:
            family.add_metric([feed, OTHER, "mix"], math.fsum(expert.mix for expert in rest))
            family.add_metric([feed, OTHER, "select"], math.fsum(expert.select for expert in rest))
        entropy = -math.fsum(e.mix * math.log(e.mix) for e in view.weights.experts if e.mix > 0)
        families["effective_experts"].add_metric([feed], math.exp(entropy) if view.weights.experts else 0.0)


def gauge(name: str, help_text: str, labels: Iterable[str] = (), value: float | None = None) -> GaugeMetricFamily:
    """A gauge of ours: with labels, or with its one value."""
    return GaugeMetricFamily(
        f"stream_peer_{name}", help_text, value, labels=None if value is not None else list(labels)
    )


def _feed_families() -> dict[str, GaugeMetricFamily]:
    return {name: gauge(name, help_text, labels) for name, (help_text, labels) in _FAMILIES.items()}


def _error_rates(families: dict[str, GaugeMetricFamily], feed: str, view: FeedView) -> None:
    rates = view.error_rates
    families["reference_error_ratio"].add_metric([feed, "zero"], rates.zero)
    families["reference_error_ratio"].add_metric([feed, "one"], rates.one)
    families["reference_error_low_ratio"].add_metric([feed], rates.low)
    families["reference_error_high_ratio"].add_metric([feed], rates.high)
    families["reference_error_effective_questions"].add_metric([feed], rates.effective_questions)
    measured = view.weights.error_rate.measured
    if measured is not None:
        families["reference_error_measured_ratio"].add_metric([feed], measured)


def _evidence(families: dict[str, GaugeMetricFamily], feed: str, view: FeedView) -> None:
    weights = view.weights
    for state in _TRUST_STATES:
        families["trust_state"].add_metric([feed, state], float(weights.status == state))
    families["select_shrink_ratio"].add_metric([feed], weights.select_shrink)
    gauged = {
        "dependence_z": view.dependence_z,
        "loss_rank_correlation": view.rank_correlation,
        "mean_voters": view.mean_voters,
    }
    for name, value in gauged.items():
        if value is not None:
            families[name].add_metric([feed], value)
    if weights.certificate is not None:
        families["certificate_regret"].add_metric([feed], weights.certificate.regret_at_most)
    drift = None if weights.drift is msgspec.UNSET else weights.drift
    z = drift.error_rate.z if drift and drift.error_rate else 0.0
    families["error_rate_drift_z"].add_metric([feed], z)
    families["drifting_experts"].add_metric([feed], float(drift.n_experts) if drift else 0.0)
    grouped = {expert for group in weights.groups or () for expert in group.experts}
    families["grouped_experts"].add_metric([feed], float(len(grouped)))
    families["feed_questions"].add_metric([feed], weights.questions)
    families["feed_resolved_questions"].add_metric([feed], weights.resolved)


def _shadows(families: dict[str, GaugeMetricFamily], feed: str, view: FeedView) -> None:
    """Of each shadow of the settings: there are few."""
    for shadow in view.weights.shadows or ():
        families["shadow_regret"].add_metric([feed, shadow.name], shadow.regret)
        if shadow.brier is not None and shadow.live_brier is not None:
            families["shadow_brier"].add_metric([feed, shadow.name, "shadow"], shadow.brier)
            families["shadow_brier"].add_metric([feed, shadow.name, "live"], shadow.live_brier)
