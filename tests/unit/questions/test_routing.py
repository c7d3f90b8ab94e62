import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import RoundWithdrawn, Source
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.log.signatures import Signatures
from stream_peer.log.sources import source_header, source_of
from stream_peer.log.stage import Headers, LogRecord
from stream_peer.questions.routing import MAX_FORWARDED_BYTES, Routes

HOME = partition_of("q", 8)


def record(offset: int) -> LogRecord:
    return LogRecord(offset, 5, b"k", b"v", [("a", b"b")])


def test_a_question_is_at_home_where_murmur2_of_its_id_says() -> None:
    here, there = Routes(HOME, 8, 4, 0, Signatures()), Routes((HOME + 1) % 8, 8, 4, 0, Signatures())
    forwarded = [source_header(Source("forecast-events", 0, 0, 0, 0))]

    assert (here.is_foreign("q"), there.is_foreign("q")) == (False, True)
    assert (here.is_elsewhere("q", []), there.is_elsewhere("q", [])) == (False, True)
    assert not there.is_elsewhere("q", forwarded)


def test_the_records_of_one_cause_are_numbered_from_zero() -> None:
    routes = Routes(3, 8, 4, 2, Signatures())
    numbers = []
    for offset in (10, 10, 11):
        routes.begin(record(offset))
        source = routes.next_source()
        numbers.append((source.generation, *source.position))

    assert numbers == [(2, 10, 0), (2, 10, 1), (2, 11, 0)]


def test_a_forwarded_record_is_untouched_but_for_its_source() -> None:
    forwarded = Routes((HOME + 1) % 8, 8, 4, 0, Signatures()).forwarded("q", record(10))

    assert (forwarded.key, forwarded.value, forwarded.timestamp, forwarded.partition) == (b"k", b"v", 5, HOME)
    assert forwarded.headers[0] == ("a", b"b")
    assert source_of(forwarded.headers) == Source("forecast-events", (HOME + 1) % 8, 0, 10, 0)


def test_a_feed_log_record_goes_to_its_feed() -> None:
    withdrawn = RoundWithdrawn(src=Source("forecast-events", 0, 0, 0, 0), feed="econ", question_id="q", boundary=1)

    output = Routes(0, 8, 4, 0, Signatures()).to_feed_log(withdrawn, b"{}", record(1))

    assert (output.key, output.partition, output.timestamp) == (b"econ", partition_of("econ", 4), 5)


@pytest.mark.parametrize("headers", [[("zeros", bytes(MAX_FORWARDED_BYTES))], [("", b"")] * 520_000])
def test_what_no_broker_would_take_with_a_header_more_is_refused(headers: Headers) -> None:
    routes = Routes((HOME + 1) % 8, 8, 4, 0, Signatures())
    large = LogRecord(10, 5, b"k", b"v", headers)

    with pytest.raises(RejectedEvent) as refused:
        routes.forwarded("q", large)

    assert refused.value.reason == Reason.RECORD_TOO_LARGE
