"""Which records tell `settings apply` that its document was handed on; anybody may write others beside them."""

import pytest

from stream_peer.events.feed_log import SettingsChanged, Source, encode_feed_log
from stream_peer.kafka.client.control_events import Applied, hands_on
from stream_peer.log.sources import SOURCE_HEADER, source_header
from stream_peer.log.stage import Headers, LogRecord

SOURCE = Source("control-events", 3, 7, 41, 0)
APPLIED = Applied({}, "hash", 3, 41)
DEEP = b'["control-events",3,7,41,0,' + b"[" * 60_000


def record(value: bytes | None, headers: Headers = (), key: bytes = b"settings") -> LogRecord:
    return LogRecord(5, 0, key, value, headers)


def changed(source: Source) -> bytes:
    return encode_feed_log(SettingsChanged(src=source, document={}, hash="hash"))


def test_a_broadcast_hands_on_the_document_of_its_source() -> None:
    other = Source("control-events", 3, 7, 42, 0)

    assert hands_on(record(b"{}", [source_header(SOURCE)]), APPLIED)
    assert hands_on(record(changed(SOURCE)), APPLIED)
    assert not hands_on(record(b"{}", [source_header(other)]), APPLIED)
    assert not hands_on(record(changed(other)), APPLIED)
    assert not hands_on(record(b"{}", [source_header(SOURCE)], key=b"q1"), APPLIED)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b'{"type":"\xff"}', b'{"type":"settings","x":' + b"[" * 60_000])
@pytest.mark.parametrize("header", [b"", b"\xff", DEEP])
def test_what_others_write_beside_it_hands_on_nothing(value: bytes | None, header: bytes) -> None:
    assert not hands_on(record(value, [(SOURCE_HEADER, header)]), APPLIED)
