"""An exported feed taken up by the feed stage: as it was said, and with revisions that go on where they ended.

Facts are history. They were computed elsewhere, so nothing here can score them anew: what changes their meaning is
refused for an imported feed, and who is forgotten leaves them without a trace, but what was said of others stays.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from stream_peer.engine.blocks import Blocks
from stream_peer.engine.facts import Facts, unpack
from stream_peer.engine.feed_state import Feed, Imported, Standing, StoredFeed
from stream_peer.engine.feed_store import SCHEMA
from stream_peer.engine.feeds import Feeds
from stream_peer.engine.ledger import Entry
from stream_peer.engine.portable import (
    EntryLine,
    ExpiredLine,
    FeedLine,
    Header,
    Line,
    WaitingLine,
    decode_lines,
)
from stream_peer.engine.roster import StoredRoster
from stream_peer.engine.sources import source_header
from stream_peer.engine.stage import Output, Record
from stream_peer.engine.sums import IndexArray
from stream_peer.engine.transfers import unpacked
from stream_peer.errors import FeedTransferError, RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import FeedImported, Round
from stream_peer.events.incoming import FeedImport
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds

Bits = npt.NDArray[np.bool_]

_encode = msgspec.msgpack.Encoder().encode
_encode_event = msgspec.json.Encoder().encode


_MARK = b'{"type":"feed-import"'


def tells_time(record: Record) -> bool:
    """Whether the time of a record of the feed-log is that of its feed: an import's is when somebody moved it."""
    return not (record.value or b"").startswith(_MARK)


def read_transfer(data: bytes, feed: str) -> Iterator[Line]:
    """The lines of a whole transfer, the header first.

    Raises
    ------
    RejectedEvent
        If it is none, or of another feed. While the lines are read, too.
    """
    try:
        lines = decode_lines(unpacked(data))
        header = next(lines)
        if not isinstance(header, Header) or header.feed != feed:
            raise _refused("it is of another feed")
        yield header
        yield from lines
    except FeedTransferError as error:
        raise _refused(str(error)) from None


class Taken(NamedTuple):
    """What of an import is the partition's: the time that it tells, and rounds of which parts are missing."""

    clock: Milliseconds
    waiting: list[Round]


def take_up(feeds: Feeds, event: FeedImported, data: bytes, record: Record) -> Taken:
    """Take up the feed that a whole transfer holds.

    Raises
    ------
    RejectedEvent
        If the transfer cannot be read, or the feed knows questions already.
    """
    header, *lines = read_transfer(data, event.feed)
    if not isinstance(header, Header) or header.feed_schema != SCHEMA:
        raise _refused(f"it was exported by another release, whose state this one does not read (it reads {SCHEMA})")
    feed = feeds.feed(event.feed)
    if feed.has_rounds() or feed.entries:
        raise _refused("the feed knows questions already; reset or delete it before")
    (line,) = [line for line in lines if isinstance(line, FeedLine)]
    ledger = _ledger(lines)
    gone = [place for place, expert in enumerate(line.experts) if feed.roster.is_forgotten(expert)]
    if gone:
        line = _without(line, ledger, np.array(gone, dtype=np.int32))
    standing = _standing(feed, line, header, event, record)
    feeds.store.leave_all(feed)
    feed.restore(_stored(feed, header, line), standing, ledger)
    feeds.store.touch_all(feed)
    feeds.board.changed(feed)
    waiting = [found.round for found in lines if isinstance(found, WaitingLine)]
    return Taken(min(header.feed_clock, record.timestamp), waiting)


def goes_on(feed: Feed | None, event: FeedImported, record: Record) -> None:
    """A further record of the import, which changes nothing: revisions go on as if it were not there.

    Raises
    ------
    RejectedEvent
        If the feed did not come with this import.
    """
    imported = feed.standing.imported if feed else None
    if feed is None or imported is None or imported.id != event.import_id:
        raise _refused("its questions cannot be taken up: the feed itself was not")
    if feed.standing.revision == imported.revision:
        feed.standing.base = imported.base_at(record.offset)


def handed_on(event: FeedImported, record: Record) -> Output:
    """A part of a feed's questions on its way to their partition of ``forecast-events``."""
    part = FeedImport(
        feed=event.feed,
        import_id=event.import_id,
        part=event.part,
        parts=event.parts,
        digest=event.digest,
        data=event.data,
        partition=event.partition,
        partitions=event.partitions,
    )
    place, value = event.partition, _encode_event(part)
    return Output(
        topics.FORECAST_EVENTS, event.feed.encode(), value, record.timestamp, place, (source_header(event.src),)
    )


def _standing(feed: Feed, line: FeedLine, header: Header, event: FeedImported, record: Record) -> Standing:
    """That of the file; revisions are above those of the file, and above those that the feed has had here.

    What a replay has made of the future is said as of now: brokers take no records from there.
    """
    before, found = feed.standing, line.standing
    least = before.revision + 1 if before.revision >= 0 else -1
    imported = Imported(event.import_id, found.revision, header.next_revision, least - record.offset)
    base = imported.base_at(record.offset)
    standing = msgspec.structs.replace(found, base=base, lost=before.lost, imported=imported)
    if found.revision < least or found.at > record.timestamp:
        revision = base + record.offset
        imported = msgspec.structs.replace(imported, revision=revision)
        standing = msgspec.structs.replace(standing, revision=revision, at=record.timestamp, imported=imported)
    return standing


def _ledger(lines: Iterable[Line]) -> dict[str, Entry | Milliseconds]:
    ledger: dict[str, Entry | Milliseconds] = {}
    for line in lines:
        if isinstance(line, EntryLine):
            entry = Entry(line.weight, line.evidence, tuple(line.rounds), line.touched, line.ordinal)
            ledger[line.question_id] = entry
        elif isinstance(line, ExpiredLine):
            ledger[line.question_id] = line.at
    return ledger


def _stored(feed: Feed, header: Header, line: FeedLine) -> bytes:
    """The line as the feed would have stored it, with what was asked of its experts here."""
    roster = feed.roster
    teams = {**roster.teams, **line.teams}
    excluded, forgotten = roster.excluded.union(line.excluded), roster.forgotten.union(header.forgotten)
    merged = StoredRoster(line.experts, teams, sorted(excluded), sorted(forgotten))
    return _encode(StoredFeed(merged, line.meaning, line.settled))


def _without(line: FeedLine, ledger: dict[str, Entry | Milliseconds], gone: IndexArray) -> FeedLine:
    """The feed without some experts, by their places: others get new places, and no fact names those any more."""
    stay = np.ones(len(line.experts), dtype=bool)
    stay[gone] = False
    places = (np.cumsum(stay) - 1).astype(np.int32)
    for entry in ledger.values():
        if isinstance(entry, Entry):
            entry.rounds = tuple(found for packed in entry.rounds if (found := _facts_without(packed, stay, places)))
    experts = [expert for expert, stays in zip(line.experts, stay.tolist(), strict=True) if stays]
    named = set(experts)
    return msgspec.structs.replace(
        line,
        experts=experts,
        teams={expert: team for expert, team in line.teams.items() if expert in named},
        excluded=[expert for expert in line.excluded if expert in named],
        settled=_settled_without(line, stay),
    )


def _facts_without(packed: bytes, stay: Bits, places: IndexArray) -> bytes | None:
    """A round's facts without some of its experts; None if nobody is left. If one was selected, the next best is."""
    facts = unpack(packed)
    rows = stay[facts.experts]
    if rows.all():
        return packed
    if not rows.any():
        return None
    select = facts.select[rows]
    selected = facts.head.selected
    kept = int(np.count_nonzero(rows[:selected])) if rows[selected] else int(np.argmax(select))
    return Facts(
        facts.head._replace(selected=kept, n_experts=len(select)),
        places[facts.experts[rows]],
        facts.forecasts[rows],
        select,
        facts.answers[rows],
        facts.ties[rows],
    ).pack()


def _settled_without(line: FeedLine, stay: Bits) -> bytes:
    memory = line.meaning.get("memory")
    settled = Blocks.from_bytes(line.settled, len(line.experts), memory)
    for sums in settled.by_number.values():
        sums.matrix = sums.matrix[:, : len(stay)][:, stay]
        sums.histograms = sums.histograms[stay[: len(sums.histograms)]]
    return settled.to_bytes(int(np.count_nonzero(stay)))


def _refused(message: str) -> RejectedEvent:
    return RejectedEvent(Reason.IMPORT_REFUSED, message=message)
