"""What tests do to a broker as a platform or a subscriber would: small helpers over kafka-python."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.topic_plan import Ids
from stream_peer.kafka.worker.recreated import topic_generation
from stream_peer.log.changelog import ChangelogReader
from stream_peer.settings.process import Settings
from tests.integration.support.brokers import RunningBroker
from tests.integration.support.waiting import wait_until

__all__ = ["KafkaClient", "Message", "wait_until"]


class Message(NamedTuple):
    """A record to produce, or one that was read (then ``offset`` says where it stood)."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    offset: int = -1


class Transaction:
    """A transaction of a producer; open from the start until it is committed or aborted."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._is_open = True
        producer.begin_transaction()

    def send(self, topic: str, messages: Iterable[Message]) -> None:
        """Write records; returns when the broker has them."""
        sent = [self._producer.send(topic, m.value, m.key, list(m.headers), m.partition) for m in messages]
        self._producer.flush(30)
        for future in sent:
            future.get(0)

    def commit(self) -> None:
        """End it: its records are read from now on."""
        self._is_open = False
        self._producer.commit_transaction()

    def abort(self) -> None:
        """End it, unless it has ended: its records are never read."""
        if self._is_open:
            self._is_open = False
            self._producer.abort_transaction()


class KafkaClient:
    """Topics, records and groups of one broker. Cheap to make; holds no connection between calls.

    The embedded broker refuses kafka-python's producer and admin client: there, confluent-kafka writes, and topics
    come into being when they are named.
    """

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def create_topics(self, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create topics with so many partitions each (the embedded broker makes four of each, whatever is asked)."""
        if not self.broker.rung.is_real:
            for topic in topics:
                self._confluent_producer().list_topics(topic, timeout=10)
            return
        asked = {
            name: {"num_partitions": partitions, "replication_factor": 1, "configs": dict(config or {})}
            for name, partitions in topics.items()
        }
        with self.admin() as admin:
            admin.create_topics(asked, wait_for_metadata=True)

    def delete_topics(self, prefix: str) -> None:
        """Delete all topics whose names begin with ``prefix``; nothing on the embedded broker, which cannot."""
        if not prefix or not self.broker.rung.is_real:
            return
        with self.admin() as admin:
            doomed = [name for name in admin.list_topics() if name.startswith(prefix)]
            if doomed:
                admin.delete_topics(doomed)

    def transact(self, topic: str, key: bytes, partitions: int) -> None:
        """Write a tombstone to each partition in a transaction, which leaves its marker at the end."""
        with self.transaction(f"of {topic}") as transaction:
            transaction.send(topic, [Message(key, None, partition) for partition in range(partitions)])
            transaction.commit()

    def abort(self, topic: str, messages: Iterable[Message]) -> None:
        """Write records in a transaction that is aborted."""
        with self.transaction(f"aborts on {topic}") as transaction:
            transaction.send(topic, messages)

    @contextlib.contextmanager
    def transaction(self, name: str) -> Iterator["Transaction"]:
        """An open transaction, aborted at the end unless it was committed. ``name``: of its producer."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=name, linger_ms=5)
        try:
            producer.init_transactions()
            transaction = Transaction(producer)
            yield transaction
            transaction.abort()
        finally:
            producer.close(timeout=10)

    def delete(self, *names: str) -> None:
        """Delete topics, and return when they are gone."""
        with self.admin() as admin:
            admin.delete_topics(list(names))
        wait_until(lambda: not self.topics() & set(names), 30.0, f"{names} were never deleted")

    def topics(self) -> set[str]:
        """Names of all topics."""
        with self.consumer() as consumer:
            return set(consumer.topics())

    def produce(self, topic: str, messages: Iterable[Message | tuple[bytes | None, bytes | None]]) -> list[int]:
        """Write records in order, each acknowledged; return their offsets."""
        records = [Message(*message) for message in messages]
        if not self.broker.rung.is_real:
            return self._produce_confluent(topic, records)
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", linger_ms=5)
        try:
            sent = [producer.send(topic, m.value, m.key, list(m.headers), m.partition, m.timestamp) for m in records]
            return [future.get(30).offset for future in sent]
        finally:
            producer.close(timeout=10)

    def produce_many(self, topic: str, messages: Iterable[Message]) -> None:
        """Write a great many records, in order of each partition, and wait until all are acknowledged."""
        producer = self._confluent_producer()
        for m in messages:
            partition = -1 if m.partition is None else m.partition
            producer.produce(topic, m.value, m.key, partition, headers=list(m.headers))
            producer.poll(0)
        assert producer.flush(60) == 0, f"{topic}: records were never acknowledged"

    def read_all(self, topic: str, deadline: float = 30.0) -> list[Message]:
        """Everything that the topic holds now, partition by partition, each in order.

        Reads up to the end offsets of the moment of the call. Offsets without a record (transaction markers,
        compaction) are no obstacle: what counts is the position.
        """
        return self.read_together([topic], deadline)[topic]

    def read_together(self, topics: Sequence[str], deadline: float = 30.0) -> dict[str, list[Message]]:
        """Everything that several topics hold now, as ``read_all`` but at the price of one."""
        with self.consumer() as consumer:
            places = [TopicPartition(t, p) for t in topics for p in sorted(consumer.partitions_for_topic(t) or ())]
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            consumer.seek_to_beginning(*places)
            read: list[Any] = []

            def at_the_end() -> bool:
                for records in consumer.poll(timeout_ms=200).values():
                    read.extend(records)
                return all(consumer.position(place) >= ends[place] for place in places)

            wait_until(at_the_end, deadline, lambda: f"{topics} never ended: {len(read)} records, ends {ends}", every=0)
        inside = [r for r in read if r.offset < ends[TopicPartition(r.topic, r.partition)]]
        found: dict[str, list[Message]] = {topic: [] for topic in topics}
        for r in sorted(inside, key=lambda record: (record.partition, record.offset)):
            headers = tuple((k, v) for k, v in r.headers)
            found[r.topic].append(Message(r.key, r.value, r.partition, r.timestamp, headers, r.offset))
        return found

    def states(self, changelog: str) -> dict[int, ChangelogReader]:
        """A changelog, folded as who starts next would fold it, by partition."""
        folds: dict[int, ChangelogReader] = defaultdict(ChangelogReader)
        for message in self.read_all(changelog):
            folds[message.partition or 0].add(message.offset, message.key or b"", message.value)
        return folds

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Offset after the last record, by partition."""
        with self.consumer() as consumer:
            places = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
            return {place.partition: offset for place, offset in consumer.end_offsets(places).items()}

    def generation(self, topic: str) -> int:
        """The number that tells the topic from one that was deleted under its name."""
        return topic_generation(self.ids(topic).topics.get(topic, ""))

    def ids(self, topic: str) -> Ids:
        """What the broker says of itself and of a topic."""
        broker: Literal["kafka", "embedded"] = "kafka" if self.broker.rung.is_real else "embedded"
        return KafkaAdmin(Settings(bootstrap=self.bootstrap, broker=broker)).ids([topic])

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """A group's committed offsets by partition; partitions without one are left out."""
        with self.consumer(group_id=group) as consumer:
            places = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
            found = {place.partition: consumer.committed(place) for place in places}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """An admin client of a real Kafka."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            yield admin
        finally:
            admin.close()

    @contextlib.contextmanager
    def consumer(self, **options: Any) -> Iterator[Any]:
        """A consumer that commits nothing by itself."""
        version = {} if self.broker.rung.is_real else {"api_version": (1, 0)}
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, **version, **options)
        try:
            yield consumer
        finally:
            consumer.close()

    def _confluent_producer(self) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "partitioner": "murmur2_random"})

    def _produce_confluent(self, topic: str, messages: list[Message]) -> list[int]:
        offsets: list[int] = []
        producer = self._confluent_producer()
        for message in messages:
            partition = -1 if message.partition is None else message.partition
            producer.produce(
                topic,
                message.value,
                message.key,
                partition,
                on_delivery=lambda _error, delivered: offsets.append(delivered.offset()),
                timestamp=message.timestamp or 0,
                headers=list(message.headers),
            )
            producer.flush(30)
        assert len(offsets) == len(messages), f"{topic}: {len(offsets)} of {len(messages)} records were acknowledged"
        return offsets
