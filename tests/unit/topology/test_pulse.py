"""What the pulse looks after, seen through the liveness probe."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stream_peer.engine.observer import NullObserver
from stream_peer.topology.health import Health
from stream_peer.topology.notices import Notices
from stream_peer.topology.pulse import Pulse, Stalls
from stream_peer.topology.watchdog import Limits, Vitals
from tests.unit.topology.test_health import Clock


class Sleepless:
    """A watchdog that only is there."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Idle:
    """A producer that notes when it is given ticks: then the pulse has looked once more."""

    def __init__(self) -> None:
        self.looked = asyncio.Event()
        self.retries = 0

    async def answers(self) -> bool:
        return True

    async def send(self, _ticks: Any) -> None:
        self.looked.set()


def worker(*, is_member: bool, rebalancing: bool = False) -> Any:
    return SimpleNamespace(
        started=True,
        rebalancing=rebalancing,
        rebalancing_count=1,
        in_recovery=False,
        consumer=SimpleNamespace(is_member=is_member, assignment=set),
        conf=SimpleNamespace(id="acme-feed"),
        observer=NullObserver(),
        notices=Notices(),
        ownership=SimpleNamespace(partitions=list, keepers={}),
    )


async def liveness(app: Any, waits: float) -> tuple[bool, str]:
    """What the probe says after so many seconds in which nothing changed."""
    clock, stalls, producer = Clock(), Stalls(10.0, 20.0, 30.0), Idle()
    vitals, health = Vitals(Limits(silence=1e6, write=5.0, shutdown=8.0, broker=1e6), clock), Health()
    health.attach(vitals, [app])
    pulse = Pulse([app], producer, vitals, Sleepless(), stalls)  # type: ignore[arg-type]
    await pulse.start()
    await asyncio.wait_for(producer.looked.wait(), 30)
    clock.at += waits
    await pulse.stop()
    return health.live()


@pytest.mark.parametrize(("seconds", "lives"), [(29.0, True), (31.0, False)])
async def test_a_worker_that_is_in_no_group_and_does_not_come_back_is_not_alive(seconds: float, lives: bool) -> None:
    found = await liveness(worker(is_member=False), seconds)

    assert found == ((True, "") if lives else (False, "acme-feed coming back into its group stands still"))


async def test_a_member_may_have_nothing_to_do_for_ever() -> None:
    assert await liveness(worker(is_member=True), 1e5) == (True, "")
