"""An exported feed written to control-events, in parts that the service takes up as any other event."""

import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_peer.errors import FeedTransferError, SettingFault, SettingsError
from stream_peer.events import topics
from stream_peer.kafka.client.control_events import newest_document, write_import
from stream_peer.kafka.client.read import onlooker, partitions_of
from stream_peer.log.portable import FeedLine, Header, Line
from stream_peer.log.transfers import transfer_of
from stream_peer.serve.weights_view import read_newest
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import MEANING
from stream_peer.settings.process import Settings
from stream_peer.tools.transfer.feed_file import read_feed
from stream_peer.tools.transfer.reshape import renamed

Progress = Callable[[int, int], None]


class Sent(NamedTuple):
    """An import on control-events: its id, how many parts it has, and where they stand."""

    import_id: str
    parts: int
    partition: int
    first: int
    last: int


class FeedFile:
    """An exported feed, as it is to be imported.

    Parameters
    ----------
    file : Path
    feed : str or None
        Another name for it.
    secret : str
        Fingerprint of the secret here. Under another one, or another name, nobody is known who was forgotten there.

    Attributes
    ----------
    header : Header
        Of the file, as it is to be imported.
    meaning : dict
        Settings under which its rounds were scored.
    secret : str
        Fingerprint of the secret of the file.
    lost : int
        Experts who were forgotten there and would not be known again here.

    Raises
    ------
    FeedTransferError
        If the file holds no exported feed.
    """

    def __init__(self, file: Path, feed: str | None, secret: str) -> None:
        self._file = file
        self._feed = feed
        self._secret = secret
        (original,) = islice(read_feed(file), 1)
        header, line = islice(self.lines(), 2)
        if not isinstance(original, Header) or not isinstance(header, Header) or not isinstance(line, FeedLine):
            msg = f"{file}: the feed itself is missing"
            raise FeedTransferError(msg)
        self.header, self.meaning = header, line.meaning
        self.secret = original.secret
        self.lost = len(original.forgotten) - len(header.forgotten)

    def lines(self) -> Iterator[Line]:
        """Its lines, under the name that it is to have."""
        before = ""
        for line in read_feed(self._file):
            if isinstance(line, Header):
                before = line.feed
                same = line.secret == self._secret
                line = msgspec.structs.replace(line, forgotten=line.forgotten if same else [])  # noqa: PLW2901
            yield line if self._feed in (None, before) else renamed(line, before, self._feed or "")


def check_import(settings: Settings, found: FeedFile) -> None:
    """Whether the feed can be taken up here.

    Raises
    ------
    FeedTransferError
        If a feed of its name knows questions already.
    SettingsError
        If the settings applied here give its numbers another meaning.
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If that cannot be looked up.
    """
    feed = found.header.feed
    known = read_newest(settings).get(feed)
    if known is not None and known.questions:
        msg = f"feed {feed} knows questions already; reset or delete it before, or import under another name: --as"
        raise FeedTransferError(msg)
    applied = newest_document(settings)
    own = load_document({} if applied is None else applied.document).of(feed)
    ours = {name: msgspec.to_builtins(getattr(own, name)) for name in MEANING}
    faults = [
        SettingFault(f"feeds.{feed}.{name}", "applied here", _other_meaning(ours[name], value))
        for name, value in found.meaning.items()
        if ours.get(name) != value
    ]
    if faults:
        raise SettingsError(faults)


def _other_meaning(ours: Any, theirs: Any) -> str:
    return f"is {ours!r}, the feed was made with {theirs!r}; put that into the file and `stream-peer settings apply` it"


def send_import(settings: Settings, found: FeedFile, progress: Progress | None = None) -> Sent:
    """Write the feed to control-events, part by part; return when every in-sync replica has them all.

    Raises
    ------
    FeedTransferError
        If the file turns out to be damaged; nothing was written then.
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If it cannot be written.
    """
    with onlooker(settings) as consumer:
        partitions = len(partitions_of(consumer, settings.topic(topics.FORECAST_EVENTS)))
    events = transfer_of(found.header, islice(found.lines(), 1, None), uuid.uuid4().hex[:12], partitions)
    written = write_import(settings, events, progress)
    return Sent(events[0].import_id, len(events), written[0].partition, written[0].offset, written[-1].offset)
