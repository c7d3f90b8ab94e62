"""Metrics: what the worker tells (``Observer``) as counters and histograms, what it knows read at each scrape.

Labels come from bounded sets: topics, partitions, stages, reasons, the first feeds, the top experts; never a question.
Only the owner of a partition reports it: what it released ends with the release, so that a sum over workers is true.
"""

import math
import platform
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from stream_peer import __version__
from stream_peer.engine.stage import Effects, Stage
from stream_peer.engine.views import FeedView
from stream_peer.events import topics
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
_RESULTS = frozenset({"duplicate", "forwarded", "dead-letter", "too-late", "tick-ahead"})
_INPUTS = {"question": topics.FORECAST_EVENTS, "feed": topics.FEED_LOG, "control": topics.CONTROL_EVENTS}
_BATCH_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0)
_SNAPSHOT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_GAP_BUCKETS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0)


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
        yield from families.values()
        yield _gauge(
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


def _gauge(name: str, help_text: str, labels: Iterable[str] = (), value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(
        f"stream_peer_{name}", help_text, value, labels=None if value is not None else list(labels)
    )


def _feed_families() -> dict[str, GaugeMetricFamily]:
    texts = {
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
        "trust_state": ("1 for the state that the feed is in, 0 for the others. Not ok: read why.", ["feed", "state"]),
        "feed_questions": ("Questions scored so far, by weight.", ["feed"]),
        "feed_resolved_questions": ("Questions whose outcome was revealed, by weight.", ["feed"]),
    }
    return {name: _gauge(name, help_text, labels) for name, (help_text, labels) in texts.items()}


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
    if weights.certificate is not None:
        families["certificate_regret"].add_metric([feed], weights.certificate.regret_at_most)
    families["feed_questions"].add_metric([feed], weights.questions)
    families["feed_resolved_questions"].add_metric([feed], weights.resolved)


class WorkCollector(Collector):
    """What is true of the partitions at this moment."""

    def __init__(self) -> None:
        self.owned: set[tuple[str, int]] = set()
        self.lag: dict[tuple[str, int], int] = {}
        self.recovering: dict[tuple[str, int], int] = {}
        self.refolding: dict[tuple[str, int], tuple[int, int]] = {}

    def collect(self) -> Iterator[Metric]:
        """Ownership, lag, recovery and refolds."""
        owned = _gauge(
            "owned_partitions", "Input partitions that this worker folds. The sum over workers is all.", ["stage"]
        )
        counts = Tally(stage for stage, _ in self.owned)
        for stage in _INPUTS:
            owned.add_metric([stage], counts[stage])
        yield owned
        lag = _gauge(
            "lag_records", "Records of an owned partition not folded yet. Growing: too slow.", ["topic", "partition"]
        )
        for (topic, partition), records in sorted(self.lag.items()):
            lag.add_metric([topic, str(partition)], max(0, records))
        yield lag
        text = "Changelog records to read before the partition is owned. Not falling: recovery is stuck."
        recovering = _gauge("recovery_remaining_records", text, ["stage", "partition"])
        for (stage, partition), records in sorted(self.recovering.items()):
            recovering.add_metric([stage, str(partition)], max(0, records))
        yield recovering
        yield from self._refolds()
        info = _gauge("build_info", "Always 1; says which release runs on which Python.", ["version", "python"])
        info.add_metric([__version__, platform.python_version()], 1.0)
        yield info

    def _refolds(self) -> Iterator[Metric]:
        labels = ["stage", "partition"]
        text = "Log records still to be folded anew; the partition stands still. Not falling: the refold is stuck."
        remaining = _gauge("refold_remaining_records", text, labels)
        done = _gauge("refold_done_ratio", "Share of the log that was folded anew. No series: no refold.", labels)
        for (stage, partition), (folded, total) in sorted(self.refolding.items()):
            remaining.add_metric([stage, str(partition)], total - folded)
            done.add_metric([stage, str(partition)], folded / total if total else 0.0)
        yield remaining
        yield done

    def describe(self) -> Iterator[Metric]:
        """Nothing is read on registration."""
        return iter(())


class Metrics:
    """Implements the engine's ``Observer``; ``registry`` is what ``/metrics`` serves."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library leaves it untyped
        self.registry = CollectorRegistry(auto_describe=False)
        self._feeds, self._work = FeedCollector(), WorkCollector()
        self.registry.register(self._feeds)
        self.registry.register(self._work)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._make_counters()
        self._make_histograms()

    def _make_counters(self) -> None:
        self._records = self._counter("records", "Input records folded.", "stage")
        self._events = self._counter(
            "events", "Records by what became of them; type names the accepted ones.", "stage", "result", "type"
        )
        self._dead = self._counter("dead_letters", "Messages refused, by reason. Rising: fix a producer.", "reason")
        self._noted = self._counter(
            "noted", "Forecasts or questions out of the ordinary: late, unknown-question, history-trimmed.", "what"
        )
        self._rounds = self._counter("rounds", "Rounds scored. low-evidence: too few voters, adds nothing.", "result")
        self._weights = self._counter("weights", "Changes of weights. unmoved: too small to publish.", "result")
        self._outputs = self._counter("outputs", "Records written and acknowledged, by logical topic.", "topic")
        self._rows = self._counter("snapshot_rows", "Changelog records written.", "stage")
        self._bytes = self._counter("snapshot_bytes", "Bytes of changelog records written.", "stage")
        self._rebalances = self._counter(
            "rebalances", "Times that partitions were assigned anew. Steady rise: a storm."
        )
        self._lost = self._counter(
            "input_lost_records",
            "Input gone before it was read. Above 0: retention is too short.",
            "topic",
            "partition",
        )
        self._refolds = self._counter(
            "refolds", "Times that a log was folded anew: settings, something forgotten, an upgrade, an audit.", "stage"
        )
        self._audits = self._counter(
            "audits",
            "Comparisons of state with what it follows from. differs: a fault, mended by a refold.",
            "stage",
            "result",
        )

    def _make_histograms(self) -> None:
        self._batch = self._histogram(
            "batch_seconds", "Time from a batch to its acknowledged effects.", _BATCH_BUCKETS, "stage"
        )
        self._snapshot = self._histogram("snapshot_seconds", "Time to make state durable.", _SNAPSHOT_BUCKETS, "stage")
        self._gap = self._histogram("poll_gap_seconds", "Time between two rounds of the fetch loop.", _GAP_BUCKETS)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"stream_peer_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"stream_peer_{name}", text, labels, registry=self.registry, buckets=buckets)

    def owned(self, stage_name: str, partition: int, stage: Stage) -> None:
        """Report the partition, and its feeds if it has any, from now on."""
        self._work.owned.add((stage_name, partition))
        self._work.recovering.pop((stage_name, partition), None)
        if isinstance(stage, HasViews):
            self._feeds.stages[partition] = stage

    def released(self, stage_name: str, partition: int) -> None:
        """End every gauge of the partition: its next owner reports it."""
        self._work.owned.discard((stage_name, partition))
        self._work.recovering.pop((stage_name, partition), None)
        self._work.refolding.pop((stage_name, partition), None)
        name = _INPUTS.get(stage_name, stage_name)
        for place in [(t, p) for t, p in self._work.lag if p == partition and t.endswith(name)]:
            del self._work.lag[place]
        if stage_name == "feed":
            self._feeds.stages.pop(partition, None)

    def folded(
        self, stage_name: str, partition: int, records: int, seconds: float, effects: Effects, last_offset: int
    ) -> None:
        """Count a batch."""
        del partition, last_offset
        self._records.labels(stage_name).inc(records)
        self._batch.labels(stage_name).observe(seconds)
        for (kind, detail), count in effects.counts.items():
            self._count(stage_name, kind, detail, count)
        for topic, count in Tally(output.topic for output in effects.outputs).items():
            self._outputs.labels(topic).inc(count)

    def _count(self, stage_name: str, kind: str, detail: str, count: int) -> None:
        if kind == "event":
            self._events.labels(stage_name, "accepted", detail).inc(count)
        elif kind in _RESULTS:
            self._events.labels(stage_name, kind, "").inc(count)
            if kind == "dead-letter":
                self._dead.labels(detail).inc(count)
        elif kind == "round":
            self._rounds.labels(detail).inc(count)
        elif kind in {"published", "unmoved"}:
            self._weights.labels(kind).inc(count)
        else:
            self._noted.labels(kind).inc(count)

    def snapshotted(self, stage_name: str, partition: int, rows: int, bytes_: int, seconds: float) -> None:
        """Count a snapshot."""
        del partition
        self._rows.labels(stage_name).inc(rows)
        self._bytes.labels(stage_name).inc(bytes_)
        self._snapshot.labels(stage_name).observe(seconds)

    def lag(self, topic: str, partition: int, records: int) -> None:
        """Note how far behind an owned partition is."""
        self._work.lag[topic, partition] = records

    def polled(self, seconds_since_last: float) -> None:
        """Note a round of the fetch loop."""
        self._gap.observe(seconds_since_last)

    def rebalanced(self) -> None:
        """Count a rebalance."""
        self._rebalances.inc()

    def recovering(self, stage_name: str, partition: int, remaining: int) -> None:
        """Note how far the recovery of a partition is."""
        self._work.recovering[stage_name, partition] = remaining

    def input_lost(self, topic: str, partition: int, records: int) -> None:
        """Count what retention took before it was read."""
        self._lost.labels(topic, str(partition)).inc(records)

    def refolding(self, stage_name: str, partition: int, done: int, total: int) -> None:
        """Note how far a refold is."""
        self._work.refolding[stage_name, partition] = done, total

    def refolded(self, stage_name: str, partition: int, seconds: float) -> None:
        """Count a refold; its progress ends."""
        del seconds
        self._work.refolding.pop((stage_name, partition), None)
        self._refolds.labels(stage_name).inc()

    def audited(self, stage_name: str, partition: int, agrees: bool) -> None:  # noqa: FBT001 - what it was about
        """Count an audit."""
        del partition
        self._audits.labels(stage_name, "agrees" if agrees else "differs").inc()
