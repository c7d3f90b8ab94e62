"""The feed-log and what was published from it, for ``replay --from-log``: fold the log again and compare."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from typing import Any, NamedTuple

from stream_peer.events import topics
from stream_peer.events.outputs import ShadowScores
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.fold import keys_of
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, read_to_end
from stream_peer.log.driver import Steps, answer, fold_and_publish
from stream_peer.log.stage import Effects, Output
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.settings.process import Settings
from stream_peer.tools.replay.history import head_of
from stream_peer.tools.replay.shadows import Prequential, shadow_scores

_COMPARED = topics.OF_FEEDS
_DIFFERENCES_KEPT = 20

Place = tuple[str, str, int]
"""A published record: logical topic, key, revision."""


class Comparison(NamedTuple):
    """What became of every published revision of a feed.

    ``different`` and ``never`` name the first few: published with other bytes, published but never made by the log.
    ``shadows``: how those did that were folded beside it, by feed.
    """

    records: int
    equal: int
    different: list[Place]
    never: list[Place]
    log_start: int
    shadows: Mapping[str, Sequence[ShadowScores]] = {}

    @property
    def is_equal(self) -> bool:
        """Whether every published revision is what the log gives, byte for byte."""
        return not self.different and not self.never


def replay_from_log(
    settings: Settings,
    feed: str,
    *,
    secret: bytes = b"",
    write: Callable[[Output], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    shadows: Mapping[str, FeedSettingsBook] | None = None,
    method_of: MethodOf = served_method,
) -> Comparison:
    """Fold a feed's partition of the feed-log from its start, and compare what comes out with what was published.

    Parameters
    ----------
    settings : Settings
        Names the brokers and the topics.
    feed : str
        Whose outputs to compare; the other feeds of its partition are folded with it.
    secret : bytes
        The deployment's, as its workers have it.
    write : callable or None
        Gets every output of the feed, once a revision.
    progress : callable or None
        Told how many records of how many were folded.
    shadows : mapping of str to FeedSettingsBook
        Other settings to fold the same log under.
    method_of : FeedSettings -> Method
        How those choose a method.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    """
    with groupless_reader(settings) as consumer:
        tally = _Tally(_published(consumer, settings, feed))
        place = place_of_log(consumer, settings, feed)
        start, end = _ends(consumer, place)
        stage, folded = FeedStage(topic=place.topic, partition=place.partition, secret=secret), 0
        beside = _Beside(feed, place, secret, shadows or {}, method_of)
        for records in read_to_end(consumer, [place]):
            for record in records:
                effects = _folded(stage, record, settings, place)
                for output in _of_feed(effects, feed):
                    tally.add(output)
                    if write is not None:
                        write(output)
                beside.follow(effects, stage, record, settings)
            folded += len(records)
            if progress is not None:
                progress(folded, end - start)
    return tally.result(folded, start)._replace(shadows=beside.compared())


def _folded(
    stage: FeedStage, record: Any, settings: Settings, place: TopicPartition, keys: Set[bytes] | None = None
) -> Effects:
    """What a record gives. Whether a revision of weights was published depends on timing, so all are."""
    effects = Effects()
    pump_from_log(fold_and_publish(stage, record, effects, keys, always=True), settings, place)
    return effects


def _of_feed(effects: Effects, feed: str) -> list[Output]:
    return [o for o in effects.outputs if o.topic in _COMPARED and o.value and head_of(o.value).feed == feed]


class _Beside:
    """Folds the records of a log for each shadow, too, and keeps how the forecasts of all did."""

    def __init__(
        self,
        feed: str,
        place: TopicPartition,
        secret: bytes,
        shadows: Mapping[str, FeedSettingsBook],
        method_of: MethodOf,
    ) -> None:
        self._feed = feed
        self._keys = keys_of(feed)
        self._place = place
        self._live = Prequential()
        self._shadows = {
            name: (
                FeedStage(
                    topic=place.topic, partition=place.partition, secret=secret, settings=book, method_of=method_of
                ),
                Prequential(),
            )
            for name, book in shadows.items()
        }

    def follow(self, effects: Effects, stage: FeedStage, record: Any, settings: Settings) -> None:
        """A record was folded by the live stage, with these effects."""
        if self._shadows:
            self._live.after_record(effects, stage)
        for shadow, prequential in self._shadows.values():
            prequential.after_record(_folded(shadow, record, settings, self._place, self._keys), shadow)

    def compared(self) -> dict[str, list[ShadowScores]]:
        """How the shadows did, in their order."""
        found = [
            shadow_scores(name, prequential.questions, self._live.questions).get(self._feed)
            for name, (_, prequential) in self._shadows.items()
        ]
        return {self._feed: [scores for scores in found if scores is not None]} if self._shadows else {}


def pump_from_log(steps: Steps, settings: Settings, place: TopicPartition) -> None:
    """Answer a driver from the log in Kafka, for each rebuild with a consumer of its own."""
    need = answer(steps)
    while need is not None:
        with groupless_reader(settings) as consumer, closing(read_to_end(consumer, [place])) as batches:
            for records in batches:
                steps.send(records)
                if records[-1].offset >= need.up_to:
                    break
        need = answer(steps, ())


class _Tally:
    """Ticks off what was published."""

    def __init__(self, published: dict[Place, set[bytes]]) -> None:
        self._published = published
        self._made: set[Place] = set()
        self._different: list[Place] = []
        self._equal = 0

    def add(self, output: Output) -> None:
        value = output.value or b""
        place = _place_of(output.topic, output.key, value)
        digests = self._published.get(place)
        if digests is None or place in self._made:
            return
        self._made.add(place)
        if digests == {_digest(value)}:
            self._equal += 1
        else:
            self._different.append(place)

    def result(self, records: int, start: int) -> Comparison:
        never = [place for place in self._published if place not in self._made]
        return Comparison(
            records, self._equal, self._different[:_DIFFERENCES_KEPT], sorted(never)[:_DIFFERENCES_KEPT], start
        )


def _published(consumer: Any, settings: Settings, feed: str) -> dict[Place, set[bytes]]:
    """Digests of every published record of the feed; more than one a place means that revisions contradict."""
    found: dict[Place, set[bytes]] = {}
    for logical in _COMPARED:
        for record in _records(consumer, settings.topic(logical)):
            if record.value and head_of(record.value).feed == feed:
                found.setdefault(_place_of(logical, record.key, record.value), set()).add(_digest(record.value))
    return found


def _records(consumer: Any, topic: str) -> Iterator[Any]:
    for records in read_to_end(consumer, partitions_of(consumer, topic)):
        yield from records


def place_of_log(consumer: Any, settings: Settings, feed: str) -> TopicPartition:
    """The partition of the feed-log that holds a feed."""
    topic = settings.topic(topics.FEED_LOG)
    partitions = partitions_of(consumer, topic)
    return TopicPartition(topic, partition_of(feed, len(partitions)))


def _ends(consumer: Any, place: TopicPartition) -> tuple[int, int]:
    starts, ends = consumer.beginning_offsets([place]), consumer.end_offsets([place])
    return starts[place], ends[place]


def _place_of(logical: str, key: bytes | None, value: bytes) -> Place:
    return logical, (key or b"").decode(errors="replace"), head_of(value).revision


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()
