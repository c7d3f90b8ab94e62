"""What the question stage knows of one question, and how it is stored.

A question is one entry; one whose history is big is stored in chunks by expert, so that only the chunks of experts
who said something are written again; one that closed long ago is a stub of about a hundred bytes.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping

import msgspec

from stream_peer.errors import StateError
from stream_peer.events.feed_log import Verdict
from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.questions.dating import UNKNOWN
from stream_peer.questions.history import History, from_former
from stream_peer.questions.schedule import RoundPlan, Terms, close_of, regular_boundaries
from stream_peer.settings.feed.model import FeedSettings

DEFAULT_FEED = "default"

WHOLE_UP_TO = 300_000
"""Bytes of history up to which a question is one entry."""
_CHUNK_AIM = 150_000

MomentField = tuple[Milliseconds, Milliseconds]
TextField = tuple[Milliseconds, str]
NumberField = tuple[Milliseconds, float]


class Truth(msgspec.Struct, frozen=True, array_like=True):
    """The resolution in force: when it was stated, its verdict, and the close that it may name."""

    at: Milliseconds
    verdict: Verdict
    closed_at: Milliseconds | None = None

    @property
    def cut(self) -> Milliseconds | None:
        """When the resolution ends the question; None if it was retracted."""
        if self.verdict == "open":
            return None
        return self.at if self.closed_at is None else self.closed_at


class Emitted(msgspec.Struct, frozen=True, array_like=True):
    """A round as last emitted: to which feed, and the hash of its content."""

    feed: str
    digest: bytes


class Told(msgspec.Struct, frozen=True, array_like=True):
    """The outcome as last emitted, and to which feed; ``was_known``: another one, 0 or 1, was emitted before."""

    feed: str
    verdict: Verdict
    was_known: bool = False

    @property
    def is_known(self) -> bool:
        """Whether an outcome was ever emitted, even one retracted since."""
        return self.was_known or self.verdict in (0, 1)

    def then(self, feed: str, verdict: Verdict) -> "Told":
        """Another outcome, emitted after ``self``."""
        return Told(feed, verdict, self.is_known)


NOT_TOLD = Told("", "open")


class Stub(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """What is kept of a question after its history was dropped: enough for an outcome years later.

    ``news``: when the history went, or an outcome was last heard; 0: stored by a release that did not note it.
    """

    feed: str
    truth: Truth | None
    told: Told | None
    news: Milliseconds = 0


class _Stored(msgspec.Struct, frozen=True, array_like=True, tag="q"):
    declared: Milliseconds | None
    opens: MomentField | None
    closes: MomentField | None
    weight: NumberField | None
    own_feed: TextField | None
    other_feed: TextField | None
    truth: Truth | None
    terms: Terms | None
    told: Told | None
    touched: Milliseconds
    first: Milliseconds
    emitted: dict[Milliseconds, Emitted]
    chunks: int
    experts: list[str]
    log: bytearray
    moved: bytearray | None  # an earlier release wrote it, and its log has another form
    warned: bool = False
    terms_at: Milliseconds = UNKNOWN
    gone: Milliseconds | None = None
    provisional: Truth | None = None
    told_provisional: Told | None = None
    published_in: tuple[str, int] | None = None


class _Chunk(msgspec.Struct, frozen=True, array_like=True, tag="c"):
    experts: list[str]
    log: bytearray
    moved: bytearray | None  # as above


_encode = msgspec.msgpack.Encoder().encode
_decode_stored = msgspec.msgpack.Decoder(_Stored | Stub).decode
_decode_stub = msgspec.msgpack.Decoder(Stub).decode
_decode_chunk = msgspec.msgpack.Decoder(_Chunk).decode


class QuestionState:
    """One question: schedule, truth, history, and what was emitted of it.

    Schedule fields are pairs (stated when, value): the latest stated wins, of equal ones the later in the log.
    A forecast that counts from before ``replan_before`` may change the boundaries, one up to ``alert`` these or a
    round that is already due. ``changed_experts``: experts with news since the last snapshot, if stored in chunks;
    ``whole``: all chunks are to be written. ``warned``: its times gave rise to a warning, the one that it gets.
    ``provisional``: the provisional resolution that was stated last; ``told_provisional``: as it was last emitted.
    ``terms_at``: when the record arrived with which ``terms`` were fixed.
    ``published_in``: the feed that has its rounds, and how often it moved before that; None: no round was emitted.
    """

    __slots__ = (
        "_truth",
        "alert",
        "changed_experts",
        "chunks",
        "closes",
        "declared",
        "dirty",
        "emitted",
        "feed",
        "foreign",
        "history",
        "id",
        "opens",
        "other_feed",
        "own_feed",
        "provisional",
        "published_in",
        "replan_before",
        "settings",
        "terms",
        "terms_at",
        "told",
        "told_provisional",
        "touched",
        "warned",
        "weight",
        "whole",
    )

    def __init__(self, question_id: str, settings: FeedSettings, *, foreign: bool) -> None:
        self.id = question_id
        self.settings = settings
        self.foreign = foreign
        self.declared: Milliseconds | None = None
        self.opens: MomentField | None = None
        self.closes: MomentField | None = None
        self.weight: NumberField | None = None
        self.own_feed: TextField | None = None
        self.other_feed: TextField | None = None
        self._truth: Truth | None = None
        self.provisional: Truth | None = None
        self.told_provisional: Told | None = None
        self.terms: Terms | None = None
        self.terms_at: Milliseconds = UNKNOWN
        self.told: Told | None = None
        self.published_in: tuple[str, int] | None = None
        self.touched: Milliseconds = 0
        self.history = History()
        self.emitted: dict[Milliseconds, Emitted] = {}
        self.feed = DEFAULT_FEED
        self.alert: Milliseconds = NEVER
        self.replan_before: Milliseconds = NEVER
        self.dirty = False
        self.chunks = 0
        self.changed_experts: set[str] | None = None
        self.whole = False
        self.warned = False

    @property
    def truth(self) -> Truth | None:
        """The resolution in force."""
        return self._truth

    @truth.setter
    def truth(self, truth: Truth | None) -> None:
        self._truth = truth
        self.history.is_resolved = truth is not None and truth.verdict != "open"

    @property
    def provisional_verdict(self) -> Verdict:
        """The verdict of a provisional resolution, unless a later resolution was stated or one is in force."""
        found, truth = self.provisional, self.truth
        if found is None or self.resolved or (truth is not None and truth.at > found.at):
            return "open"
        return found.verdict

    @property
    def resolved(self) -> bool:
        """Whether it has an outcome."""
        return self.history.is_resolved

    def plan(self) -> RoundPlan:
        """The question's moments, from schedule, truth and history."""
        terms = self.terms or self.settings
        opens = self._opens()
        cut = self.truth.cut if self.truth else None
        close = close_of(opens, self.closes[1] if self.closes else None, cut, terms.max_open)
        if opens is None or close is None or close < opens:
            return RoundPlan(opens, close, [])
        boundaries = regular_boundaries(opens, close, terms.round_every)
        quorum = self.history.quorum_moment(opens, close, terms.quorum, terms.forecast_for) if terms.quorum else None
        if quorum is not None and quorum != close and quorum not in boundaries:
            boundaries = sorted([*boundaries, quorum])
        return RoundPlan(opens, close, [*boundaries, close], quorum)

    def watch(self, plan: RoundPlan, passed: Milliseconds) -> None:
        """Set ``replan_before`` and ``alert`` for a plan whose boundaries up to ``passed`` are due.

        Nothing is due of a question without forecasts, so that the first one, whenever it counts, calls for ticks.
        """
        self.replan_before = 0 if self.opens else self.history.first
        if (self.terms or self.settings).quorum:
            reached = NEVER if plan.quorum is None else plan.quorum + 1
            self.replan_before = max(self.replan_before, reached)
        n_passed = bisect_right(plan.boundaries, passed)
        settled = plan.boundaries[n_passed - 1] if n_passed else 0
        is_silent = self.settings.idle_after is not None and not self.history.experts
        self.alert = NEVER if is_silent else max(settled, self.replan_before - 1)

    def stub(self, now: Milliseconds) -> Stub:
        """The stub that replaces the history at ``now``."""
        return Stub(self.feed, self.truth, self.told, now)

    def _opens(self) -> Milliseconds | None:
        if self.opens:
            return self.opens[1]
        return self.declared if self.history.first == NEVER else self.history.first


def question_key(question_id: str) -> bytes:
    """Key of a question's entry."""
    return b"q/" + question_id.encode()


def encode_stub(stub: Stub) -> bytes:
    """The entry of a question that is a stub."""
    return _encode(stub)


def decode_stub(question_id: str, value: bytes) -> Stub:
    """A stub from its entry.

    Raises
    ------
    StateError
        If it is none.
    """
    try:
        return _decode_stub(value)
    except msgspec.MsgspecError as error:
        msg = f"the stored state of question {question_id!r} cannot be read: {error}"
        raise StateError(msg) from error


def encode_question(question: QuestionState) -> Iterator[tuple[bytes, bytes | None]]:
    """Entries to write for a question that changed; None: the entry is gone."""
    history = question.history
    parts = _chunks_for(question)
    changed = {_chunk_of(expert, parts) for expert in question.changed_experts or ()}
    if parts != question.chunks:
        yield from ((key, None) for key in chunk_keys(question))
        question.chunks, question.whole = parts, True
    if question.whole:
        question.whole, changed = False, set(range(parts))
    if not parts:
        yield question_key(question.id), encode_whole(question)
        return
    yield question_key(question.id), _encode_whole(question, parts, [], bytearray())
    members: dict[int, set[int]] = {chunk: set() for chunk in sorted(changed)}
    for expert, who in history.experts.items():
        if (chunk := _chunk_of(expert, parts)) in changed:
            members[chunk].add(who)
    for chunk, chosen in members.items():
        yield _chunk_key(question.id, parts, chunk), _encode(_Chunk(*history.part(chosen), None))
    question.changed_experts = set()


def encode_whole(question: QuestionState) -> bytes:
    """A question in one piece of any size, for ``decode_question_entry`` without chunks."""
    return _encode_whole(question, 0, list(question.history.experts), question.history.log)


def chunk_keys(question: QuestionState) -> list[bytes]:
    """Keys of the chunks under which a question's history is stored now; none if it is one entry."""
    return [_chunk_key(question.id, question.chunks, chunk) for chunk in range(question.chunks)]


def decode_question_entry(
    question_id: str, value: bytes, entries: Mapping[bytes, bytes], settings: FeedSettings
) -> QuestionState | Stub:
    """The question, or the stub, of one entry; ``entries`` holds its chunks if it has any.

    Raises
    ------
    StateError
        If a chunk is missing, or the bytes are not what this release writes.
    """
    try:
        stored = _decode_stored(value)
        if isinstance(stored, Stub):
            return stored
        question = QuestionState(question_id, settings, foreign=False)
        _take_up(question, stored)
        for chunk in range(stored.chunks):
            part = _decode_chunk(entries[_chunk_key(question_id, stored.chunks, chunk)])
            question.history.merge(part.experts, _log_of(part))
    except KeyError as missing:
        msg = f"the stored state of question {question_id!r} lacks its chunk {missing.args[0]!r}"
        raise StateError(msg) from None
    except msgspec.MsgspecError as error:
        msg = f"the stored state of question {question_id!r} cannot be read: {error}"
        raise StateError(msg) from error
    return question


def _take_up(question: QuestionState, stored: _Stored) -> None:
    question.declared, question.opens, question.closes = stored.declared, stored.opens, stored.closes
    question.weight, question.own_feed, question.other_feed = stored.weight, stored.own_feed, stored.other_feed
    question.provisional, question.told_provisional = stored.provisional, stored.told_provisional
    question.terms, question.terms_at, question.told = stored.terms, stored.terms_at, stored.told
    question.touched, question.emitted, question.warned = stored.touched, stored.emitted, stored.warned
    question.published_in = stored.published_in
    history = question.history
    history.restore(stored.experts, _log_of(stored))
    history.first = stored.first
    history.gone = stored.first if stored.gone is None else stored.gone
    if stored.truth is not None:
        question.truth = stored.truth
    if stored.chunks:
        question.chunks, question.changed_experts = stored.chunks, set()
    named = stored.own_feed or stored.other_feed
    if named:
        question.feed = named[1]


def _log_of(stored: _Stored | _Chunk) -> bytearray:
    return stored.log if stored.moved is None else from_former(stored.log, stored.moved)


def _encode_whole(question: QuestionState, chunks: int, experts: list[str], log: bytearray) -> bytes:
    return _encode(
        _Stored(
            question.declared,
            question.opens,
            question.closes,
            question.weight,
            question.own_feed,
            question.other_feed,
            question.truth,
            question.terms,
            question.told,
            question.touched,
            question.history.first,
            question.emitted,
            chunks,
            experts,
            log,
            None,
            question.warned,
            question.terms_at,
            question.history.gone,
            question.provisional,
            question.told_provisional,
            question.published_in,
        )
    )


def _chunks_for(question: QuestionState) -> int:
    """The number of chunks of the history: a power of two, so that it seldom changes; it never shrinks."""
    history = question.history
    size = len(history.log) + history.id_bytes
    if size <= WHOLE_UP_TO:
        return question.chunks
    parts = max(2, question.chunks)
    while size > parts * _CHUNK_AIM:
        parts *= 2
    return parts


def _chunk_of(expert_id: str, parts: int) -> int:
    return zlib.crc32(expert_id.encode()) % parts if parts else 0


def _chunk_key(question_id: str, parts: int, chunk: int) -> bytes:
    return b"c/%d/%d/" % (parts, chunk) + question_id.encode()
