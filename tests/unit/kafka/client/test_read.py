from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka import errors as kafka

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError
from stream_peer.kafka.client.read import kafka_errors, read_to_end
from stream_peer.settings.process import Settings


class FakeConsumer:
    """A log of so many records a partition, which grows while it is read, handed out two at a time."""

    def __init__(self, lengths: dict[TopicPartition, int]) -> None:
        self._lengths = dict(lengths)
        self.positions = dict.fromkeys(lengths, 0)
        self.paused: set[TopicPartition] = set()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        assert set(partitions) == set(self._lengths)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused -= set(partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused |= set(partitions)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self._lengths[tp] for tp in partitions}

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.positions[tp] = offset

    def position(self, tp: TopicPartition) -> int:
        return self.positions[tp]

    def poll(self, *, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms
        found = {}
        for tp in self._lengths.keys() - self.paused:
            self._lengths[tp] += 1
            start = self.positions[tp]
            self.positions[tp] = min(start + 2, self._lengths[tp])
            found[tp] = [SimpleNamespace(offset=n) for n in range(start, self.positions[tp])]
        return found


def read(consumer: FakeConsumer, partitions: list[TopicPartition]) -> list[int]:
    return [record.offset for records in read_to_end(consumer, partitions) for record in records]


def test_a_reader_stops_where_the_log_ended_when_it_began_and_leaves_the_rest_to_who_reads_on() -> None:
    place = TopicPartition("t", 0)
    consumer = FakeConsumer({place: 5})

    assert read(consumer, [place]) == [0, 1, 2, 3, 4]
    assert consumer.positions == {place: 5}
    assert consumer.paused == set()


def test_every_partition_is_read_to_its_own_end_and_empty_ones_do_not_hang() -> None:
    lengths = {TopicPartition("t", 0): 1, TopicPartition("t", 1): 0, TopicPartition("t", 2): 4}

    assert sorted(read(FakeConsumer(lengths), list(lengths))) == [0, 0, 1, 2, 3]


def test_errors_of_the_client_become_ours() -> None:
    settings = Settings(bootstrap="kafka:1")

    with pytest.raises(NotAuthorisedError, match="No right to read or write"), kafka_errors(settings):
        raise kafka.TopicAuthorizationFailedError({"weights"})
    with pytest.raises(BrokerUnavailableError, match="kafka:1 do not answer"), kafka_errors(settings):
        raise kafka.KafkaConnectionError("gone")
    with pytest.raises(KeyError), kafka_errors(settings):
        raise KeyError
