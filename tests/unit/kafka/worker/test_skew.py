"""The brokers' time, from what they say of the state that they stored, whatever the machine's clock says."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.lease import Lease
from stream_peer.kafka.worker.monitor import HealthMonitor, StallLimits
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.port import Appended, TopicPartition, Writing
from stream_peer.kafka.worker.producer import BatchProducer, BrokerClock
from stream_peer.log.changelog import ChangelogRow
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output
from tests.unit.kafka.worker.fakes import FakeProducer, Telling, eventually, surroundings

NOON = 1_772_366_400_000


class Steady:
    """Seconds that a test sets."""

    at = 1000.0

    def __call__(self) -> float:
        return self.at


class Broker:
    """Stores everything at a time of its own; ``None``: it keeps the time of the writer."""

    retries = 0

    def __init__(self, at: int | None) -> None:
        self.at = at

    async def produce(
        self, rows: Mapping[TopicPartition, Sequence[Writing]], lease: Lease | None = None
    ) -> list[list[Appended]]:
        return [[Appended(0, len(of_partition), self.at)] for of_partition in rows.values()]

    async def partitions(self, _topic: str) -> int:
        return 1

    async def ids(self, _names: Iterable[str]) -> Ids:
        return Ids("", {})

    async def asked(self, _names: Iterable[str]) -> Ids | None:
        return None


class WrongClock:
    """The runtime of a machine whose time of day a test sets."""

    def __init__(self, steady: Steady) -> None:
        self.now = steady
        self.time_of_day = NOON

    def wall(self) -> int:
        return self.time_of_day


class Skews(Telling):
    """Remembers the skew that it was told last."""

    last: float | None = None

    def skewed(self, seconds: float | None) -> None:
        self.last = seconds


def producer(broker: Broker, clock: BrokerClock, steady: Steady) -> BatchProducer:
    deadlines = Deadlines(silence=10, shutdown=10, broker=10)
    return BatchProducer(broker, str, Heartbeats(deadlines, steady), clock=clock)


async def test_the_first_state_that_is_stored_tells_the_brokers_time_and_it_goes_on_with_steady_seconds() -> None:
    steady = Steady()
    clock = BrokerClock(steady)
    before = clock.time()

    await producer(Broker(NOON), clock, steady).append("changelog", 0, [ChangelogRow(b"claim", b"")], 0)
    steady.at += 3600

    assert (before, clock.time()) == (None, NOON + 3_600_000)


async def test_a_topic_that_keeps_the_writers_time_tells_nothing() -> None:
    steady = Steady()
    clock = BrokerClock(steady)

    await producer(Broker(None), clock, steady).append("changelog", 0, [ChangelogRow(b"claim", b"")], 0)

    assert clock.time() is None


def test_the_acknowledgement_that_came_soonest_counts_and_old_ones_are_forgotten_when_others_come() -> None:
    steady = Steady()
    clock = BrokerClock(steady)

    for late in (300, 5, 900):
        clock.heard(NOON - late)
    soonest = clock.time()
    steady.at += 600
    clock.heard(NOON + 600_000 - 40)

    assert (soonest, clock.time()) == (NOON - 5, NOON + 600_000 - 40)


@pytest.mark.parametrize("hours", [30 * 24, -30 * 24, 0])
async def test_a_clock_that_jumps_while_a_worker_runs_changes_the_skew_that_it_shows_and_not_its_ticks(
    hours: int,
) -> None:
    steady = Steady()
    clock, told = BrokerClock(steady), Skews()
    runtime: Any = WrongClock(steady)
    around, _ = surroundings(FakeProducer(), observer=told)
    context = around._replace(runtime=runtime, notices=Notices(steady))
    clock.heard(NOON)
    heartbeats = Heartbeats(Deadlines(10, 10, 10), steady)
    writes = producer(Broker(NOON), clock, steady)
    monitor = HealthMonitor([], writes, heartbeats, StallLimits(20, 20, 20), Signatures(), context, clock)
    asked: list[int] = []

    def due(_partitions: Any, at: int) -> list[Output]:
        asked.append(at)
        return []

    monitor._ticker.due = due  # type: ignore[method-assign, assignment]

    runtime.time_of_day += hours * 3_600_000
    looking = asyncio.ensure_future(monitor.look())
    await eventually(lambda: asked)
    looking.cancel()

    assert (told.last, asked[0]) == (hours * 3600, NOON)
