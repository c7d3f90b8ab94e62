"""Outputs and state to Kafka, acknowledged: outputs by the partition of their key, state rows where they belong.

Acknowledgements of state tell the brokers' time, by which this process knows it whatever the machine's clock says.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Self

from stream_peer.events.cloudevents import cloudevent_headers
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import Milliseconds
from stream_peer.events.topics import FORECAST_EVENTS, OF_FEEDS
from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.heartbeats import Heartbeats
from stream_peer.kafka.worker.lease import Lease
from stream_peer.kafka.worker.port import Appended, RecordWriter, TopicPartition, Writing
from stream_peer.log.changelog import ChangelogRow
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output

_SPAN_SECONDS = 60.0
_SPANS = 5


class BrokerClock:
    """The brokers' time, as told with the records that they stored. A jump of the machine's clock does not move it.

    Parameters
    ----------
    now : callable
        Seconds that go on steadily.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._behind: dict[int, float] = {}

    def heard(self, at: Milliseconds) -> None:
        """Take note that it was ``at`` a moment ago. The least delay of some minutes counts."""
        behind, span = self._now() * 1000 - at, int(self._now() // _SPAN_SECONDS)
        least = min(self._behind.get(span, behind), behind)
        self._behind = {known: of for known, of in self._behind.items() if known > span - _SPANS} | {span: least}

    def time(self) -> Milliseconds | None:
        """What time it is; None: no broker told it yet."""
        behind = min(self._behind.values(), default=None)
        return None if behind is None else round(self._now() * 1000 - behind)


class BatchProducer:
    """Chooses topics and partitions for what is written. Every write is under the batch deadline of ``heartbeats``.

    Parameters
    ----------
    writer : RecordWriter
    topic : callable
        Physical name of a logical topic.
    signatures : Signatures or None
        Bound to the present ``forecast-events`` whenever ids are asked for.
    clock : BrokerClock or None
        Told the times of what is stored.
    cloudevents : bool
        Whether outputs get CloudEvents headers.
    """

    def __init__(
        self,
        writer: RecordWriter,
        topic: Callable[[str], str],
        heartbeats: Heartbeats,
        signatures: Signatures | None = None,
        clock: BrokerClock | None = None,
        *,
        cloudevents: bool = False,
    ) -> None:
        self._clock = clock
        self._described = {*OF_FEEDS} if cloudevents else set()
        self._writer = writer
        self._topic = topic
        self._heartbeats = heartbeats
        self._signatures = signatures
        self._partitions: dict[str, int] = {}
        self._lease: Lease | None = None

    def under(self, lease: Lease) -> Self:
        """The same producer, which writes under this lease."""
        made = copy.copy(self)
        made._lease = lease  # noqa: SLF001 - of its own kind
        return made

    async def hold(self) -> None:
        """Wait until the lease holds, as a write would."""
        if self._lease is not None:
            with self._heartbeats.writing():
                await self._lease.hold()

    @property
    def retries(self) -> int:
        """How often a batch was sent once more, because a broker did not take it."""
        return self._writer.retries

    async def answers(self) -> bool:
        """Whether a broker answers a question about its topics."""
        ids = await self._writer.asked([self._topic(FORECAST_EVENTS)])
        if ids is None:
            return False
        self._bind(ids)  # a feed worker reads no forecast-events: nothing else tells it of a new one
        return True

    async def topic_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        """The broker's ids of topics by name, as far as there are any."""
        ids = await self._writer.ids({*names, self._topic(FORECAST_EVENTS)})
        self._bind(ids)
        return ids.topics

    def _bind(self, ids: Ids) -> None:
        signed = self._topic(FORECAST_EVENTS)
        if self._signatures is not None and signed in ids.topics:
            self._signatures.bind(ids.cluster, ids.topics[signed])

    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs, in order per partition, and wait until all are acknowledged."""
        if outputs:
            with self._heartbeats.writing():
                await self._writer.produce(await self._grouped(outputs), self._lease)

    async def append(
        self, topic: str, partition: int, rows: Iterable[ChangelogRow], timestamp: Milliseconds
    ) -> list[Appended]:
        """Write rows to one partition of a topic by its physical name, and say where they were put."""
        with self._heartbeats.writing():
            writings: list[Writing] = [(timestamp, *row) for row in rows]
            (places,) = await self._writer.produce({TopicPartition(topic, partition): writings}, self._lease)
        for place in places:
            if self._clock is not None and place.at is not None:
                self._clock.heard(place.at)
        return places

    async def _grouped(self, outputs: Sequence[Output]) -> dict[TopicPartition, list[Writing]]:
        names: dict[str, str] = {}
        for logical in dict.fromkeys(output.topic for output in outputs):
            names[logical] = name = self._topic(logical)
            if name not in self._partitions:
                self._partitions[name] = await self._writer.partitions(name)
        groups: dict[TopicPartition, list[Writing]] = {}
        for logical, key, value, timestamp, partition, headers in outputs:
            name = names[logical]
            chosen = _partition(key, self._partitions[name]) if partition is None else partition
            if logical in self._described and key is not None and value is not None:
                headers = (*headers, *cloudevent_headers(name, logical, key, value, timestamp))  # noqa: PLW2901
            groups.setdefault(TopicPartition(name, chosen), []).append((timestamp, key, value, headers))
        return groups


@lru_cache(maxsize=65_536)
def _partition(key: bytes | None, partitions: int) -> int:
    return partition_of(key or b"", partitions)
