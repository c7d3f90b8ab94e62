"""A feed as lines of a file: from its slice of the log, and from the stored state of both stages."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stream_peer.errors import FeedTransferError
from stream_peer.feeds.feed import decode_feed
from stream_peer.feeds.store import SCHEMA as FEED_SCHEMA
from stream_peer.feeds.store import Head, decode_head, schema_and_secret, stored_feeds
from stream_peer.questions.moved import QuestionLine
from stream_peer.questions.state import Stub, decode_question_entry, encode_stub, encode_whole, question_key
from stream_peer.questions.store import SCHEMA as QUESTION_SCHEMA
from stream_peer.questions.store import decode_question_head
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.tools.transfer.feed_file import Header, Line
from stream_peer.tools.transfer.feed_slice import FeedSlice, KnownUpTo, settings_of

_QUESTION = question_key("")


class StageState(NamedTuple):
    """Stored state of one partition of a stage: after the input record at offset ``applied``."""

    partition: int
    applied: int
    head: bytes | None
    entries: Mapping[bytes, bytes]


class Questions(NamedTuple):
    """A feed's questions in one partition of the question stage."""

    partition: int
    known: KnownUpTo
    lines: list[QuestionLine]


class Origin(NamedTuple):
    """Which release makes the lines, and when (ISO 8601). ``document``: settings, where the state names none."""

    product: str
    made_at: str
    document: Mapping[str, Any] = {}


def known_of(questions: Iterable[Questions]) -> dict[int, KnownUpTo]:
    """By partition: what the stored questions know."""
    return {found.partition: found.known for found in questions}


def exported(
    feed: str, of_feeds: StageState, of_questions: Iterable[Questions], found: FeedSlice, origin: Origin
) -> Iterator[Line]:
    """The lines of a feed: header, its records of the feed-log, then its questions.

    Parameters
    ----------
    feed : str
    of_feeds : StageState
        The feed stage's partition that the feed belongs to. It must have folded all that is in the slice.
    of_questions : iterable of Questions
        Of all partitions of the question stage.
    found : FeedSlice
        Filled.
    origin : Origin

    Raises
    ------
    FeedTransferError
        If there is no such feed, or it cannot move.
    StateError
        If the state cannot be read.
    """
    head = _head(of_feeds, feed)
    questions = list(of_questions)
    stored = decode_feed(stored_feeds(of_feeds.entries)[feed][0])
    document = head.settings or origin.document
    yield Header(
        product=origin.product,
        feed=feed,
        made_at=origin.made_at,
        revision=head.path_states[feed].revision,
        forecasts={part.partition: part.known.applied for part in questions},
        settings=settings_of(document, feed),
        settings_hash=document_hash(document),
        meaning=stored.meaning,
        secret=head.secret,
        forgotten=stored.roster.erased,
        names=stored.roster.names,
        question_schema=QUESTION_SCHEMA,
    )
    yield from found.lines()
    for part in questions:
        yield from part.lines


def questions_of(feed: str, state: StageState) -> Questions:
    """The questions of a feed in a partition of the question stage.

    Raises
    ------
    StateError
        If the state cannot be read.
    """
    head = None if state.head is None else decode_question_head(state.head)
    known = KnownUpTo(head.incarnation if head else 0, state.applied)
    return Questions(state.partition, known, list(_question_lines(feed, head.clock if head else 0, state.entries)))


def _head(state: StageState, feed: str) -> Head:
    """The head of the feed stage's partition, if it knows the feed."""
    schema = FEED_SCHEMA if state.head is None else schema_and_secret(state.head)[0]
    if schema != FEED_SCHEMA:
        msg = (
            f"the state has schema {schema}, this release reads {FEED_SCHEMA}: let a worker of this release take it up"
        )
        raise FeedTransferError(msg)
    head = None if state.head is None else decode_head(state.head)
    if head is None or feed not in head.path_states:
        there = ", ".join(sorted(head.path_states)) if head else ""
        msg = f"there is no feed {feed}; its partition of the feed-log knows {there or 'none yet'}"
        raise FeedTransferError(msg)
    return head


def _question_lines(feed: str, clock: int, entries: Mapping[bytes, bytes]) -> Iterator[QuestionLine]:
    settings = FeedSettings()
    for key in sorted(key for key in entries if key.startswith(_QUESTION)):
        question_id = key[len(_QUESTION) :].decode()
        found = decode_question_entry(question_id, entries[key], entries, settings)
        if found.feed == feed:
            stored = encode_stub(found) if isinstance(found, Stub) else encode_whole(found)
            yield QuestionLine(question_id=question_id, clock=clock, stored=stored)
