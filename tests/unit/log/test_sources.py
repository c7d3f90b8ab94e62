import pytest

from stream_peer.events.feed_log import Source
from stream_peer.log.sources import SOURCE_HEADER, DedupWatermarks, is_broadcast, source_header, source_of
from stream_peer.log.stage import Headers


def test_the_header_gives_back_the_source() -> None:
    source = Source("control-events", 3, 1, 99, 4)

    assert source_of([("other", b"x"), source_header(source)]) == source


NESTED = b'["control-events",0,0,1,0,' + b"[" * 60_000


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b'["weights",0,0,0,0]', b'{"topic":"forecast-events"}', NESTED])
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
    seen = DedupWatermarks([Source("forecast-events", 0, 0, 5, 0)])

    news = [
        seen.add(Source("forecast-events", 0, 0, 5, 0)),
        seen.add(Source("forecast-events", 0, 0, 5, 1)),
        seen.add(Source("forecast-events", 1, 0, 2, 0)),
        seen.add(Source("forecast-events", 0, 0, 4, 9)),
        seen.add(Source("forecast-events", 0, 1, 0, 0)),
    ]

    assert news == [False, True, True, False, True]
    assert list(seen) == [Source("forecast-events", 0, 1, 0, 0), Source("forecast-events", 1, 0, 2, 0)]


def test_a_later_source_of_the_same_topic_is_ahead() -> None:
    seen = DedupWatermarks([Source("control-events", 0, 7, 5, 0), Source("forecast-events", 0, 7, 5, 0)]).of(
        "control-events"
    )

    ahead = [
        seen.is_ahead_of(Source("control-events", 0, 7, 4, 9)),
        seen.is_ahead_of(Source("control-events", 0, 7, 5, 0)),
        seen.is_ahead_of(Source("control-events", 0, 8, 1, 0)),
        seen.is_ahead_of(Source("control-events", 1, 7, 4, 0)),
        seen.is_ahead_of(Source("forecast-events", 0, 7, 4, 0)),
    ]

    assert ahead == [True, False, False, False, False]


def told(seen: DedupWatermarks, *sources: tuple[int, int]) -> list[bool]:
    """Whether each (generation, offset) is new."""
    return [seen.add(Source("forecast-events", 0, generation, offset, 0)) for generation, offset in sources]


@pytest.mark.case("C29")
def test_a_recreated_topic_is_new_at_lower_offsets_and_what_comes_late_of_the_former_is_a_repeat() -> None:
    seen = DedupWatermarks()

    assert told(seen, (77, 50), (33, 0), (33, 0), (77, 51), (33, 1), (77, 52)) == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert seen.generations("forecast-events") == {0: 33}


@pytest.mark.case("C29")
def test_what_was_seen_of_former_topics_survives_a_restart() -> None:
    seen = DedupWatermarks()
    told(seen, (77, 50), (33, 9), (44, 5))

    restarted = DedupWatermarks(list(seen))

    assert list(restarted) == list(seen)
    assert told(restarted, (77, 99), (33, 99), (44, 5), (44, 6), (55, 0)) == [False, False, False, True, True]


@pytest.mark.case("C26")
def test_a_release_that_does_not_tell_topics_apart_speaks_of_the_present_one() -> None:
    seen = DedupWatermarks()

    assert told(seen, (0, 5), (77, 6), (0, 6), (0, 7), (77, 7), (77, 8)) == [True, True, False, True, False, True]
    assert seen.generations("forecast-events") == {0: 77}
