"""The stored questions of a partition: live ones, and stubs of those whose history was dropped.

There may be millions of stubs, so each is kept as the bytes that it is stored as. A stub ends at an exact moment: from
then on `Stubs.get` returns None, and its memory is freed within the hour after.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

import msgspec

from stream_peer.errors import NewerStateError, UnreadableStateError
from stream_peer.events.feed_log import Source
from stream_peer.events.groups import group_id_of
from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.log.ids import Given
from stream_peer.questions.dating import Period
from stream_peer.questions.state import (
    QuestionState,
    Stub,
    chunk_keys,
    decode_question_entry,
    decode_stub,
    encode_question,
    encode_stub,
    question_key,
)
from stream_peer.settings.feed.model import FeedSettings

_HOUR = 3_600_000
_FEW = 1_000  # replaced notes that are not worth a search

SettingsOf = Callable[[str], FeedSettings]


class Stubs:
    """Stubs by question.

    A stub without an outcome stays ``ledger_for`` after its last news, one with an outcome ``retract_for``: as long
    as the ledger may hold the question. Its last news: when the history went, or an outcome was heard.

    Attributes
    ----------
    since : int
        When the time of stubs begins that were stored without the moment of their last news.
    """

    __slots__ = ("_by_hour", "_hours", "_notes", "_settings_of", "_stored", "since")

    def __init__(self, settings_of: SettingsOf) -> None:
        self.since: Milliseconds = 0
        self._settings_of = settings_of
        self._stored: dict[str, bytes] = {}
        self._by_hour: dict[int, list[str]] = {}
        self._hours: list[int] = []
        self._notes = 0

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[str]:
        """Questions that have one, ended or not."""
        return iter(self._stored)

    def __contains__(self, question_id: str) -> bool:
        """Whether there is one, ended or not."""
        return question_id in self._stored

    @property
    def next_end(self) -> Milliseconds:
        """From when on memory can be freed."""
        return (self._hours[0] + 1) * _HOUR if self._hours else NEVER

    def get(self, question_id: str) -> Stub | None:
        """The stub of a question, ended or not."""
        stored = self._stored.get(question_id)
        return None if stored is None else decode_stub(question_id, stored)

    def ends(self, stub: Stub) -> Milliseconds:
        """The moment from which a stub is gone."""
        settings = self._settings_of(stub.feed)
        has_outcome = stub.told is not None and stub.told.verdict != "open"
        return (stub.news or self.since) + (settings.retract_for if has_outcome else settings.ledger_for)

    def put(self, question_id: str, stub: Stub) -> bytes:
        """Keep a new or changed stub; return its bytes."""
        encoded = self._stored[question_id] = encode_stub(stub)
        self._note(question_id, stub)
        if self._notes > 2 * len(self._stored) + _FEW:
            self.begin(self._settings_of, 0)
        return encoded

    def load(self, question_id: str, encoded: bytes) -> None:
        """Load a stored stub. ``begin`` must follow."""
        self._stored[question_id] = encoded

    def discard(self, question_id: str) -> None:
        """Drop a stub."""
        del self._stored[question_id]

    def expire(self, now: Milliseconds) -> Iterator[str]:
        """Drop stubs of past hours that have ended; yield their question ids."""
        while self.next_end <= now:
            noted = self._by_hour.pop(heappop(self._hours))
            self._notes -= len(noted)
            for question_id in noted:
                stub = self.get(question_id)
                if stub is None:
                    continue
                if self.ends(stub) <= now:
                    self.discard(question_id)
                    yield question_id
                else:
                    self._note(question_id, stub)

    def begin(self, settings_of: SettingsOf, now: Milliseconds) -> list[str]:
        """Apply other settings. Yield questions whose stub had ended by ``now`` under the former ones."""
        gone = [question_id for question_id in self._stored if now and self._has_ended(question_id, now)]
        for question_id in gone:
            self.discard(question_id)
        self._settings_of = settings_of
        self._by_hour.clear()
        self._hours.clear()
        self._notes = 0
        for question_id, stored in self._stored.items():
            self._note(question_id, decode_stub(question_id, stored))
        return gone

    def of_feed(self, feed: str, until: Milliseconds) -> list[str]:
        """Questions of a feed whose last news are not after ``until``."""
        name = feed.encode()
        likely = [question_id for question_id, stored in self._stored.items() if name in stored]
        stubs = ((question_id, self.get(question_id)) for question_id in likely)
        return [question_id for question_id, stub in stubs if stub and stub.feed == feed and stub.news <= until]

    def _has_ended(self, question_id: str, now: Milliseconds) -> bool:
        stub = self.get(question_id)
        return stub is not None and self.ends(stub) <= now

    def _note(self, question_id: str, stub: Stub) -> None:
        hour = self.ends(stub) // _HOUR
        noted = self._by_hour.get(hour)
        if noted is None:
            self._by_hour[hour] = [question_id]
            heappush(self._hours, hour)
        else:
            noted.append(question_id)
        self._notes += 1


SCHEMA = 2
READABLE = range(1, SCHEMA + 1)
"""Stored forms that this release reads: a question's state is never rebuilt."""
_PREFIX = question_key("")


class QuestionHead(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a partition beside its questions.

    ``document``: the settings in force, if any were applied. ``stubs_since``: the clock when a release first met stubs
    that do not say when they last had news. ``forgotten``: digests of ids that are refused, made with a secret of the
    fingerprint ``secret``. ``scrub``: every question is to be written once more. ``signed``: no header without a valid
    signature was believed on the way to this state; false of all that earlier releases wrote. ``periods``: what
    dates forecasts, by when they arrive. ``names``: by feed, later ids of renamed experts. ``deleted``: by feed, when
    it was deleted last.
    """

    schema: int
    clock: Milliseconds
    seen: list[Source]
    document: dict[str, Any] | None
    generation: int = msgspec.field(name="incarnation")
    stubs_since: Milliseconds | None = None
    forgotten: list[bytes] = []
    secret: str = ""
    scrub: bool = False
    signed: bool = False
    periods: list[Period] = []
    names: dict[str, Given] = {}
    deleted: dict[str, Milliseconds] = {}


class _Schema(msgspec.Struct, frozen=True):
    """The field that the head of every release has."""

    schema: int


encode_head = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(QuestionHead).decode
_decode_schema = msgspec.msgpack.Decoder(_Schema).decode


def decode_question_head(value: bytes) -> QuestionHead:
    """The stored head.

    Raises
    ------
    UnreadableStateError
        If this release cannot read it; as NewerStateError, if a later release wrote it.
    """
    try:
        schema = _decode_schema(value).schema
        if schema > SCHEMA:
            raise NewerStateError(what="the changelog of the question stage", schema=schema, readable=SCHEMA)
        return _decode_head(value)
    except msgspec.MsgspecError as error:
        msg = f"the stored head of a question partition cannot be read: {error}"
        raise UnreadableStateError(msg) from error


class QuestionStore:
    """Questions by id, alive or stubs. ``settings_of``: the settings of a feed, which say how long stubs stay."""

    __slots__ = ("_changed", "_parts", "_pending", "_purged", "live", "stubs")

    def __init__(self, settings_of: SettingsOf) -> None:
        self.live: dict[str, QuestionState] = {}
        self.stubs = Stubs(settings_of)
        self._changed: dict[str, QuestionState] = {}
        self._purged: dict[str, QuestionState] = {}
        self._pending: dict[bytes, bytes | None] = {}
        self._parts: dict[str, set[str]] = {}

    def parts_of(self, group: str) -> list[str]:
        """The questions of a group, alive or stubs, by their ids."""
        return sorted(self._parts.get(group, ()))

    def touch(self, question: QuestionState) -> None:
        """Note that a question changed; a new one is alive from here on."""
        if not question.dirty:
            question.dirty = True
            self._changed[question.id] = question
            self.live[question.id] = question
            self._note_part(question.id)

    def _note_part(self, question_id: str) -> None:
        group = group_id_of(question_id)
        if group is not None:
            self._parts.setdefault(group, set()).add(question_id)

    def _drop(self, question_id: str) -> None:
        """There is no such question any more."""
        self._pending[question_key(question_id)] = None
        group = group_id_of(question_id)
        if group is not None:
            self._parts[group].discard(question_id)
            if not self._parts[group]:
                del self._parts[group]

    def purge(self, question: QuestionState) -> None:
        """Note that a question changed, and that its records must not keep the former value."""
        self.rewrite(question)
        self._purged[question.id] = question

    def rewrite(self, question: QuestionState) -> None:
        """Write a question completely with the next snapshot."""
        question.whole = True
        self.touch(question)

    @property
    def purges(self) -> bool:
        """Whether records of the last snapshot still hold a value that must be removed."""
        return any(question.whole for question in self._changed.values())

    def shrink(self, question: QuestionState, stub: Stub | None) -> None:
        """Replace a question's history by a stub; None: drop the question."""
        self.live.pop(question.id, None)
        question.dirty = False
        self._changed.pop(question.id, None)
        self._pending.update((key, None) for key in chunk_keys(question))
        if stub is None:
            self._drop(question.id)
        else:
            self.put_stub(question.id, stub)

    def stub(self, question_id: str, now: Milliseconds) -> Stub | None:
        """The stub of a question, if there is one that has not ended."""
        stub = self.stubs.get(question_id)
        if stub is not None and self.stubs.ends(stub) <= now:
            self.drop_stubs((question_id,))
            return None
        return stub

    def put_stub(self, question_id: str, stub: Stub) -> None:
        """Keep a stub, or a changed one."""
        self._pending[question_key(question_id)] = self.stubs.put(question_id, stub)
        self._note_part(question_id)

    def drop_stubs(self, questions: Iterable[str]) -> None:
        """Drop some stubs."""
        for question_id in questions:
            self.stubs.discard(question_id)
            self._drop(question_id)

    def expire(self, now: Milliseconds) -> None:
        """Drop stubs that have ended."""
        for question_id in self.stubs.expire(now):
            self._drop(question_id)

    def follow(self, settings_of: SettingsOf, now: Milliseconds) -> None:
        """Apply other settings to the lifetime of stubs."""
        for gone in self.stubs.begin(settings_of, now):
            self._drop(gone)

    def changes(self) -> dict[bytes, bytes | None]:
        """Entries that changed since the last call."""
        entries, self._pending = self._pending, {}
        changed, self._changed = self._changed, {}
        for question in changed.values():
            question.dirty = False
            entries.update(encode_question(question))
        purged, self._purged = self._purged, {}
        for question_id, question in purged.items():
            if self.live.get(question_id) is question:
                self.rewrite(question)
        return entries

    def clear(self, settings_of: SettingsOf) -> None:
        """Drop all questions; the next changes delete all that was stored."""
        stored = [question_key(question_id) for question_id in (*self.live, *self.stubs)]
        stored += [key for question in self.live.values() for key in chunk_keys(question)]
        self._pending = {**dict.fromkeys(self._pending), **dict.fromkeys(stored)}
        self.live.clear()
        self.stubs = Stubs(settings_of)
        self._parts.clear()
        self._changed.clear()
        self._purged.clear()

    def load(self, entries: Mapping[bytes, bytes], settings: FeedSettings, is_foreign: Callable[[str], bool]) -> None:
        """Load stored entries. Live questions have ``settings`` until those of their feed are set."""
        for key, value in entries.items():
            if not key.startswith(_PREFIX):
                continue
            question_id = key[len(_PREFIX) :].decode()
            self._note_part(question_id)
            found = decode_question_entry(question_id, value, entries, settings)
            if isinstance(found, Stub):
                self.stubs.load(question_id, value)
            else:
                found.foreign = is_foreign(question_id)
                self.live[question_id] = found
