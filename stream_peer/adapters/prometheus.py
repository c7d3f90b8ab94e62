"""Metrics: what the worker tells (``Observer``) as counters and histograms, what it knows read at each scrape.

Labels come from bounded sets: topics, partitions, stages, reasons, the first feeds, the top experts; never a question.
Only the owner of a partition reports it: what it released ends with the release, so that a sum over workers is true.
"""

import platform
from collections import Counter as Tally
from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_peer import __version__
from stream_peer.adapters.feed_gauges import FeedCollector, HasViews, gauge
from stream_peer.engine.stage import Effects, Stage
from stream_peer.events import topics

_RESULTS = frozenset({"duplicate", "forwarded", "dead-letter", "too-late", "tick-ahead"})
_INPUTS = {"question": topics.FORECAST_EVENTS, "feed": topics.FEED_LOG, "control": topics.CONTROL_EVENTS}
_BATCH_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0)
_SNAPSHOT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_GAP_BUCKETS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0)


class WorkCollector(Collector):
    """What is true of the partitions at this moment."""

    def __init__(self) -> None:
        self.owned: set[tuple[str, int]] = set()
        self.lag: dict[tuple[str, int], int] = {}
        self.recovering: dict[tuple[str, int], int] = {}
        self.refolding: dict[tuple[str, int], tuple[int, int]] = {}

    def collect(self) -> Iterator[Metric]:
        """Ownership, lag, recovery and refolds."""
        owned = gauge(
            "owned_partitions", "Input partitions that this worker folds. The sum over workers is all.", ["stage"]
        )
        counts = Tally(stage for stage, _ in self.owned)
        for stage in _INPUTS:
            owned.add_metric([stage], counts[stage])
        yield owned
        lag = gauge(
            "lag_records", "Records of an owned partition not folded yet. Growing: too slow.", ["topic", "partition"]
        )
        for (topic, partition), records in sorted(self.lag.items()):
            lag.add_metric([topic, str(partition)], max(0, records))
        yield lag
        text = "Changelog records to read before the partition is owned. Not falling: recovery is stuck."
        recovering = gauge("recovery_remaining_records", text, ["stage", "partition"])
        for (stage, partition), records in sorted(self.recovering.items()):
            recovering.add_metric([stage, str(partition)], max(0, records))
        yield recovering
        yield from self._refolds()
        info = gauge("build_info", "Always 1; says which release runs on which Python.", ["version", "python"])
        info.add_metric([__version__, platform.python_version()], 1.0)
        yield info

    def _refolds(self) -> Iterator[Metric]:
        labels = ["stage", "partition"]
        text = "Log records still to be folded anew; the partition stands still. Not falling: the refold is stuck."
        remaining = gauge("refold_remaining_records", text, labels)
        done = gauge("refold_done_ratio", "Share of the log that was folded anew. No series: no refold.", labels)
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
