"""A feed taken out of the stored state of both stages, as portable lines."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stream_peer.errors import FeedTransferError
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.feed import StoredFeed, decode_feed
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.round_parts import stored_rounds
from stream_peer.feeds.standing import Standing
from stream_peer.feeds.store import SCHEMA as FEED_SCHEMA
from stream_peer.feeds.store import Head, decode_head, schema_and_secret, stored_feeds, stored_ledgers
from stream_peer.log.portable import (
    EntryLine,
    ExpiredLine,
    FeedLine,
    Header,
    Line,
    QuestionLine,
    WaitingLine,
)
from stream_peer.questions.state import Stub, decode_question_entry, encode_stub, encode_whole, question_key
from stream_peer.questions.store import SCHEMA as QUESTION_SCHEMA
from stream_peer.questions.store import decode_question_head as decode_question_head
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.feed.model import FeedSettings

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
    applied: int
    lines: list[QuestionLine]


class Origin(NamedTuple):
    """Which release makes the lines, and when (ISO 8601). ``document``: settings, where the state names none."""

    product: str
    made_at: str
    document: Mapping[str, Any] = {}


def exported(feed: str, of_feeds: StageState, of_questions: Iterable[Questions], origin: Origin) -> Iterator[Line]:
    """The lines of a feed: header, the feed and its ledger, then its questions. One that counts them is not among them.

    Parameters
    ----------
    feed : str
    of_feeds : StageState
        The feed stage's partition that the feed belongs to. It must have folded all that ``of_questions`` has emitted.
    of_questions : iterable of Questions
        Of all partitions of the question stage.
    origin : Origin

    Raises
    ------
    FeedTransferError
        If there is no such feed.
    StateError
        If the state cannot be read.
    """
    head = _head(of_feeds, feed)
    questions = list(of_questions)
    stored = decode_feed(stored_feeds(of_feeds.entries)[feed][0])
    standing, document = head.standings[feed], head.settings or origin.document
    yield Header(
        product=origin.product,
        feed=feed,
        made_at=origin.made_at,
        revision=standing.revision,
        next_revision=standing.base + of_feeds.applied + 1,
        applied=of_feeds.applied,
        forecasts={found.partition: found.applied for found in questions},
        feed_clock=standing.time(head.clock),
        settings=_of_feed(document, feed),
        settings_hash=document_hash(document),
        secret=head.secret,
        forgotten=stored.roster.forgotten,
        names=stored.roster.names,
        feed_schema=FEED_SCHEMA,
        question_schema=QUESTION_SCHEMA,
    )
    yield from _feed_lines(feed, stored, standing, of_feeds.entries)
    for found in questions:
        yield from found.lines


def questions_of(feed: str, state: StageState) -> Questions:
    """The questions of a feed in a partition of the question stage.

    Raises
    ------
    StateError
        If the state cannot be read.
    """
    clock = 0 if state.head is None else decode_question_head(state.head).clock
    return Questions(state.partition, state.applied, list(_question_lines(feed, clock, state.entries)))


def _head(state: StageState, feed: str) -> Head:
    """The head of the feed stage's partition, if it knows the feed."""
    schema = FEED_SCHEMA if state.head is None else schema_and_secret(state.head)[0]
    if schema != FEED_SCHEMA:
        msg = (
            f"the state has schema {schema}, this release reads {FEED_SCHEMA}: let a worker of this release take it up"
        )
        raise FeedTransferError(msg)
    head = None if state.head is None else decode_head(state.head)
    if head is None or feed not in head.standings:
        there = ", ".join(sorted(head.standings)) if head else ""
        msg = f"there is no feed {feed}; its partition of the feed-log knows {there or 'none yet'}"
        raise FeedTransferError(msg)
    return head


def _of_feed(document: Mapping[str, Any], feed: str) -> dict[str, Any]:
    """What of a settings document is about one feed."""
    own = (document.get("feeds") or {}).get(feed)
    found = {"defaults": document.get("defaults") or {}, "feeds": {feed: own} if own else {}}
    return {name: value for name, value in found.items() if value}


def _feed_lines(feed: str, stored: StoredFeed, standing: Standing, entries: Mapping[bytes, bytes]) -> Iterator[Line]:
    roster = stored.roster
    yield FeedLine(
        experts=roster.experts,
        teams=roster.teams,
        excluded=roster.excluded,
        meaning=stored.meaning,
        settled=stored.settled,
        standing=standing,
    )
    for question_id, found in sorted(stored_ledgers(entries).get(feed, {}).items()):
        yield _ledger_line(question_id, found)
    for event in stored_rounds(entries):
        if event.feed == feed:
            yield WaitingLine(round=event)


def _ledger_line(question_id: str, found: Entry | Milliseconds) -> Line:
    if not isinstance(found, Entry):
        return ExpiredLine(question_id=question_id, at=found)
    return EntryLine(
        question_id=question_id,
        weight=found.weight,
        evidence=found.evidence,
        touched=found.touched,
        ordinal=found.ordinal,
        rounds=list(found.rounds),
        first_final=found.first_final,
        revision=found.revision,
        provisional=found.provisional,
    )


def _question_lines(feed: str, clock: Milliseconds, entries: Mapping[bytes, bytes]) -> Iterator[QuestionLine]:
    settings = FeedSettings()
    for key in sorted(key for key in entries if key.startswith(_QUESTION)):
        question_id = key[len(_QUESTION) :].decode()
        found = decode_question_entry(question_id, entries[key], entries, settings)
        if found.feed == feed:
            stored = encode_stub(found) if isinstance(found, Stub) else encode_whole(found)
            yield QuestionLine(question_id=question_id, clock=clock, stored=stored)
