"""Follows the topic ``weights`` in a thread, and hands out the newest weights of each feed."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka
from kafka.net.compat import KafkaNetClient

from stream_peer_client.connection import ENVIRONMENT_PREFIX, Connection, Security
from stream_peer_client.errors import (
    BrokersUnavailableError,
    NotAuthorisedError,
    NotReadError,
    StreamPeerClientError,
    TopicMissingError,
    UnknownFeedError,
)
from stream_peer_client.newest import Newest
from stream_peer_client.weights import Weights

log = logging.getLogger(__name__)
_kafka_log = logging.getLogger("kafka")

TOPIC = "weights"

_POLL_MILLISECONDS = 250
_LOOK_SECONDS = 5.0  # the brokers are asked so often where the topic ends
_BOOTSTRAP_MILLISECONDS, _REQUEST_MILLISECONDS = 5_000, 8_000
_JOIN_SECONDS = 2.0
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 15.0
_TOMBSTONE_SECONDS = 12 * 3600.0  # Kafka deletes tombstones after a day: who was away for longer begins anew


class Change(NamedTuple):
    """New weights of a feed; None: the feed was deleted."""

    feed: str
    weights: Weights | None


class WeightsReader:
    """Follows the weights of feeds. A context manager, also an asynchronous one, that waits until all is read.

    >>> with WeightsReader("kafka-1:9092,kafka-2:9092", feeds=["econ"]) as reader:  # doctest: +SKIP
    ...     reader.weights("econ").mix({"e17": 0.62, "e4": 0.35})

    It reads without a consumer group; the right to read the topic is enough. When brokers are away it keeps what it
    has, and goes on when they are back.

    Parameters
    ----------
    bootstrap : str
        ``host:port`` of brokers, separated by commas.
    feeds : collection of str, optional
        Which feeds to keep; default: all.
    prefix : str
        That of the service's topics.
    security : Security, optional
        TLS and login, as in the service's settings.
    broker : str
        ``embedded`` for the demo's own broker.
    stale_after : float
        Weights are stale if for so many seconds no broker confirmed that they are the newest.
    patience : float
        Seconds that the context manager and `wait` wait.

    Raises
    ------
    ConnectionSettingsError
        If a setting cannot be used.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        feeds: Collection[str] | None = None,
        prefix: str = "",
        security: Security | None = None,
        broker: str = "kafka",
        stale_after: float = 60.0,
        patience: float = 30.0,
    ) -> None:
        self.stale_after = stale_after
        self._connection = Connection(
            bootstrap=bootstrap, prefix=prefix, security=security or Security(), broker=broker
        )
        self._feeds = None if feeds is None else frozenset(feeds)
        self._patience = patience
        self._look_every = min(_LOOK_SECONDS, stale_after / 4.0)
        self._newest = Newest(self._feeds)
        self._positions: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._shown: dict[str, Weights] = {}
        self._changed: set[str] = set()
        self._is_caught_up = False
        self._confirmed_at = 0.0
        self._problem: StreamPeerClientError | None = None
        self._news = threading.Condition()
        self._is_read = self._is_over = False
        self._listeners: list[Callable[[Change | None], object]] = []
        self._thread: threading.Thread | None = None

    @classmethod
    def from_environment(cls, bootstrap: str | None = None, **options: Any) -> Self:
        """A reader by the service's variables: ``STREAM_PEER_BOOTSTRAP``, ``_PREFIX``, ``_BROKER``, ``_SECURITY__…``.

        Raises
        ------
        ConnectionSettingsError
            If a setting cannot be used.
        """

        def given(name: str, default: str) -> str:
            return os.environ.get(f"{ENVIRONMENT_PREFIX}{name}") or default

        security, broker = Security.from_environment(), given("BROKER", "kafka")
        chosen = {"prefix": given("PREFIX", ""), "security": security, "broker": broker, **options}
        return cls(bootstrap or given("BOOTSTRAP", "127.0.0.1:9092"), **chosen)

    # --- its life ---

    def start(self) -> None:
        """Begin to read; nothing waits. A reader starts once."""
        if self._thread is None:
            if _kafka_log.level == logging.NOTSET:
                _kafka_log.setLevel(logging.CRITICAL)  # its errors reach us as exceptions
            self._thread = threading.Thread(target=self._run, name="stream-peer-weights", daemon=True)
            self._thread.start()

    def wait(self, patience: float | None = None) -> None:
        """Wait until everything that the topic held is read.

        Raises
        ------
        StreamPeerClientError
            What kept it from that, if it lasts longer than the patience; at once, if the brokers refuse us.
        """
        self.start()
        deadline = time.monotonic() + (self._patience if patience is None else patience)
        with self._news:
            while not self._is_read and time.monotonic() < deadline:
                if self._is_over or isinstance(self._problem, NotAuthorisedError):
                    break
                self._news.wait(max(deadline - time.monotonic(), 0.0))
        self._check_read()

    def close(self) -> None:
        """End the thread. What was handed out stays valid."""
        with self._news:
            self._is_over = True
            self._news.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)  # it may wait for a broker; it ends by itself
        self._tell(None)

    def __enter__(self) -> Self:
        """Start, and wait until all is read."""
        try:
            self.wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        """Start, and wait until all is read; the loop goes on."""
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # --- what it has ---

    @property
    def problem(self) -> StreamPeerClientError | None:
        """What keeps it from following the topic just now; None: nothing does."""
        return self._problem

    def feeds(self) -> list[str]:
        """Feeds of which there are weights, by name."""
        return sorted(self._shown)

    def weights(self, feed: str) -> Weights:
        """The newest weights of a feed. It takes no time.

        Raises
        ------
        UnknownFeedError
            If there are none.
        StreamPeerClientError
            If nothing could be read yet: why.
        """
        found = self._shown.get(feed)
        if found is None:
            self._check_read()
            msg = f"there are no weights of {feed}"
            raise UnknownFeedError(msg)
        if self._absence() > self.stale_after:
            return msgspec.structs.replace(found, stale=True)
        return found

    def _absence(self) -> float:
        """Seconds since a broker confirmed that all is read."""
        return time.monotonic() - self._confirmed_at

    def _check_read(self) -> None:
        if not self._is_read:
            msg = f"the topic {self._topic} is not read yet"
            raise NotReadError(msg) if self._problem is None else type(self._problem)(*self._problem.args)

    def on_change(self, listener: Callable[[Change], object]) -> Callable[[], None]:
        """Have a function called with every change, in the reader's thread: it should be quick.

        Returns
        -------
        callable
            Ends it.
        """

        def changes_only(change: Change | None) -> None:
            if change is not None:
                listener(change)

        return self._listen(changes_only)

    async def changes(self) -> AsyncIterator[Change]:
        """The newest weights of each feed, then every change, until the reader is closed.

        Who is slow misses revisions, never the newest.
        """
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        waiting: dict[str | None, Change | None] = {}

        def add(change: Change | None) -> None:
            waiting[None if change is None else change.feed] = change
            news.set()

        stop = self._listen(lambda change: loop.call_soon_threadsafe(add, change))
        try:
            for feed, weights in self._shown.items():
                waiting.setdefault(feed, Change(feed, weights))
            while not self._is_over:
                while waiting:
                    change = waiting.pop(next(iter(waiting)))
                    if change is None:
                        return
                    yield change
                await news.wait()
                news.clear()
        finally:
            stop()

    def _listen(self, listener: Callable[[Change | None], object]) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    # --- the thread ---

    @property
    def _topic(self) -> str:
        return self._connection.prefix + TOPIC

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        while not self._is_over:
            before = dict(self._positions)
            try:
                self._follow()
            except StreamPeerClientError as error:
                self._tell_problem(error)
            except kafka.KafkaError as error:
                self._tell_problem(
                    BrokersUnavailableError(f"No broker answers at {self._connection.bootstrap}: {error}.")
                )
            except Exception as error:
                log.exception("the topic %s cannot be followed", self._topic)
                self._tell_problem(StreamPeerClientError(f"{self._topic} cannot be followed: {error!r}"))
            pause = _PAUSE_SECONDS if self._positions != before else min(2.0 * pause, _LONGEST_PAUSE_SECONDS)
            with self._news:
                if not self._is_over:
                    self._news.wait(pause)

    def _tell_problem(self, error: StreamPeerClientError) -> None:
        with self._news:
            if str(error) != str(self._problem):
                log.warning("%s", error)
            self._problem = error
            self._news.notify_all()

    def _follow(self) -> None:
        with self._consumer() as consumer:
            places = self._places(consumer)
            consumer.assign(places)
            self._take_up(consumer, places)
            look_at = 0.0
            while not self._is_over:
                for place, records in consumer.poll(timeout_ms=_POLL_MILLISECONDS).items():
                    self._add(place, records)
                if self._is_caught_up:
                    self._show()
                if time.monotonic() >= look_at or not (self._is_caught_up or self._is_behind(consumer)):
                    self._look(consumer, places)
                    look_at = time.monotonic() + self._look_every

    def _is_behind(self, consumer: Any) -> bool:
        """Whether it has not come to where the topic ended when it was last asked."""
        return any(consumer.position(place) < end for place, end in self._ends.items())

    def _take_up(self, consumer: Any, places: Sequence[TopicPartition]) -> None:
        """Go on where it was, or begin anew: the first time, after a long absence, and if the topic was recreated."""
        starts, self._ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        is_late = self._is_read and self._absence() > _TOMBSTONE_SECONDS
        if is_late or any(self._positions.get(place, 0) > end for place, end in self._ends.items()):
            self._newest, self._positions, self._is_caught_up = Newest(self._feeds), {}, False
        for place in places:
            self._positions[place] = max(self._positions.get(place, 0), starts[place])
            consumer.seek(place, self._positions[place])

    def _add(self, place: TopicPartition, records: Sequence[Any]) -> None:
        for record in records:
            try:
                feed = self._newest.add(record.key or b"", record.value)
            except msgspec.DecodeError as error:
                log.warning("%s-%d@%d is no record of weights: %s", *place, record.offset, error)
            else:
                if feed is not None:
                    self._changed.add(feed)
            self._positions[place] = record.offset + 1

    def _look(self, consumer: Any, places: Sequence[TopicPartition]) -> None:
        """Ask the brokers where the topic ends. The answer confirms what was read, or tells that they are away."""
        asked_at = time.monotonic()
        self._ends = consumer.end_offsets(places)
        if any(self._positions[place] > end for place, end in self._ends.items()):
            self._take_up(consumer, places)
        elif not self._is_behind(consumer):
            if not self._is_caught_up:
                self._is_caught_up = True
                self._changed |= self._shown.keys()
            self._show()
            with self._news:
                self._confirmed_at, self._problem, self._is_read = asked_at, None, True
                self._news.notify_all()

    def _show(self) -> None:
        """Hand out what changed from here on."""
        shown, changes = dict(self._shown), []
        while self._changed:
            feed = self._changed.pop()
            if feed not in self._newest:
                if shown.pop(feed, None) is not None:
                    changes.append(Change(feed, None))
                continue
            record, before = self._newest.weights(feed), shown.get(feed)
            if record is not None and (before is None or record != before.record):
                shown[feed] = Weights.of(record)
                changes.append(Change(feed, shown[feed]))
        if changes:
            self._shown = shown
        for change in changes:
            self._tell(change)

    def _tell(self, change: Change | None) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                log.exception("a listener failed")

    def _places(self, consumer: Any) -> list[TopicPartition]:
        if self._topic not in consumer.topics():  # asks for all topics: asking for one by name may make it
            msg = f"There is no topic {self._topic}, or we may not see it: is the prefix that of the service?"
            raise TopicMissingError(msg)
        return [TopicPartition(self._topic, number) for number in sorted(consumer.partitions_for_topic(self._topic))]

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        """A consumer without a group, whose errors are ours."""
        made: list[KafkaNetClient] = []

        def client(**options: Any) -> KafkaNetClient:
            made.append(KafkaNetClient(**options))
            return made[0]

        connection, consumer = self._connection, None
        connection.check()
        try:
            consumer = KafkaConsumer(
                client_id="stream-peer-client",
                kafka_client=client,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                allow_auto_create_topics=False,
                check_crcs=False,  # kafka-python counts them in Python; the broker did when it took the records
                metrics_enabled=False,
                bootstrap_timeout_ms=_BOOTSTRAP_MILLISECONDS,
                request_timeout_ms=_REQUEST_MILLISECONDS,
                **connection.options(),
            )
            yield consumer
        except kafka.AuthorizationError:
            msg = f"No right to read the topic {self._topic}."
            raise NotAuthorisedError(msg) from None
        finally:
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=0)
            for each in made:  # kafka-python leaves its thread behind if no broker answers
                each.close()
