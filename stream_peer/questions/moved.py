"""Questions of a feed that moves: events carry them, and partitions of the question stage add them.

The questions for one partition are lines of JSON, compressed, and cut into parts of ``feed-import`` events: a heading,
then a line for each question with its history and with what was emitted. A question that is known here already, since
events of it came first, is merged with what its line says: of each field the later statement counts, as ever.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from stream_peer.errors import StateError
from stream_peer.events.groups import home_of
from stream_peer.events.incoming import FeedImport
from stream_peer.events.times import Milliseconds
from stream_peer.log.ids import Given
from stream_peer.log.transfers import import_refusal, parts_of
from stream_peer.questions.rounds import Reconciler
from stream_peer.questions.state import QuestionState, Stub, decode_question_entry
from stream_peer.questions.store import READABLE, SCHEMA, QuestionStore
from stream_peer.settings.feed.model import FeedSettings

Dated = TypeVar("Dated", bound=tuple[Milliseconds, object])


class Heading(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="kind"):
    """What all partitions need of the feed.

    ``forgotten`` are digests of ids that are refused; ``names`` are the later ids of renamed experts, by their first.
    """

    feed: str
    question_schema: int
    forgotten: list[bytes] = []
    names: Given = {}


class QuestionLine(msgspec.Struct, frozen=True, kw_only=True, tag="question", tag_field="kind"):
    """A question, or its stub, as the question stage stores it, in one piece.

    ``clock``: the time of its partition, up to which what is due of it was said.
    """

    question_id: str
    clock: Milliseconds
    stored: bytes


class _End(msgspec.Struct, frozen=True, tag="end", tag_field="kind"):
    """The last line of the form that earlier releases wrote."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Heading | QuestionLine | _End).decode


def moving_events(
    heading: Heading, lines: Iterable[QuestionLine], import_id: str, partitions: int
) -> Iterator[FeedImport]:
    """Questions as events, by partition.

    Parameters
    ----------
    heading : Heading
    lines : iterable of QuestionLine
    import_id : str
    partitions : int
        Of ``forecast-events``.
    """
    # All partitions need the erased and the renamed experts:
    everywhere = range(partitions) if heading.forgotten or heading.names else ()
    packed = {home: _Packed(heading) for home in everywhere}
    for line in lines:
        home = home_of(line.question_id, partitions)
        if home not in packed:
            packed[home] = _Packed(heading)
        packed[home].add(line)
    for home, found in sorted(packed.items()):
        digest, parts = parts_of(found.data())
        for number, data in enumerate(parts):
            yield FeedImport(
                feed=heading.feed,
                import_id=import_id,
                part=number,
                parts=len(parts),
                digest=digest,
                data=data,
                partition=home,
                partitions=partitions,
            )


class _Packed:
    """Lines for one partition, compressed as they come."""

    def __init__(self, heading: Heading) -> None:
        self._packer = zlib.compressobj()
        self._data = bytearray()
        self.add(heading)

    def add(self, line: Heading | QuestionLine) -> None:
        self._data += self._packer.compress(_encode(line) + b"\n")

    def data(self) -> bytes:
        return bytes(self._data + self._packer.flush())


class MovedQuestions:
    """The questions of one partition.

    Parameters
    ----------
    data : bytes
        A whole transfer.
    feed : str
    settings : FeedSettings
        Of the feed.

    Attributes
    ----------
    clock : int
        The latest time of the partitions that they come from.
    forgotten : list of bytes
        Digests of ids that are refused in the feed.
    names : dict of str to list of str
        Ids that its experts were given later.

    Raises
    ------
    RejectedEvent
        If it cannot be read.
    """

    def __init__(self, data: bytes, feed: str, settings: FeedSettings) -> None:
        try:
            heading, *lines = map(_decode, zlib.decompress(data).splitlines())
        except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise import_refusal(f"the parts together cannot be read: {error}") from None
        if not isinstance(heading, Heading) or heading.feed != feed:
            raise import_refusal("it is of another feed")
        if heading.question_schema not in READABLE:
            message = f"it was exported by another release, whose questions this one does not read (it reads {SCHEMA})"
            raise import_refusal(message)
        self.forgotten, self.names = heading.forgotten, heading.names
        found = [line for line in lines if isinstance(line, QuestionLine)]
        self.clock = max((line.clock for line in found), default=0)
        self._found = dict(_decoded(line, settings) for line in found)

    def take_up(
        self, store: QuestionStore, reconciler: Reconciler, is_foreign: Callable[[str], bool]
    ) -> Iterator[QuestionState]:
        """Add questions to the store, and yield those that are alive. Stubs are only added."""
        for question_id, found in self._found.items():
            known = store.live.get(question_id)
            if question_id in store.stubs:
                continue
            if isinstance(found, Stub):
                if known is None or not known.emitted:
                    found = _stub_with(found, known)  # noqa: PLW2901 - the same, with what is known here
                    if known is not None:
                        reconciler.discard(known, wholly=True)
                    store.put_stub(question_id, found)
                continue
            if known is not None:
                _put_together(found, known)
            found.foreign = is_foreign(question_id)
            store.touch(found)
            yield found


def _decoded(line: QuestionLine, settings: FeedSettings) -> tuple[str, QuestionState | Stub]:
    try:
        return line.question_id, decode_question_entry(line.question_id, line.stored, {}, settings)
    except StateError as error:
        raise import_refusal(str(error)) from None


def _stub_with(stub: Stub, known: QuestionState | None) -> Stub:
    """The stub, with the outcome known here if that is newer. Forecasts known here are dropped as late."""
    truth = None if known is None else known.truth
    if truth is None or (stub.truth is not None and stub.truth.at > truth.at):
        return stub
    return msgspec.structs.replace(stub, truth=truth)


def _put_together(found: QuestionState, known: QuestionState) -> None:
    """Merge what is known here into the question of the file; what is known here is newer."""
    found.opens = _later(found.opens, known.opens)
    found.closes = _later(found.closes, known.closes)
    found.weight = _later(found.weight, known.weight)
    found.own_feed = _later(found.own_feed, known.own_feed)
    found.other_feed = _later(found.other_feed, known.other_feed)
    found.declared = known.declared if found.declared is None else found.declared
    found.told = known.told or found.told
    found.published_in = known.published_in or found.published_in
    if found.terms is None:
        found.terms, found.terms_at = known.terms, known.terms_at
    found.touched = max(found.touched, known.touched)
    found.emitted.update(known.emitted)
    found.history.merge(list(known.history.experts), known.history.log)
    found.history.first = min(found.history.first, known.history.first)
    found.history.gone = min(found.history.gone, known.history.gone)
    found.chunks = known.chunks
    found.changed_experts = set(found.history.experts) if known.chunks else None
    named = found.own_feed or found.other_feed
    found.feed = found.feed if named is None else named[1]
    found.told_provisional = known.told_provisional or found.told_provisional
    if known.provisional is not None and (found.provisional is None or known.provisional.at >= found.provisional.at):
        found.provisional = known.provisional
    if known.truth is not None and (found.truth is None or known.truth.at >= found.truth.at):
        found.truth = known.truth


def _later(one: Dated | None, other: Dated | None) -> Dated | None:
    if one is None or other is None:
        return one or other
    return other if other[0] >= one[0] else one
