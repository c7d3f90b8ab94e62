"""The questions of one partition: those alive, the stubs, and which of them must be written again.

A state record holds its last two values. Where something is to be gone from them, it is written in two snapshots.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from stream_peer.errors import NewerStateError, UnreadableStateError
from stream_peer.events.feed_log import Source
from stream_peer.events.times import Milliseconds
from stream_peer.log.names import Given
from stream_peer.questions.dating import Period
from stream_peer.questions.state import (
    QuestionState,
    Stub,
    chunk_keys,
    decode_question_entry,
    encode_question,
    question_key,
)
from stream_peer.questions.stubs import SettingsOf, Stubs
from stream_peer.settings.feed.model import FeedSettings

SCHEMA = 2
READABLE = range(1, SCHEMA + 1)
"""Stored forms that this release reads: a question's state is never rebuilt."""
_PREFIX = question_key("")


class QuestionHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the partition knows beside its questions.

    ``document``: the settings in force, if any were applied. ``stubs_since``: the clock when a release first met stubs
    that do not say when they last had news. ``forgotten``: digests of ids that are refused, made with a secret of the
    fingerprint ``secret``. ``scrub``: every question is to be written once more. ``signed``: no header without a valid
    signature was believed on the way to this state; false of all that earlier releases wrote. ``periods``: what
    dates forecasts, by when they arrive. ``names``: by feed, later ids of renamed experts.
    """

    schema: int
    clock: Milliseconds
    seen: list[Source]
    document: dict[str, Any] | None
    incarnation: int
    stubs_since: Milliseconds | None = None
    forgotten: list[bytes] = []
    secret: str = ""
    scrub: bool = False
    signed: bool = False
    periods: list[Period] = []
    names: dict[str, Given] = {}


class _Schema(msgspec.Struct, frozen=True):
    """What every release writes of its head; all else may have changed."""

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

    __slots__ = ("_changed", "_pending", "_purged", "live", "stubs")

    def __init__(self, settings_of: SettingsOf) -> None:
        self.live: dict[str, QuestionState] = {}
        self.stubs = Stubs(settings_of)
        self._changed: dict[str, QuestionState] = {}
        self._purged: dict[str, QuestionState] = {}
        self._pending: dict[bytes, bytes | None] = {}

    def touch(self, question: QuestionState) -> None:
        """Note that a question changed; a new one is alive from here on."""
        if not question.dirty:
            question.dirty = True
            self._changed[question.id] = question
            self.live[question.id] = question

    def purge(self, question: QuestionState) -> None:
        """Note that a question changed, and that nothing of what it was may stay in its records."""
        self.rewrite(question)
        self._purged[question.id] = question

    def rewrite(self, question: QuestionState) -> None:
        """Write a question wholly once more."""
        question.whole = True
        self.touch(question)

    @property
    def purges(self) -> bool:
        """Whether records that the last snapshot wrote still hold what must go."""
        return any(question.whole for question in self._changed.values())

    def shrink(self, question: QuestionState, stub: Stub | None) -> None:
        """Let a question's history go; None: nothing of it needs to stay."""
        self.live.pop(question.id, None)
        question.dirty = False
        self._changed.pop(question.id, None)
        self._pending.update((key, None) for key in chunk_keys(question))
        if stub is None:
            self._pending[question_key(question.id)] = None
        else:
            self.put_stub(question.id, stub)

    def stub(self, question_id: str, now: Milliseconds) -> Stub | None:
        """The stub of a question whose history has gone, if it has not ended."""
        stub = self.stubs.get(question_id)
        if stub is not None and self.stubs.ends(stub) <= now:
            self.drop_stubs((question_id,))
            return None
        return stub

    def put_stub(self, question_id: str, stub: Stub) -> None:
        """Keep a stub, or a changed one."""
        self._pending[question_key(question_id)] = self.stubs.put(question_id, stub)

    def drop_stubs(self, questions: Iterable[str]) -> None:
        """Keep nothing of some questions that are stubs."""
        for question_id in questions:
            self.stubs.discard(question_id)
            self._pending[question_key(question_id)] = None

    def expire(self, now: Milliseconds) -> None:
        """Let go of stubs that have ended."""
        self._pending.update((question_key(question_id), None) for question_id in self.stubs.expire(now))

    def follow(self, settings_of: SettingsOf, now: Milliseconds) -> None:
        """Stubs stay as long as other settings say from here on."""
        self._pending.update((question_key(gone), None) for gone in self.stubs.begin(settings_of, now))

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
        """Let go of all questions; the next changes are that what was stored is gone."""
        stored = [question_key(question_id) for question_id in (*self.live, *self.stubs)]
        stored += [key for question in self.live.values() for key in chunk_keys(question)]
        self._pending = {**dict.fromkeys(self._pending), **dict.fromkeys(stored)}
        self.live.clear()
        self.stubs = Stubs(settings_of)
        self._changed.clear()
        self._purged.clear()

    def load(self, entries: Mapping[bytes, bytes], settings: FeedSettings, is_foreign: Callable[[str], bool]) -> None:
        """Take up stored entries. The questions alive have ``settings`` until their feed's are set, stubs none."""
        for key, value in entries.items():
            if not key.startswith(_PREFIX):
                continue
            question_id = key[len(_PREFIX) :].decode()
            found = decode_question_entry(question_id, value, entries, settings)
            if isinstance(found, Stub):
                self.stubs.load(question_id, value)
            else:
                found.foreign = is_foreign(question_id)
                self.live[question_id] = found
