import asyncio
from typing import Any

from stream_peer.engine.stage import Output
from stream_peer.topology.producer import BatchProducer
from stream_peer.topology.watchdog import Limits, Vitals


class Builder:
    def append(self, **_: Any) -> object:
        return self

    def close(self) -> None:
        pass


class Metadata:
    offset = 0


class OneSlotClient:
    """A client with one slot a partition that says how many wait for it at once."""

    def __init__(self) -> None:
        self.waiting = self.most = self.sent = 0

    def create_batch(self) -> Builder:
        return Builder()

    async def partitions_for(self, topic: str) -> set[int]:
        return {0}

    async def send_batch(self, builder: Builder, topic: str, partition: int) -> asyncio.Future[Metadata]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        self.sent += 1
        future: asyncio.Future[Metadata] = asyncio.get_running_loop().create_future()
        future.set_result(Metadata())
        return future


async def test_writers_to_one_partition_take_turns() -> None:
    """Else those that lose the race for the client's slot time out although it moves on."""
    client = OneSlotClient()
    producer = BatchProducer({}, str, None, Vitals(Limits(10.0, 10.0, 10.0, 10.0)))
    producer._client = client

    await asyncio.gather(*(producer.send([Output("feed-log", b"econ", b"{}", 0, 0)]) for _ in range(20)))

    assert client.sent == 20
    assert client.most == 1
