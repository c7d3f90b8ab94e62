import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError, MessageSizeTooLargeError

from stream_peer.errors import RecordTooLargeError, TopicsError
from stream_peer.events.outputs import encode_output, output_headers
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker import faust_bridge
from stream_peer.kafka.worker.faust_bridge import KafkaWriter
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.port import Appended
from stream_peer.kafka.worker.process import now
from stream_peer.kafka.worker.producer import BatchProducer
from stream_peer.log.changelog import ChangelogRow
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output
from tests.feed_outputs import part, weights


class Builder:
    def append(self, **_: Any) -> object:
        return self

    def close(self) -> None:
        pass


class Metadata:
    offset = 0
    timestamp: int | None = -1


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


async def test_signatures_are_bound_to_the_topic_that_is_there_and_stay_while_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Ids("cluster", {"acme-forecast-events": "id"})

    async def answer(_client: object, names: set[str]) -> Ids:
        assert names == {"acme-forecast-events", "acme-feed-log"}
        return told

    monkeypatch.setattr(faust_bridge, "cluster_ids", answer)
    signatures, expected = Signatures((b"key",)), Signatures((b"key",), "cluster", "id")
    writer = KafkaWriter({}, None)
    writer._client = SimpleNamespace(client=None)
    producer = BatchProducer(writer, "acme-{}".format, Heartbeats(Deadlines(10.0, 10.0, 10.0), now), signatures)
    tick = Output("forecast-events", b"tick", b"{}", 0, 0)

    assert await producer.topic_ids(["acme-feed-log"]) == told.topics
    bound = signatures.signed(tick)
    told = Ids("cluster", {})
    assert await producer.topic_ids(["acme-feed-log"]) == {}

    assert bound == signatures.signed(tick) == expected.signed(tick)


async def test_writers_to_one_partition_take_turns() -> None:
    """Else those that lose the race for the client's slot time out although it moves on."""
    client = OneSlotClient()
    writer = KafkaWriter({}, None)
    writer._client = client
    producer = BatchProducer(writer, str, Heartbeats(Deadlines(10.0, 10.0, 10.0), now))

    await asyncio.gather(*(producer.send([Output("feed-log", b"econ", b"{}", 0, 0)]) for _ in range(20)))

    assert client.sent == 20
    assert client.most == 1


class KeepingBuilder:
    """A batch of at most ``room`` records."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.records: list[dict[str, Any]] = []

    def append(self, **record: Any) -> object | None:
        if len(self.records) >= self.room:
            return None
        self.records.append(record)
        return self

    def close(self) -> None:
        pass


class KeepingClient:
    """A client that remembers its batches."""

    def __init__(
        self, *, room: int = 1_000, partitions: int = 4, error: Exception | None = None, at: int | None = None
    ) -> None:
        self.room, self.count, self.error, self.at = room, partitions, error, at
        self.batches: list[tuple[str, int, list[dict[str, Any]]]] = []

    def create_batch(self) -> KeepingBuilder:
        return KeepingBuilder(self.room)

    async def partitions_for(self, topic: str) -> set[int]:
        return set(range(self.count))

    async def send_batch(self, builder: KeepingBuilder, topic: str, partition: int) -> asyncio.Future[Any]:
        self.batches.append((topic, partition, builder.records))
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.error is not None:
            future.set_exception(self.error)
        else:
            metadata = Metadata()
            metadata.offset = 10 * len(self.batches)
            metadata.timestamp = self.at
            future.set_result(metadata)
        return future


def producer_on(client: KeepingClient, *, cloudevents: bool = False) -> BatchProducer:
    writer = KafkaWriter({}, None)
    writer._client = client
    heartbeats = Heartbeats(Deadlines(10.0, 10.0, 10.0), now)
    return BatchProducer(writer, "acme-{}".format, heartbeats, cloudevents=cloudevents)


async def test_outputs_go_to_the_partition_of_their_key_unless_they_name_one() -> None:
    client = KeepingClient()
    outputs = [Output("weights", b"econ", b"1", 7), Output("weights", b"econ", b"2", 8, 3)]

    await producer_on(client).send(outputs)

    places = {(topic, partition): [record["value"] for record in batch] for topic, partition, batch in client.batches}
    assert places == {("acme-weights", partition_of(b"econ", 4)): [b"1"], ("acme-weights", 3): [b"2"]}


async def test_records_keep_their_timestamps_headers_and_order() -> None:
    client = KeepingClient()
    outputs = [Output("dead-letters", b"k", None, at, 0, (("reason", b"empty"),)) for at in (5, 3, 9)]

    await producer_on(client).send(outputs)

    ((_, _, batch),) = client.batches
    assert [record["timestamp"] for record in batch] == [5, 3, 9]
    assert batch[0]["headers"] == [("reason", b"empty")]


async def test_cloudevents_headers_follow_from_an_output_and_others_have_none() -> None:
    client, own = KeepingClient(partitions=1), output_headers("9f3c")
    whole, second = encode_output(weights(7, "a")), part(weights(7), 1, 2, "b")
    described = [
        Output("weights", b"econ", whole, 1, headers=own),
        Output("weights", b"econ/1", second, 2, headers=own),
    ]
    others = [Output(topic, b"econ", whole, 3) for topic in ("feed-log", "dead-letters")]

    await producer_on(client, cloudevents=True).send([*described, *others, Output("weights", b"econ", None, 4)])
    await producer_on(client).send(described)

    (_, _, (one, other, deleted)), (_, _, (logged,)), (_, _, (dead,)), (_, _, plain) = client.batches
    assert one["value"] == whole
    assert one["headers"] == [
        *own,
        ("ce_specversion", b"1.0"),
        ("ce_id", b"econ/7"),
        ("ce_source", b"urn:stream-peer:topic:acme-weights"),
        ("ce_type", b"stream-peer.weights.v1"),
        ("ce_time", b"1970-01-01T00:00:00.001Z"),
        ("ce_dataschema", b"urn:stream-peer:weights:1"),
        ("content-type", b"application/json"),
    ]
    assert dict(other["headers"])["ce_id"] == b"econ/1/7"
    assert not [record for record in (deleted, logged, dead) if record["headers"]]
    assert [record["headers"] for record in plain] == [[*own], [*own]]


async def test_a_full_batch_is_followed_by_another_and_both_say_where_they_are() -> None:
    client = KeepingClient(room=2)

    places = await producer_on(client).append("changelog", 3, [ChangelogRow(b"%d" % n, b"") for n in range(5)], 0)

    assert places == [Appended(10, 2), Appended(20, 2), Appended(30, 1)]
    assert {partition for _, partition, _ in client.batches} == {3}


@pytest.mark.parametrize(
    ("at", "told"), [(1_772_366_400_000, 1_772_366_400_000), (1234, None), (0, None), (-1, None), (None, None)]
)
async def test_a_broker_that_gives_records_no_time_of_this_century_tells_none(at: int | None, told: int | None) -> None:
    (place,) = await producer_on(KeepingClient(at=at)).append("changelog", 3, [ChangelogRow(b"k", b"")], 0)

    assert place.at == told


async def test_a_record_that_no_broker_takes_is_named_with_its_size_and_the_limit() -> None:
    output = Output("weights", b"econ", b"x" * 1_100_000, 0, 0)

    with pytest.raises(RecordTooLargeError, match=r"key b'econ' for acme-weights has 1100\d+ bytes, .* 1048576"):
        await producer_on(KeepingClient()).send([output])


async def test_a_record_that_this_broker_does_not_take_is_named_too() -> None:
    client = KeepingClient(error=MessageSizeTooLargeError())
    outputs = [Output("weights", b"a", b"x", 0, 0), Output("weights", b"big", b"x" * 500, 0, 0)]

    with pytest.raises(RecordTooLargeError, match=r"key b'big' for acme-weights-0 .* max\.message\.bytes"):
        await producer_on(client).send(outputs)


async def test_a_record_that_is_refused_for_its_time_names_the_clock() -> None:
    client = KeepingClient(error=InvalidTimestampError())

    with pytest.raises(TopicsError, match=r"acme-weights of the time 2026-03-01T12:00:00Z: the clock of this machine"):
        await producer_on(client).send([Output("weights", b"a", b"x", 1_772_366_400_000, 0)])


async def test_batches_that_are_sent_once_more_are_counted() -> None:
    class Accumulator:
        def __init__(self) -> None:
            self.again: list[object] = []

        def reenqueue(self, batch: object) -> None:
            self.again.append(batch)

    writer, accumulator = KafkaWriter({}, None), Accumulator()
    writer._count_retries(accumulator)
    for batch in ("a", "b"):
        accumulator.reenqueue(batch)

    assert accumulator.again == ["a", "b"]
    assert writer.retries == 2
