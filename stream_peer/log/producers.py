"""Producers: who may speak for which experts, ask and resolve, proven by a header that each producer signs."""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from typing import Literal

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Forecast, Forecasts, GroupForecast, GroupResolution, Question, Resolution
from stream_peer.events.rejections import Reason
from stream_peer.log.signatures import prefixed
from stream_peer.log.stage import Record

PRODUCER_HEADER = "stream-peer-producer"

SignedEvent = Forecast | GroupForecast | Forecasts | Question | Resolution | GroupResolution


def producer_mac(key: bytes, topic: str, record_key: bytes | None, value: bytes | None) -> str:
    """A producer's signature of a record in hexadecimal digits: HMAC-SHA256 over topic, key and value.

    Before each part stands its length in eight bytes, big-endian, or -1 if there is none: so no two records give the
    same bytes.

    Examples
    --------
    >>> producer_mac(b"a key of 16 bytes", "forecast-events", b"q1", b"{}")[:16]
    '06a5f6cab3707b71'
    """
    return hmac.digest(key, prefixed((topic.encode(), record_key, value)), "sha256").hex()


class Producer(msgspec.Struct, frozen=True, kw_only=True):
    """One producer: its keys, and which events it may send.

    ``experts`` and ``feeds`` are shell patterns, case matters. Each of ``keys`` verifies, so that one can follow
    another.
    """

    name: str
    keys: tuple[bytes, ...]
    experts: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ("*",)
    may_ask: bool = False
    may_resolve: bool = False


class Producers:
    """All producers of a deployment, and the rules by which their events are accepted.

    Parameters
    ----------
    producers : iterable of Producer
        Each name once.
    others : {"refuse", "accept"}
        What happens to unsigned forecasts of experts that no producer's pattern covers.
    """

    def __init__(self, producers: Iterable[Producer], others: Literal["refuse", "accept"] = "refuse") -> None:
        self._producers = {producer.name: producer for producer in producers}
        self._others = others
        self._experts = {name: _any_of(producer.experts) for name, producer in self._producers.items()}
        self._feeds = {name: _any_of(producer.feeds) for name, producer in self._producers.items()}
        self._covered = _any_of(pattern for producer in self._producers.values() for pattern in producer.experts)

    @property
    def hash(self) -> str:
        """Eight hex digits of rules and keys, which may be shown: they differ for different files."""
        plain: list[str] = [self._others]
        for _, producer in sorted(self._producers.items()):
            keys = sorted(hashlib.sha256(key).hexdigest() for key in producer.keys)
            plain.append(json.dumps([*msgspec.structs.astuple(msgspec.structs.replace(producer, keys=())), keys]))
        return hashlib.blake2b(json.dumps(plain).encode(), digest_size=4, person=b"producers").hexdigest()

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, name: object) -> bool:
        return name in self._producers

    def header(self, name: str, topic: str, record_key: bytes, value: bytes) -> tuple[str, bytes] | None:
        """The header by which a producer signs a record, with its first key; None if there is no such producer."""
        producer = self._producers.get(name)
        if producer is None:
            return None
        return PRODUCER_HEADER, f"{name}:{producer_mac(producer.keys[0], topic, record_key, value)}".encode()

    def check(
        self,
        event: SignedEvent,
        record: Record,
        topic: str,
        feeds: Iterable[str],
        *,
        moves: bool = False,
        ids: Callable[[str], Iterable[str]] = lambda expert_id: (expert_id,),
    ) -> None:
        """Check that the producer of a record may send its event.

        Parameters
        ----------
        event : SignedEvent
            The record's event.
        record : Record
            As it was read.
        topic : str
            Physical name of the topic that the record is on.
        feeds : iterable of str
            The feeds that the event touches: the one that its question is in, the one that it names.
        moves : bool
            Whether its question is asked already, and would move to the feed that the event names.
        ids : callable
            All ids of an expert, by one of them: it may have been renamed.

        Raises
        ------
        RejectedEvent
            As ``producer-unknown`` if it is not proven who produced the record, or as ``producer-forbidden`` if that
            producer may not say this.
        """
        self._check(self._proven(record, topic), event, tuple(feeds), ids, moves=moves)

    def check_named(self, name: str, event: SignedEvent) -> None:
        """Check that a producer may send an event that it has not signed yet, and whose question nobody knows here.

        Raises
        ------
        RejectedEvent
            As ``producer-unknown`` if there is no such producer, or as ``producer-forbidden`` if it may not say this.
        """
        producer = self._producers.get(name)
        if producer is None:
            raise _unknown(f"producers_file names no producer {name[:100]!r}")
        self._check(producer, event, () if event.feed is None else (event.feed,), lambda expert_id: (expert_id,))

    def _check(
        self,
        producer: Producer | None,
        event: SignedEvent,
        feeds: tuple[str, ...],
        ids: Callable[[str], Iterable[str]],
        *,
        moves: bool = False,
    ) -> None:
        if moves:
            may_ask = producer is not None and producer.may_ask
            self._check_right(producer, "move questions to another feed", feeds, has_right=may_ask)
        if isinstance(event, Forecast | GroupForecast):
            self._check_experts(producer, (event.expert_id,), feeds, ids)
        elif isinstance(event, Forecasts):
            _check_any(event)
            self._check_experts(producer, event.forecasts, feeds, ids)
        elif isinstance(event, Question):
            self._check_right(producer, "ask questions", feeds, has_right=producer is not None and producer.may_ask)
            _check_repeatable(event)
        else:
            has_right = producer is not None and producer.may_resolve
            self._check_right(producer, "resolve questions", feeds, has_right=has_right)

    def _proven(self, record: Record, topic: str) -> Producer | None:
        """The producer that signed a record; None if it has no signature. A wrong signature is refused."""
        values = [value or b"" for name, value in record.headers if name == PRODUCER_HEADER]
        if not values:
            return None
        if len(values) > 1:
            raise _unknown(f"the header {PRODUCER_HEADER} stands {len(values)} times")
        name, _, mac = values[0].decode("utf-8", "replace").rpartition(":")
        producer = self._producers.get(name)
        if producer is None:
            raise _unknown(f"the header {PRODUCER_HEADER} names {name[:100]!r}, which producers_file does not name")
        given = mac.lower().encode()
        expected = [producer_mac(key, topic, record.key, record.value).encode() for key in producer.keys]
        if not sum(hmac.compare_digest(given, each) for each in expected):  # all are compared, always
            raise _unknown(f"the signature in {PRODUCER_HEADER} is not one of {name!r} over this topic, key and value")
        return producer

    def _check_experts(
        self,
        producer: Producer | None,
        experts: Iterable[str],
        feeds: Iterable[str],
        ids: Callable[[str], Iterable[str]],
    ) -> None:
        foreign = None if producer is None else self._foreign(producer, feeds)
        for expert_id in experts:
            speaks = producer is not None and self._experts[producer.name].match(expert_id) is not None
            if speaks and foreign is None:
                continue
            if self._others == "accept" and not any(map(self._covered.match, ids(expert_id))):
                continue
            if producer is None:
                raise _unknown(f"a forecast of expert {expert_id!r} needs the header {PRODUCER_HEADER}")
            if foreign is not None and speaks:
                raise _foreign_feed(producer, foreign)
            raise _forbidden(f"producer {producer.name!r} may not speak for expert {expert_id!r}")

    def _check_right(self, producer: Producer | None, what: str, feeds: Iterable[str], *, has_right: bool) -> None:
        if producer is None:
            raise _unknown(f"only a producer may {what}: the header {PRODUCER_HEADER} is missing")
        if not has_right:
            raise _forbidden(f"producer {producer.name!r} may not {what}")
        foreign = self._foreign(producer, feeds)
        if foreign is not None:
            raise _foreign_feed(producer, foreign)

    def _foreign(self, producer: Producer, feeds: Iterable[str]) -> str | None:
        """The first of some feeds that a producer has no right in."""
        matches = self._feeds[producer.name].match
        for feed in feeds:  # a generator costs more than the match
            if matches(feed) is None:
                return feed
        return None


def _any_of(patterns: Iterable[str]) -> "re.Pattern[str]":
    """A regular expression that matches what any of some shell patterns matches; nothing if there are none."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def _check_any(event: Forecasts) -> None:
    """No expert speaks in a batch without forecasts, so no right covers it; yet it may name a feed, and has a time."""
    if not event.forecasts:
        raise RejectedEvent(Reason.MISSING_FIELD, field="forecasts", message="forecasts is empty: nobody speaks")


def _check_repeatable(event: Question) -> None:
    """A signed record can be sent again by others: without ``at`` each copy would count as a new statement."""
    if event.at is None:
        msg = "at is missing: a question that is signed says when it was said, since a repetition would else be news"
        raise RejectedEvent(Reason.MISSING_FIELD, field="at", message=msg)


def _unknown(message: str) -> RejectedEvent:
    return RejectedEvent(Reason.PRODUCER_UNKNOWN, message=message)


def _forbidden(message: str) -> RejectedEvent:
    return RejectedEvent(Reason.PRODUCER_FORBIDDEN, message=message)


def _foreign_feed(producer: Producer, feed: str) -> RejectedEvent:
    return _forbidden(f"producer {producer.name!r} has no rights in feed {feed!r}")
