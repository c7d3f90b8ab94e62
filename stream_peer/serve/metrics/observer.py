"""Counters and histograms of what the worker reports, and gauges of itself and its partitions, read at each scrape."""

import platform
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    Summary,
    disable_created_metrics,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_peer import __version__
from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds
from stream_peer.log.observer import Observer
from stream_peer.log.signatures import UNSIGNED_KINDS
from stream_peer.log.stage import UNUSED, Effects, Stage
from stream_peer.serve.metrics.catalogue import BY_NAME, Described, MetricPoint, described, put
from stream_peer.serve.metrics.feeds import FeedCollector, HasViews
from stream_peer.serve.metrics.senders import Senders, UnknownFields, UnusedCounts

INPUTS: Mapping[str, str] = {
    "question": topics.FORECAST_EVENTS,
    "feed": topics.FEED_LOG,
    "control": topics.CONTROL_EVENTS,
}
"""The logical topic that each stage folds."""

_NAMES = (
    "owned_partitions",
    "lag_records",
    "lag_seconds",
    "waiting_for_transaction_seconds",
    "recovery_remaining_records",
    "rebuild_remaining_records",
    "rebuild_done_ratio",
    "snapshot_age_seconds",
    "state_records",
    "state_bytes",
    "open_questions",
    "oldest_deadline_timestamp_seconds",
    "ready",
    "live",
    "clock_skew_seconds",
    "settings_info",
    "build_info",
)


class HealthProbe(Protocol):
    """The state of the worker: each answer is (yes, why not)."""

    def live(self) -> tuple[bool, str]:
        """Whether the worker makes progress."""

    def ready(self) -> tuple[bool, str]:
        """Whether its partitions are assigned and recovered."""


@runtime_checkable
class HasQuestions(Protocol):
    """A stage that has questions whose rounds are still to come."""

    @property
    def open_questions(self) -> int:
        """How many."""

    @property
    def next_deadline(self) -> Milliseconds | None:
        """The earliest moment at which one of them is due; None: none is open."""


@runtime_checkable
class HasSettings(Protocol):
    """A stage that goes by feed settings."""

    @property
    def settings_hash(self) -> str:
        """Names those in force."""


@dataclass
class Owned:
    """What is known of an owned partition. ``undurable``: since when something was folded that is not durable."""

    stage: Stage
    lag: int | None = None
    oldest: Milliseconds | None = None
    waiting: float = 0.0
    undurable: float | None = None
    stored: tuple[int, int] | None = None


class InputLag(NamedTuple):
    """What is not folded of an owned input partition: records, and the age of the oldest in seconds. None: unknown.

    ``waiting``: for how many seconds it has waited for an open transaction.
    """

    topic: str
    partition: int
    records: int | None
    seconds: float | None
    waiting: float = 0.0


class WorkCollector(Collector):
    """Ownership, lag, state, questions, recovery, rebuilds; health, clock and settings of the worker.

    Parameters
    ----------
    health : Health or None
        None: nothing is said of health.
    settings_hash : str or None
        Of the settings that all workers must share.
    clock, wall : callable
        Seconds that go on steadily, and Unix time.
    """

    def __init__(
        self,
        health: HealthProbe | None,
        settings_hash: str | None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.owned: dict[tuple[str, int], Owned] = {}
        self.recovering: dict[tuple[str, int], int] = {}
        self.rebuilding: dict[tuple[str, int], tuple[int, int]] = {}
        self.skew: float | None = None
        self.clock = clock
        self._health, self._settings_hash, self._wall = health, settings_hash, wall

    def collect(self) -> Iterator[Metric]:
        """All that is true now."""
        families = {name: BY_NAME[name].family() for name in _NAMES}
        for points in (self._ownership(), self._progress(), self._of_worker(), self._settings()):
            for point in points:
                put(families, point)
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        """Registration reads no values."""
        return iter(())

    def _ownership(self) -> Iterator[MetricPoint]:
        counts = Tally(stage for stage, _ in self.owned)
        for stage in INPUTS:
            yield MetricPoint("owned_partitions", (stage,), counts[stage])
        for (stage, partition), owned in sorted(self.owned.items(), key=lambda item: item[0]):
            number = str(partition)
            yield from self._lag((INPUTS.get(stage, stage), number), owned)
            yield from self._state((stage, number), owned)
            if isinstance(owned.stage, HasQuestions):
                yield from _questions((number,), owned.stage)

    def lags(self) -> Iterator[InputLag]:
        """Of each owned partition."""
        for (stage, partition), owned in sorted(self.owned.items(), key=lambda item: item[0]):
            topic = INPUTS.get(stage, stage)
            told = {point.name: point.value for point in self._lag((topic, str(partition)), owned)}
            records = told.get("lag_records")
            known = None if records is None else int(records)
            yield InputLag(topic, partition, known, told.get("lag_seconds"), owned.waiting)

    def _lag(self, place: tuple[str, str], owned: Owned) -> Iterator[MetricPoint]:
        if owned.lag is None:
            return
        yield MetricPoint("lag_records", place, max(0, owned.lag))
        yield MetricPoint("waiting_for_transaction_seconds", place, owned.waiting)
        if owned.lag <= 0:
            yield MetricPoint("lag_seconds", place, 0.0)
        elif owned.oldest is not None:
            yield MetricPoint("lag_seconds", place, max(0.0, self._wall() - (self.skew or 0.0) - owned.oldest / 1000))

    def _state(self, place: tuple[str, str], owned: Owned) -> Iterator[MetricPoint]:
        if owned.stored is None:  # a stage that keeps none
            return
        records, size = owned.stored
        yield MetricPoint("state_records", place, records)
        yield MetricPoint("state_bytes", place, size)
        age = 0.0 if owned.undurable is None else max(0.0, self.clock() - owned.undurable)
        yield MetricPoint("snapshot_age_seconds", place, age)

    def _progress(self) -> Iterator[MetricPoint]:
        for (stage, partition), records in sorted(self.recovering.items()):
            yield MetricPoint("recovery_remaining_records", (stage, str(partition)), max(0, records))
        for (stage, partition), (folded, total) in sorted(self.rebuilding.items()):
            yield MetricPoint("rebuild_remaining_records", (stage, str(partition)), total - folded)
            yield MetricPoint("rebuild_done_ratio", (stage, str(partition)), folded / total if total else 0.0)

    def _of_worker(self) -> Iterator[MetricPoint]:
        if self._health is not None:
            yield MetricPoint("ready", (), float(self._health.ready()[0]))
            yield MetricPoint("live", (), float(self._health.live()[0]))
        if self.skew is not None:
            yield MetricPoint("clock_skew_seconds", (), self.skew)
        yield MetricPoint("build_info", (__version__, platform.python_version()), 1.0)

    def _settings(self) -> Iterator[MetricPoint]:
        if self._settings_hash is not None:
            yield MetricPoint("settings_info", ("process", self._settings_hash), 1.0)
        stages = (owned.stage for owned in self.owned.values())
        for name in sorted({stage.settings_hash for stage in stages if isinstance(stage, HasSettings)}):
            yield MetricPoint("settings_info", ("feeds", name), 1.0)


def _questions(place: tuple[str], stage: HasQuestions) -> Iterator[MetricPoint]:
    yield MetricPoint("open_questions", place, stage.open_questions)
    if stage.next_deadline is not None:
        yield MetricPoint("oldest_deadline_timestamp_seconds", place, stage.next_deadline / 1000)


_RESULTS = frozenset({"duplicate", "forwarded", "dead-letter", "too-late", "tick-ahead"})
_MADE = {"counter": Counter, "histogram": Histogram, "summary": Summary}
_OF_COLLECTORS = frozenset({"feed_rounds_total", "feed_outcomes_total", "feed_scored_total"})


class Metrics(Observer):
    """Implements the engine's ``Observer``; ``registry`` is what ``/metrics`` serves.

    ``unused`` and ``unknown_fields`` are for the status page, ``senders`` also for ``/senders``.

    Parameters
    ----------
    health : Health, optional
        Answers whether the worker is ready and live.
    settings_hash : str, optional
        Of the settings that all workers must share.
    """

    def __init__(self, health: HealthProbe | None = None, settings_hash: str | None = None) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library leaves it untyped
        self.registry = CollectorRegistry(auto_describe=False)
        self._feeds, self._work = FeedCollector(), WorkCollector(health, settings_hash)
        self.registry.register(self._feeds)
        self.registry.register(self._work)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        told = (metric for metric in described() if metric.kind in _MADE and metric.name not in _OF_COLLECTORS)
        self._made = {metric.name: self._make(metric) for metric in told}
        self._children: dict[tuple[str, ...], Any] = {}
        self.refused = Tally[str]()
        self.unused, self.unknown_fields, self.senders = UnusedCounts(), UnknownFields(), Senders()
        for what in (*UNUSED, "dated-anew"):
            if what not in _RESULTS:
                self._child("noted_total", what)
        for reason in Reason:  # all begin at 0: of a series that began at 1, rate and increase would not see the first
            self._child("dead_letters_total", reason)
        for kind in UNSIGNED_KINDS:
            self._child("unsigned_records_total", kind)

    def _make(self, metric: Described) -> Any:
        buckets = {"buckets": metric.buckets} if metric.buckets else {}
        return _MADE[metric.kind](metric.full_name, metric.help, metric.labels, registry=self.registry, **buckets)

    def _child(self, name: str, *labels: str) -> Any:
        """The metric of these labels. Kept: the library's own look-up costs as much again as counting."""
        key = name, *labels
        child = self._children.get(key)
        if child is None:
            made = self._made[name]
            child = self._children[key] = made.labels(*labels) if labels else made
        return child

    def lags(self) -> list[InputLag]:
        """How far behind the worker is with each partition that it owns."""
        return list(self._work.lags())

    # Partitions come and go: their gauges with them.

    def owned(self, stage_name: str, partition: int, stage: Stage) -> None:
        """Report the partition, and its feeds if it has any, from now on."""
        self._work.owned[stage_name, partition] = Owned(stage)
        self._work.recovering.pop((stage_name, partition), None)
        if isinstance(stage, HasViews):
            self._feeds.own(partition, stage)

    def released(self, stage_name: str, partition: int) -> None:
        """End every gauge of the partition: its next owner reports it."""
        self._work.owned.pop((stage_name, partition), None)
        self._work.recovering.pop((stage_name, partition), None)
        self._work.rebuilding.pop((stage_name, partition), None)
        if stage_name == "feed":
            self._feeds.release(partition)

    def rebalanced(self) -> None:
        """Count a rebalance. Gauges of recovery are set again: another worker may own some of the partitions now."""
        self._child("rebalances_total").inc()
        self._work.recovering.clear()

    # What was done.

    def folded(self, stage_name: str, partition: int, records: int, seconds: float, effects: Effects) -> None:
        """Count a batch."""
        self._child("records_total", stage_name).inc(records)
        self._child("batch_records", stage_name).observe(records)
        self._child("batch_seconds", stage_name).observe(seconds)
        for (kind, detail), count in effects.counts.items():
            self._count(INPUTS.get(stage_name, stage_name), kind, detail, count)
        if alone := effects.counts["event", "forecast"]:  # those in messages of many are counted by themselves
            self._child("forecasts_total").inc(alone)
        for (_, field), count in effects.unknown_fields.items():
            self._child("unknown_fields_total", self.unknown_fields.label(field)).inc(count)
        self.unknown_fields.count(effects.unknown_fields)
        self.senders.meet(effects.new_experts)
        self.senders.count(effects.busy_experts)
        self.senders.compare(effects.look_alikes)
        for topic, count in Tally(output.topic for output in effects.outputs).items():
            self._child("outputs_total", topic).inc(count)
        if effects.of_feeds:
            self.unused.count(effects.of_feeds)
            if stage_name == "feed":
                self._feeds.count(partition, effects.of_feeds)
        owned = self._work.owned.get((stage_name, partition))
        if owned is not None and records and owned.undurable is None:
            owned.undurable = self._work.clock()

    def _count(self, topic: str, kind: str, detail: str, count: int) -> None:
        if kind == "event":
            self._child("events_total", topic, "accepted", detail).inc(count)
        elif kind in _RESULTS:
            self._child("events_total", topic, kind, "").inc(count)
            if kind == "dead-letter":
                self._child("dead_letters_total", detail).inc(count)
                self.refused[detail] += count
        elif kind == "forecasts":
            self._child("forecasts_total").inc(count)
        elif kind == "round":
            self._child("rounds_total", detail).inc(count)
        elif kind == "unsigned":
            self._child("unsigned_records_total", detail).inc(count)
        elif kind in {"published", "unmoved"}:
            self._child("weights_total", kind).inc(count)
        else:
            self._child("noted_total", kind).inc(count)

    def snapshotted(self, stage_name: str, partition: int, rows: int, bytes_: int, seconds: float) -> None:
        """Count a snapshot: all that was folded is durable."""
        self._child("snapshot_rows_total", stage_name).inc(rows)
        self._child("snapshot_bytes_total", stage_name).inc(bytes_)
        self._child("snapshot_seconds", stage_name).observe(seconds)
        owned = self._work.owned.get((stage_name, partition))
        if owned is not None:
            owned.undurable = None

    def stored(self, stage_name: str, partition: int, records: int, bytes_: int) -> None:
        """Note how large the durable state is."""
        owned = self._work.owned.get((stage_name, partition))
        if owned is not None:
            owned.stored = records, bytes_

    def lag(
        self, stage_name: str, partition: int, records: int | None, oldest: Milliseconds | None, waiting: float = 0.0
    ) -> None:
        """Note how far behind an owned partition is, and how long it has waited for a transaction."""
        owned = self._work.owned.get((stage_name, partition))
        if owned is not None:
            owned.lag, owned.oldest, owned.waiting = records, oldest, waiting

    def polled(self, seconds_since_last: float) -> None:
        """Note a round of the fetch loop."""
        self._child("poll_gap_seconds").observe(seconds_since_last)

    def recovering(self, stage_name: str, partition: int, remaining: int) -> None:
        """Note how far the recovery of a partition is."""
        self._work.recovering[stage_name, partition] = remaining

    def input_lost(self, topic: str, partition: int, records: int) -> None:
        """Count what retention took before it was read."""
        logical = next((name for name in INPUTS.values() if topic.endswith(name)), topic)
        self._child("input_lost_records_total", logical, str(partition)).inc(records)

    def rebuilding(self, stage_name: str, partition: int, done: int, total: int) -> None:
        """Note how far a rebuild is."""
        self._work.rebuilding[stage_name, partition] = done, total

    def rebuilt(self, stage_name: str, partition: int) -> None:
        """Count a rebuild; its progress ends."""
        self._work.rebuilding.pop((stage_name, partition), None)
        self._child("rebuilds_total", stage_name).inc()

    def audited(self, stage_name: str, agrees: bool) -> None:  # noqa: FBT001 - what it was about
        """Count an audit."""
        self._child("audits_total", stage_name, "agrees" if agrees else "differs").inc()

    def retried(self, batches: int) -> None:
        """Count batches that the producer had to send once more."""
        self._child("producer_retries_total").inc(batches)

    def skewed(self, seconds: float | None) -> None:
        """Note how far our clock is ahead of the brokers'."""
        self._work.skew = seconds
