import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka import errors as kafka

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError
from stream_peer.kafka.client.reading import kafka_errors, read_to_end
from stream_peer.settings.process import Settings


class FakeConsumer:
    """A log of so many records a partition, which grows while it is read, handed out two at a time."""

    def __init__(self, lengths: dict[TopicPartition, int]) -> None:
        self._lengths = dict(lengths)
        self._positions = dict.fromkeys(lengths, 0)

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        assert set(partitions) == set(self._lengths)

    async def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self._lengths[tp] for tp in partitions}

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._positions = dict.fromkeys(partitions, 0)

    async def position(self, tp: TopicPartition) -> int:
        return self._positions[tp]

    async def getmany(self, *partitions: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms
        found = {}
        for tp in partitions:
            self._lengths[tp] += 1
            start = self._positions[tp]
            self._positions[tp] = min(start + 2, self._lengths[tp])
            found[tp] = [SimpleNamespace(offset=n) for n in range(start, self._positions[tp])]
        return found


async def read(consumer: FakeConsumer, partitions: list[TopicPartition]) -> list[int]:
    return [record.offset async for records in read_to_end(consumer, partitions) for record in records]


def test_a_reader_stops_where_the_log_ended_when_it_began() -> None:
    place = TopicPartition("t", 0)

    assert asyncio.run(read(FakeConsumer({place: 5}), [place])) == [0, 1, 2, 3, 4]


def test_every_partition_is_read_to_its_own_end_and_empty_ones_do_not_hang() -> None:
    lengths = {TopicPartition("t", 0): 1, TopicPartition("t", 1): 0, TopicPartition("t", 2): 4}

    assert sorted(asyncio.run(read(FakeConsumer(lengths), list(lengths)))) == [0, 0, 1, 2, 3]


def test_errors_of_the_client_become_ours() -> None:
    settings = Settings(bootstrap="kafka:1")

    with pytest.raises(NotAuthorisedError, match="No right to read or write"), kafka_errors(settings):
        raise kafka.TopicAuthorizationFailedError({"weights"})
    with pytest.raises(BrokerUnavailableError, match="kafka:1 do not answer"), kafka_errors(settings):
        raise kafka.KafkaConnectionError("gone")
    with pytest.raises(KeyError), kafka_errors(settings):
        raise KeyError
