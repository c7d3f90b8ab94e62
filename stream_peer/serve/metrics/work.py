"""What is true of the worker and its partitions at the moment of a scrape."""

import platform
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_peer import __version__
from stream_peer.events import topics
from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import Stage
from stream_peer.serve.metrics.catalogue import BY_NAME, MetricPoint, put

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
            yield MetricPoint("lag_seconds", place, max(0.0, self._wall() - owned.oldest / 1000))

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
