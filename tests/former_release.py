"""What the releases before left in the feed-log of a feed that they moved: its state, in parts."""

import zlib
from collections.abc import Iterable, Sequence

import msgspec

from stream_peer.events.feed_log import FeedImported, Round, Source, encode_feed_log
from stream_peer.feeds.feed import decode_feed
from stream_peer.feeds.former_imports import (
    SCHEMA,
    EntryLine,
    ExpiredLine,
    FeedLine,
    FormerEnd,
    FormerHeader,
    Line,
    WaitingLine,
)
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.store import decode_head, stored_feeds, stored_ledgers
from stream_peer.log.pieces import join_chunks
from stream_peer.log.stage import LogRecord
from stream_peer.log.transfers import parts_of
from tests.feed_histories import HOUR, START

LATER = START + HOUR

decode_round = msgspec.msgpack.Decoder(Round).decode


def former_lines(stage: FeedStage, applied: int, feed: str = "f") -> list[Line]:
    """A feed as it was exported."""
    snapshot = stage.snapshot()
    rows = {key: value for key, value in snapshot.entries.items() if value is not None}
    head, stored = decode_head(snapshot.head), decode_feed(stored_feeds(rows)[feed][0])
    path_state, roster = head.path_states[feed], stored.roster
    header = FormerHeader(
        feed=feed,
        next_revision=path_state.base + applied + 1,
        forgotten=roster.erased,
        names=roster.names,
        feed_schema=SCHEMA,
    )
    line = FeedLine(
        experts=roster.experts,
        teams=roster.teams,
        excluded=roster.excluded,
        meaning=stored.meaning,
        settled=stored.settled,
        path_state=path_state,
    )
    ledger = [_ledger_line(name, found) for name, found in sorted(stored_ledgers(rows).get(feed, {}).items())]
    parts = (decode_round(data) for _, (data, _) in sorted(join_chunks(b"p", rows).items()))
    return [header, line, *ledger, *(WaitingLine(round=event) for event in parts if event.feed == feed)]


def _ledger_line(question_id: str, found: Entry | int) -> Line:
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


def former_import(
    lines: Sequence[Line], *, first: int = 0, import_id: str = "moved", feed: str = "f"
) -> list[LogRecord]:
    """The records that an import has left in the feed-log, from the offset ``first`` on."""
    whole: Iterable[Line] = [*lines, FormerEnd(lines=len(lines))]
    data = zlib.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in whole))
    digest, parts = parts_of(data)
    records = []
    for number, part in enumerate(parts):
        src = Source("control-events", 0, 0, first + number, 0)
        event = FeedImported(
            src=src, feed=feed, import_id=import_id, part=number, parts=len(parts), digest=digest, data=part
        )
        records.append(LogRecord(first + number, LATER, feed.encode(), encode_feed_log(event)))
    return records
