"""An exported feed appended to the feed-log, and its questions written to control-events: see the package."""

import hashlib
import time
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_peer.errors import FeedTransferError, RejectedEvent, SettingFault, SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    MOVED,
    ExpertChanged,
    FeedChanged,
    FeedImported,
    FeedLogRecord,
    OutcomeRevealed,
    Round,
    SettingsChanged,
    Source,
    encode_feed_log,
    read_feed_log,
)
from stream_peer.events.incoming import FeedImport
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import Milliseconds
from stream_peer.kafka.client.control_events import import_parts, newest_document, write_import
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, read_to_end
from stream_peer.kafka.client.write import append_to_feed_log
from stream_peer.log.stage import LogRecord, Record
from stream_peer.questions.moved import Heading, QuestionLine, moving_events
from stream_peer.questions.rounds import in_parts
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import MEANING, UNSTATED_METHOD
from stream_peer.settings.process import Settings
from stream_peer.tools.replay.files import Progress
from stream_peer.tools.transfer.feed_file import Header, Line, RecordLine, digest_of_file, read_feed
from stream_peer.tools.transfer.reshape import renamed

_ID_BYTES = 6


class Sent(NamedTuple):
    """An import: its id, the partition of the feed-log, and how many records and parts of questions were written."""

    import_id: str
    partition: int
    records: int
    parts: int


class FeedFile:
    """An exported feed, as it is to be imported. It is whole: it was read once.

    Parameters
    ----------
    file : Path
    feed : str or None
        Another name for it.
    secret : str
        Fingerprint of the secret here. Under another one, or another name, ids erased there are not recognised.

    Attributes
    ----------
    header : Header
        Of the file, as it is to be imported.
    digest : str
        Names what is in the file.
    size : int
        How many lines it has.
    secret : str
        Fingerprint of the secret of the file.
    lost : int
        Ids that were erased there and are not recognised here.

    Raises
    ------
    FeedTransferError
        If the file holds no exported feed, or none that can be imported so.
    """

    def __init__(self, file: Path, feed: str | None, secret: str) -> None:
        self._file = file
        self._feed = feed
        self._secret = secret
        (original,) = _headers(read_feed(file))
        (self.header,) = _headers(self.lines())
        self.digest = digest_of_file(file)
        self.size = sum(1 for _ in self.lines())
        self.secret = original.secret
        self.lost = len(original.forgotten) - len(self.header.forgotten)

    def lines(self) -> Iterator[Line]:
        """Its lines, under the name that it is to have."""
        before = ""
        for line in read_feed(self._file):
            if isinstance(line, Header):
                before = line.feed
                same = line.secret == self._secret
                line = msgspec.structs.replace(line, forgotten=line.forgotten if same else [])  # noqa: PLW2901
            yield line if self._feed in (None, before) else renamed(line, before, self._feed or "")


def _headers(lines: Iterator[Line]) -> list[Header]:
    """The first line, which is one."""
    return [line for line in islice(lines, 1) if isinstance(line, Header)]


class Landing:
    """What a partition of the feed-log holds of a feed that is to be imported, as its records come.

    Attributes
    ----------
    import_id : str
    appended : int
        So many lines of this import stand there, the first ones.
    partition, forecast_partitions : int
        Which partition it is, and how many forecast-events has.
    """

    def __init__(self, feed: str, digest: str) -> None:
        self._feed, self._digest = feed, digest
        self.partition = self.forecast_partitions = 0
        self._has_names = False
        self._begin(-1)

    def _begin(self, offset: int) -> None:
        named = f"{self._digest}/{self._feed}/{offset}".encode()
        self.import_id = hashlib.blake2b(named, digest_size=_ID_BYTES).hexdigest()
        self.appended = 0
        self._has_gap = self._has_others = False

    def add(self, record: Record) -> None:
        """The next record of the partition."""
        if record.key != self._feed.encode():
            return
        try:
            event = read_feed_log(record.value)
        except RejectedEvent:
            return
        if event.src.topic == MOVED + self.import_id:
            self._has_gap |= event.src.offset > self.appended
            self.appended = max(self.appended, event.src.offset + 1)
        elif isinstance(event, FeedChanged):
            self._has_names &= not event.delete  # a reset feed keeps them
            self._begin(record.offset)
        else:
            self._has_others |= isinstance(event, Round | OutcomeRevealed | FeedImported)
            self._has_names |= isinstance(event, ExpertChanged) and event.rename is not None

    def check(self) -> None:
        """Whether the import can begin, or go on.

        Raises
        ------
        FeedTransferError
            If it cannot.
        """
        if self._has_gap:
            raise self._refused("has an import of which lines are missing; reset or delete it before")
        if self.appended:
            return
        if self._has_others:
            raise self._refused("knows questions already; reset or delete it before")
        if self._has_names:  # ids of the file could be those that other experts were given here
            raise self._refused("has renamed experts; delete it before")

    def _refused(self, why: str) -> FeedTransferError:
        return FeedTransferError(f"feed {self._feed} {why}, or import under another name: --as")


def log_records(lines: Iterable[Line], import_id: str, now: Milliseconds) -> Iterator[LogRecord]:
    """The records that the import appends to the feed-log, in order; offsets count them.

    None is later than ``now``: brokers take no records from the future, or from before 1970.
    """
    numbers = count()

    def next_source() -> Source:
        return Source(MOVED + import_id, 0, 0, next(numbers), 0)

    for at, record in _records(lines):
        event = msgspec.structs.replace(record, src=next_source())
        pieces = in_parts(event, next_source) if isinstance(event, Round) else [(event, encode_feed_log(event))]
        for piece, value in pieces:
            yield LogRecord(piece.src.offset, min(max(at, 0), now), event.feed.encode(), value)


def _records(lines: Iterable[Line]) -> Iterator[tuple[Milliseconds, FeedLogRecord]]:
    """Erased experts, then the lines. Settings are left out: they would apply to all feeds."""
    nowhere, forgotten = Source("", 0, 0, 0, 0), list[bytes]()
    for line in lines:
        if isinstance(line, Header):
            forgotten = line.forgotten
        if not isinstance(line, RecordLine) or isinstance(line.record, SettingsChanged):
            continue
        for digest in forgotten:
            yield line.at, ExpertChanged(src=nowhere, feed=line.record.feed, expert_id="", forget=True, digest=digest)
        forgotten = []
        yield line.at, line.record


def question_events(lines: Iterable[Line], import_id: str, partitions: int) -> Iterator[FeedImport]:
    """The questions as events for ``partitions`` partitions of forecast-events; the header comes first."""
    rest = iter(lines)
    for header in _headers(rest):
        heading = Heading(
            feed=header.feed, question_schema=header.question_schema, forgotten=header.forgotten, names=header.names
        )
        questions = (line for line in rest if isinstance(line, QuestionLine))
        yield from moving_events(heading, questions, import_id, partitions)


def look_up(settings: Settings, found: FeedFile) -> Landing:
    """What the feed-log here holds of the feed, which can be imported.

    Raises
    ------
    FeedTransferError
        If a feed of its name knows questions already.
    SettingsError
        If the settings applied here give its numbers another meaning.
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If that cannot be looked up.
    """
    landing = Landing(found.header.feed, found.digest)
    with groupless_reader(settings) as consumer:
        log = partitions_of(consumer, settings.topic(topics.FEED_LOG))
        landing.partition = partition_of(found.header.feed, len(log))
        landing.forecast_partitions = len(partitions_of(consumer, settings.topic(topics.FORECAST_EVENTS)))
        for records in read_to_end(consumer, [log[landing.partition]]):
            for record in records:
                landing.add(record)
    landing.check()
    _check_meaning(settings, found)
    return landing


def _check_meaning(settings: Settings, found: FeedFile) -> None:
    feed = found.header.feed
    applied = newest_document(settings)
    own = load_document({} if applied is None else applied.document).of(feed)
    ours = {name: msgspec.to_builtins(getattr(own, name)) for name in MEANING}
    theirs = {"method_version": UNSTATED_METHOD, **found.header.meaning}
    faults = [
        SettingFault(f"feeds.{feed}.{name}", "applied here", _other_meaning(ours.get(name), value))
        for name, value in theirs.items()
        if ours.get(name) != value
    ]
    if faults:
        raise SettingsError(faults)


def _other_meaning(ours: Any, theirs: Any) -> str:
    return f"is {ours!r}, the feed was made with {theirs!r}; put that into the file and `stream-peer settings apply` it"


def send_import(settings: Settings, found: FeedFile, landing: Landing, progress: Progress | None = None) -> Sent:
    """Append the feed to the feed-log, then write its questions; return when every in-sync replica has them all.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If it cannot be written; the same import goes on from there.
    """
    place = TopicPartition(settings.topic(topics.FEED_LOG), landing.partition)
    import_id = landing.import_id
    wanted = islice(log_records(found.lines(), import_id, int(time.time() * 1000)), landing.appended, None)
    records = append_to_feed_log(settings, place, wanted, progress and (lambda done: progress(done, found.size)))
    there = import_parts(settings, import_id) if landing.appended else set()
    events = question_events(found.lines(), import_id, landing.forecast_partitions)
    missing = [event for event in events if (event.partition, event.part) not in there]
    if missing:
        write_import(settings, missing)
    return Sent(import_id, place.partition, records, len(missing))
