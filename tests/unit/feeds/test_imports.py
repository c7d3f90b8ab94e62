"""Feeds that are being imported; what becomes of whole ones is told in ``test_feed_import``."""

import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import FeedImported, Source
from stream_peer.feeds.feeds import Feeds
from stream_peer.feeds.imports import Imports
from stream_peer.log.stage import LogRecord
from stream_peer.settings.feed.document import load_document

RECORD = LogRecord(7, 1000, b"f", None)


def part(data: bytes, number: int = 0) -> FeedImported:
    source = Source("control-events", 0, 0, number, 0)
    return FeedImported(src=source, feed="f", import_id="moved", part=number, parts=2, digest="", data=data)


@pytest.fixture
def feeds() -> Feeds:
    return Feeds(b"secret", load_document({}), {})


def test_of_a_feed_with_a_part_that_cannot_be_read_nothing_stays(feeds: Feeds) -> None:
    imports = Imports()

    with pytest.raises(RejectedEvent, match="no release has written"):
        imports.add(part(b"not packed"), RECORD, feeds)

    assert set(imports.snapshot().values()) == {None}
    with pytest.raises(RejectedEvent, match="nothing that has begun"):
        imports.add(part(b"", number=1), RECORD, feeds)


def test_a_feed_that_is_dropped_begins_with_its_first_part_again(feeds: Feeds) -> None:
    imports = Imports()
    assert imports.add(part(b""), RECORD, feeds) == []
    assert any(imports.snapshot().values())

    imports.drop("f")

    assert set(imports.snapshot().values()) == {None}
    assert imports.add(part(b""), RECORD, feeds) == []
