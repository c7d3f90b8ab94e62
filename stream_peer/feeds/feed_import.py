"""An exported feed taken up by the feed stage: as it was said, and with revisions that go on where they ended.

Facts are history. They were computed elsewhere, so nothing here can score them anew: what changes their meaning is
refused for an imported feed, and who is forgotten leaves them without a trace, but what was said of others stays.
"""

import struct
import zlib
from collections.abc import Sequence

import msgspec
import numpy as np

from stream_peer.errors import FeedTransferError, SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_log import FeedImported, Round, shared_fields
from stream_peer.events.incoming import FeedImport
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.blocks import Blocks
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.facts import unpack
from stream_peer.feeds.feed import Feed, StoredFeed
from stream_peer.feeds.feed_without import facts_without, feed_without, scored_with_places
from stream_peer.feeds.feeds import Feeds
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.method import method_of
from stream_peer.feeds.roster import Roster, StoredRoster
from stream_peer.feeds.standing import Imported, Standing
from stream_peer.feeds.store import SCHEMA
from stream_peer.log.names import Given
from stream_peer.log.portable import (
    EntryLine,
    ExpiredLine,
    FeedLine,
    Header,
    Line,
    LineReader,
    WaitingLine,
)
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output, Record
from stream_peer.log.transfers import import_refusal
from stream_peer.settings.feed.model import FeedSettings

_encode = msgspec.msgpack.Encoder().encode
_encode_event = msgspec.json.Encoder().encode


_UNFIT = (
    *(ValueError, TypeError, KeyError, IndexError, OverflowError),
    *(struct.error, zlib.error, msgspec.MsgspecError, SettingsError),
)
"""What numbers that nobody has written can lead to. What a part holds is dealt with apart from the feed."""

_MARK = b'{"type":"feed-import"'


def tells_time(record: Record) -> bool:
    """Whether the time of a record of the feed-log is that of its feed: an import's is when somebody moved it."""
    return not (record.value or b"").startswith(_MARK)


def fresh(feeds: Feeds, name: str) -> Feed:
    """The feed, if it knows no questions.

    Raises
    ------
    RejectedEvent
        If it does.
    """
    feed = feeds.feed(name)
    if feed.has_rounds() or feed.entries:
        raise import_refusal("the feed knows questions already; reset or delete it before")
    return feed


def _check_header(header: Header, feed: str) -> None:
    if header.feed != feed:
        raise import_refusal("it is of another feed")
    if header.feed_schema != SCHEMA:
        raise import_refusal(
            f"it was exported by another release, whose state this one does not read (it reads {SCHEMA})"
        )


class Incoming:
    """A feed on its way: what its parts so far hold, with the sums of that.

    Each part is dealt with when it comes, so that none takes long; the feed itself knows nothing of it until the end.

    Parameters
    ----------
    feeds : Feeds
        Where it is to be taken up.
    name : str
    """

    def __init__(self, feeds: Feeds, name: str) -> None:
        self.parts = 0
        self._feeds = feeds
        self._name = name
        self._unpacker = zlib.decompressobj()
        self._reader = LineReader()
        self._text = b""
        self._header: Header | None = None
        self._building: _Building | None = None

    def add(self, data: bytes) -> None:
        """The next part.

        Raises
        ------
        RejectedEvent
            If it cannot be read, or is of no feed that could be taken up here.
        """
        self.parts += 1
        try:
            *lines, self._text = (self._text + self._unpacker.decompress(data)).split(b"\n")
            for text in lines:
                self._take(self._reader.read(text))
        except FeedTransferError as error:
            raise import_refusal(str(error)) from None
        except _UNFIT as error:
            raise import_refusal(f"it holds what no release has written: {error}") from None

    def take_up(self, event: FeedImported, whole: bytes, record: Record) -> list[Round]:
        """All parts are there, ``whole`` together: the feed begins with it. Rounds of which parts are missing.

        Raises
        ------
        RejectedEvent
            If it is not whole, or the feed has come to know questions meanwhile.
        """
        feed, building, header = fresh(self._feeds, self._name), self._building, self._header
        if building is None or header is None or not self._reader.ended:
            raise import_refusal("it is not whole")
        if building.forgotten(feed.roster, building.line.experts):  # who asked for it meanwhile
            again = Incoming(self._feeds, self._name)
            again.add(whole)
            return again.take_up(event, whole, record)
        standing = _standing(self._feeds, building.line, header, event, record)
        self._feeds.store.leave_all(feed)
        feed.take_up(_stored(feed, header, building.line), standing, building.ledger)
        feed.begin_with(building.blocks)
        self._feeds.store.touch_all(feed)
        self._feeds.board.changed(feed)
        return building.waiting

    def _take(self, line: Line) -> None:
        if isinstance(line, Header):
            _check_header(line, self._name)
            self._header = line
        elif isinstance(line, FeedLine) and self._building is None:
            names = self._header.names if self._header else {}
            self._building = _Building(self._feeds.feed(self._name), line, names)
        elif self._building is not None:
            self._building.add(line)


class _Building:
    """The feed's ledger and sums as its lines come, without those who are forgotten."""

    def __init__(self, feed: Feed, line: FeedLine, names: Given) -> None:
        self._names = names
        gone = self.forgotten(feed.roster, line.experts)
        self._stay = np.ones(len(line.experts), dtype=bool)
        self._stay[gone] = False
        self.line = feed_without(line, self._stay) if gone else line
        settings = msgspec.convert({**msgspec.to_builtins(feed.settings), **line.meaning}, FeedSettings)
        self._method = method_of(settings)
        self.ledger: dict[str, Entry | Milliseconds] = {}
        self.waiting: list[Round] = []
        self.blocks = Blocks.from_bytes(self.line.settled, len(self.line.experts), settings.memory)
        self.blocks.reach(max(line.standing.ordinals - 1, 0))

    def forgotten(self, roster: Roster, experts: Sequence[str]) -> list[int]:
        """Places of those experts who are forgotten here by any of their ids."""
        ids = ((expert, *self._names.get(expert, ())) for expert in experts)
        return [place for place, names in enumerate(ids) if any(map(roster.is_forgotten, names))]

    def add(self, line: Line) -> None:
        if isinstance(line, EntryLine):
            self._add_entry(line)
        elif isinstance(line, ExpiredLine):
            self.ledger[line.question_id] = line.at
        elif isinstance(line, WaitingLine):
            self.waiting.append(line.round)

    def _add_entry(self, line: EntryLine) -> None:
        rounds = tuple(line.rounds)
        scored = line.first_final
        if rounds or scored:
            _check_facts((*rounds, scored) if scored else rounds, len(self._stay))
        if not self._stay.all():
            places = (np.cumsum(self._stay) - 1).astype(np.int32)
            kept = (facts_without(packed, self._stay, places) for packed in rounds)
            rounds = tuple(packed for packed in kept if packed is not None)
            scored = scored and scored_with_places(scored, np.where(self._stay, places, np.int32(-1)))
        number, shown = line.ordinal, line.provisional
        entry = Entry(line.weight, line.evidence, rounds, line.touched, number, scored, line.revision, shown)
        self.ledger[line.question_id] = entry
        self.blocks.add(contribution(entry, self._method), entry.ordinal)


def _check_facts(rounds: tuple[bytes, ...], n_experts: int) -> None:
    """Whether facts are as long as they say, and of experts that there are."""
    for facts in map(unpack, rounds):
        present = len(facts.experts)
        lowest, highest = int(facts.experts.min(initial=0)), int(facts.experts.max(initial=0))
        of_experts = (facts.forecasts, facts.select, facts.answers, facts.ties)
        if any(len(array) != present for array in of_experts) or lowest < 0:
            msg = "facts that are cut off"
            raise ValueError(msg)
        if highest >= n_experts > 0 or not (facts.selected is None or 0 <= facts.selected < max(present, 1)):
            msg = "facts of an expert that the feed does not have"
            raise ValueError(msg)


def goes_on(feed: Feed | None, event: FeedImported, record: Record) -> None:
    """A further record of the import, which changes nothing: revisions go on as if it were not there.

    Raises
    ------
    RejectedEvent
        If the feed did not come with this import.
    """
    imported = feed.standing.imported if feed else None
    if feed is None or imported is None or imported.id != event.import_id:
        raise import_refusal("its questions cannot be taken up: the feed itself was not")
    if feed.standing.revision == imported.revision:
        feed.standing.base = imported.base_at(record.offset)


def handed_on(event: FeedImported, record: Record, signatures: Signatures) -> Output:
    """A part of a feed's questions on its way to their partition of ``forecast-events``."""
    place, value = event.partition, _encode_event(FeedImport(**shared_fields(event, FeedImport)))
    part = Output(topics.FORECAST_EVENTS, event.feed.encode(), value, record.timestamp, place)
    return signatures.signed(part, event.src)


def _standing(feeds: Feeds, line: FeedLine, header: Header, event: FeedImported, record: Record) -> Standing:
    """That of the file; revisions are above those of the file, and above those that the feed has had here.

    What a replay has made of the future is said as of now: brokers take no records from there.
    """
    feed, found = feeds.feed(header.feed), line.standing
    highest = feeds.highest(feed)
    least = highest + 1 if highest >= 0 else -1
    floor, clock = least - record.offset, min(header.feed_clock, record.timestamp)
    imported = Imported(event.import_id, found.revision, header.next_revision, floor, clock)
    base = imported.base_at(record.offset)
    standing = msgspec.structs.replace(found, base=base, lost=feed.standing.lost, imported=imported)
    if found.revision < least or found.at > record.timestamp:
        revision = base + record.offset
        imported = msgspec.structs.replace(imported, revision=revision)
        standing = msgspec.structs.replace(standing, revision=revision, at=record.timestamp, imported=imported)
    return standing


def _stored(feed: Feed, header: Header, line: FeedLine) -> bytes:
    """The line as the feed would have stored it, with what was asked of its experts here."""
    roster = feed.roster
    teams = {**roster.teams, **line.teams}
    excluded, forgotten = roster.excluded.union(line.excluded), roster.forgotten.union(header.forgotten)
    names = roster.names.joined(header.names)
    if any(names.first(expert) != expert for expert in line.experts):
        raise import_refusal("an expert of it has an id that another one was given here: delete the feed before")
    merged = StoredRoster(line.experts, teams, sorted(excluded), sorted(forgotten), names.given)
    return _encode(StoredFeed(merged, line.meaning, line.settled))
