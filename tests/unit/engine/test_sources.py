import pytest

from stream_peer.engine.sources import SOURCE_HEADER, Seen, is_broadcast, source_header, source_of
from stream_peer.engine.stage import Headers
from stream_peer.events.feed_log import Source


def test_the_header_gives_back_the_source() -> None:
    source = Source("control-events", 3, 1, 99, 4)

    assert source_of([("other", b"x"), source_header(source)]) == source


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b'["weights",0,0,0,0]', b'{"topic":"forecast-events"}'])
def test_a_header_that_is_not_ours_names_no_source(value: bytes) -> None:
    assert source_of([(SOURCE_HEADER, value)]) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], False),
        ([("other", b"x")], False),
        ([(SOURCE_HEADER, b"{}")], False),
        ([source_header(Source("forecast-events", 3, 0, 17, 0))], False),
        ([("other", b"x"), source_header(Source("control-events", 3, 0, 17, 0))], True),
    ],
)
def test_a_broadcast_names_a_control_event_as_its_source(headers: Headers, expected: bool) -> None:
    assert is_broadcast(headers) is expected


def test_what_is_not_above_the_highest_seen_is_a_repeat() -> None:
    seen = Seen([Source("forecast-events", 0, 0, 5, 0)])

    news = [
        seen.add(Source("forecast-events", 0, 0, 5, 0)),
        seen.add(Source("forecast-events", 0, 0, 5, 1)),
        seen.add(Source("forecast-events", 1, 0, 2, 0)),
        seen.add(Source("forecast-events", 0, 0, 4, 9)),
        seen.add(Source("forecast-events", 0, 1, 0, 0)),
    ]

    assert news == [False, True, True, False, True]
    assert list(seen) == [Source("forecast-events", 0, 1, 0, 0), Source("forecast-events", 1, 0, 2, 0)]
