"""The questions of one partition: those alive, the stubs, and which of them must be written again."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stream_peer.engine.question_state import (
    QuestionState,
    Stub,
    chunk_keys,
    decode_entry,
    decode_stub,
    encode_question,
    encode_stub,
    question_key,
)
from stream_peer.errors import StateError
from stream_peer.events.feed_log import Source
from stream_peer.events.feed_settings import FeedSettings
from stream_peer.events.times import Milliseconds

SCHEMA = 1
_PREFIX = question_key("")


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the partition knows beside its questions. ``document``: the settings in force, if any were applied."""

    schema: int
    clock: Milliseconds
    seen: list[Source]
    document: dict[str, Any] | None
    incarnation: int


encode_head = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(Head).decode


def decode_head(value: bytes) -> Head:
    """The stored head.

    Raises
    ------
    StateError
        If this release cannot read it.
    """
    try:
        head = _decode_head(value)
    except msgspec.MsgspecError as error:
        msg = f"the stored head of a question partition cannot be read: {error}"
        raise StateError(msg) from error
    if head.schema != SCHEMA:
        msg = f"the stored state has schema {head.schema}, this release reads {SCHEMA}"
        raise StateError(msg)
    return head


class QuestionStore:
    """Questions by id. Stubs are kept as the bytes they are stored as: there may be millions."""

    __slots__ = ("_changed", "_pending", "_stubs", "live")

    def __init__(self) -> None:
        self.live: dict[str, QuestionState] = {}
        self._stubs: dict[str, bytes] = {}
        self._changed: list[QuestionState] = []
        self._pending: dict[bytes, bytes | None] = {}

    def touch(self, question: QuestionState) -> None:
        """Note that a question changed; a new one is alive from here on."""
        if not question.dirty:
            question.dirty = True
            self._changed.append(question)
            self.live[question.id] = question

    def shrink(self, question: QuestionState, stub: Stub | None) -> None:
        """Let a question's history go; None: nothing of it needs to stay."""
        self.live.pop(question.id, None)
        question.dirty = False
        self._pending.update((key, None) for key in chunk_keys(question))
        if stub is None:
            self._pending[question_key(question.id)] = None
        else:
            self.put_stub(question.id, stub)

    def stub(self, question_id: str) -> Stub | None:
        """The stub of a question whose history has gone."""
        stored = self._stubs.get(question_id)
        return None if stored is None else decode_stub(question_id, stored)

    def is_stub(self, question_id: str) -> bool:
        """Whether nothing but a stub is left of a question."""
        return question_id in self._stubs

    def put_stub(self, question_id: str, stub: Stub) -> None:
        """Keep a stub, or a changed one."""
        encoded = encode_stub(stub)
        self._stubs[question_id] = encoded
        self._pending[question_key(question_id)] = encoded

    def changes(self) -> dict[bytes, bytes | None]:
        """Entries that changed since the last call."""
        entries, self._pending = self._pending, {}
        changed, self._changed = self._changed, []
        for question in changed:
            if question.dirty:
                question.dirty = False
                entries.update(encode_question(question))
        return entries

    def load(self, entries: Mapping[bytes, bytes], settings: FeedSettings, is_foreign: Callable[[str], bool]) -> None:
        """Take up stored entries. The questions alive have ``settings`` until their feed's are set."""
        for key, value in entries.items():
            if not key.startswith(_PREFIX):
                continue
            question_id = key[len(_PREFIX) :].decode()
            found = decode_entry(question_id, value, entries, settings)
            if isinstance(found, Stub):
                self._stubs[question_id] = value
            else:
                found.foreign = is_foreign(question_id)
                self.live[question_id] = found
