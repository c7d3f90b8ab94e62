"""What the monitor looks after, seen through the liveness probe."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from stream_peer.kafka.worker.health import Health
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.monitor import HealthMonitor, StallLimits
from stream_peer.kafka.worker.ownership import RunningApp
from stream_peer.kafka.worker.port import LogEnd, TopicPartition
from stream_peer.kafka.worker.process import now
from stream_peer.kafka.worker.producer import BrokerClock
from stream_peer.log.signatures import Signatures
from tests.unit.clock import Clock
from tests.unit.kafka.worker.fakes import FakeMember, FakeProducer, surroundings
from tests.unit.kafka.worker.test_lag import partition


class Idle:
    """A producer that notes when it is given ticks: then the monitor has looked once more."""

    def __init__(self) -> None:
        self.looked = asyncio.Event()
        self.retries = 0

    async def answers(self) -> bool:
        return True

    async def send(self, _ticks: Any) -> None:
        self.looked.set()


def worker(*, is_member: bool, rebalancing: bool = False, partitions: Sequence[Any] = (), consumer: Any = None) -> Any:
    ownership: Any = SimpleNamespace(
        partitions=lambda: list(partitions), inputs_among=len, stage_name_of=lambda _changelog: "feed"
    )
    return RunningApp(FakeMember(rebalancing=rebalancing, is_member=is_member, position=consumer), ownership)


def recovering(end: LogEnd) -> Any:
    """A worker that has five records of a changelog still to read, which ends so."""
    app = worker(is_member=True, rebalancing=True, consumer=SimpleNamespace(log_end=lambda _tp: end))
    app.member.to_recover = {TopicPartition("changelog", 0): 5}
    return app


async def owning(end: LogEnd) -> Any:
    """A worker with a partition that is read and folded up to 10, of a log that ends so."""

    async def position_of(_tp: Any) -> int:
        return 10

    consumer = SimpleNamespace(log_end=lambda _tp: end, position_of=position_of)
    return worker(is_member=True, partitions=[await partition(10)], consumer=consumer)


async def liveness(app: Any, waits: float) -> tuple[bool, str]:
    """What the probe says after so many seconds in which nothing changed."""
    clock, stalls, producer = Clock(), StallLimits(10.0, 20.0, 30.0), Idle()
    heartbeats, health = Heartbeats(Deadlines(silence=1e6, shutdown=8.0, broker=1e6), clock), Health()
    health.attach(heartbeats, [app])
    context = surroundings(FakeProducer())[0]
    written: Any = producer
    monitor = HealthMonitor([app], written, heartbeats, stalls, Signatures(), context, BrokerClock(now))
    looking = asyncio.ensure_future(monitor.look())
    await asyncio.wait_for(producer.looked.wait(), 30)
    while waits > 0:  # brokers answer all the time
        clock.at += min(waits, 4.0)
        waits -= 4.0
        heartbeats.broker_answered()
    looking.cancel()
    return health.live()


@pytest.mark.parametrize(("seconds", "lives"), [(29.0, True), (31.0, False)])
async def test_a_worker_that_is_in_no_group_and_does_not_come_back_is_not_alive(seconds: float, lives: bool) -> None:
    found = await liveness(worker(is_member=False), seconds)

    assert found == ((True, "") if lives else (False, "acme-feed coming back into its group stands still"))


async def test_a_member_may_have_nothing_to_do_for_ever() -> None:
    assert await liveness(worker(is_member=True), 1e5) == (True, "")


async def test_a_partition_behind_an_open_transaction_waits_and_does_not_stand_still() -> None:
    waiting, stuck = await owning(LogEnd(12, 10)), await owning(LogEnd(12, 12))

    assert await liveness(waiting, 1e5) == (True, "")
    assert await liveness(stuck, 1e5) == (False, "question 0 stands still")
    assert [app.ownership.partitions()[0].waiting is None for app in (waiting, stuck)] == [False, True]


async def test_a_recovery_waits_for_an_open_transaction_and_is_stuck_without_one() -> None:
    assert await liveness(recovering(LogEnd(30, 10)), 1e5) == (True, "")
    assert await liveness(recovering(LogEnd(30, 30)), 1e5) == (False, "acme-feed joining stands still")
