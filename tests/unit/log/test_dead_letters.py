from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from stream_peer.log.dead_letters import Refusal, bare, dead_letter, refusal_of, refuse
from stream_peer.log.stage import Effects, LogRecord

REJECTION = RejectedEvent(Reason.NOT_JSON, message="not a JSON object")


def test_a_dead_letter_is_the_record_untouched_with_what_was_wrong_and_where() -> None:
    record = LogRecord(17, 1234, b"\x00\xff", b"{", [("trace", b"1")])

    letter = dead_letter(record, "prod.forecast-events", 3, REJECTION)

    assert (letter.topic, letter.key, letter.value, letter.timestamp) == (topics.DEAD_LETTERS, b"\x00\xff", b"{", 1234)
    assert list(letter.headers) == [
        ("trace", b"1"),
        ("__streams.errors.exception", b"RejectedEvent"),
        ("__streams.errors.message", b"not a JSON object"),
        ("__streams.errors.topic", b"prod.forecast-events"),
        ("__streams.errors.partition", b"3"),
        ("__streams.errors.offset", b"17"),
        ("stream-peer-reason", b"not-json"),
    ]


def test_a_dead_letter_stays_far_below_the_limit_of_the_broker() -> None:
    big = b"x" * 900_000
    for headers in ([("big", big)], [("", b"")] * 480_000):  # each empty header takes two bytes
        record = LogRecord(0, 0, big, big, headers)

        letter = dead_letter(record, "t", 0, RejectedEvent(Reason.TOO_LARGE, message="y" * 5_000))

        assert len(letter.key or b"") == len(letter.value or b"") == 65_536
        assert sum(len(name) + len(value) for name, value in letter.headers) < 2_000
        assert len(letter.headers) < 10


def test_a_tombstone_has_a_dead_letter_without_payload() -> None:
    assert dead_letter(LogRecord(0, 0, None, None), "t", 0, REJECTION).value is None


def test_a_refusal_is_counted_by_reason() -> None:
    effects = Effects()

    refuse(LogRecord(0, 0, None, b"{"), "t", 0, REJECTION, effects)

    assert effects.counts == {("dead-letter", "not-json"): 1}
    assert len(effects.outputs) == 1


def test_what_was_written_is_read_again() -> None:
    letter = dead_letter(LogRecord(17, 0, None, b"{", [("__streams.errors.offset", b"3")]), "t", 0, REJECTION)

    assert refusal_of(letter.headers) == Refusal("not-json", "not a JSON object", 17)


def test_a_letter_of_somebody_else_is_read_as_far_as_it_goes() -> None:
    assert refusal_of([("__streams.errors.offset", b"x")]) == Refusal("unknown", "", -1)


def test_a_bare_record_gives_a_letter_that_says_why_and_where_and_nothing_of_what() -> None:
    record = LogRecord(17, 1234, b"key", b"value", [("trace", b"1")])

    letter = dead_letter(bare(record), "t", 3, RejectedEvent(Reason.FORGOTTEN, message="asked to be forgotten"))

    assert (letter.key, letter.value, letter.timestamp) == (None, None, 1234)
    assert refusal_of(letter.headers) == Refusal("forgotten", "asked to be forgotten", 17)
    assert "trace" not in dict(letter.headers)
