"""The feed-log's records survive their bytes, and their sources can be compared."""

import msgspec
import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    BlockNamed,
    ExpertChanged,
    FeedChanged,
    NamedBlock,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    SettingsChanged,
    Source,
    decode_feed_log,
    encode_feed_log,
    read_feed_log,
)
from stream_peer.events.rejections import Reason

SRC = Source("forecast-events", 3, 0, 4711, 2)
RECORDS: list[AnyFeedLogRecord] = [
    Round(src=SRC, feed="f", question_id="q", boundary=1, experts=["a", "b"], probabilities=[0.1, 1.0]),
    Round(
        src=SRC,
        feed="f",
        question_id="q",
        boundary=1,
        final=True,
        weight=0.25,
        experts=["a"],
        probabilities=[0.0],
        part=1,
        parts=2,
    ),
    RoundWithdrawn(src=SRC, feed="f", question_id="q", boundary=1),
    *(OutcomeRevealed(src=SRC, feed="f", question_id="q", outcome=outcome) for outcome in (0, 1)),
    OutcomeRevealed(src=SRC, feed="f", question_id="q", outcome="annulled"),
    OutcomeRevealed(src=SRC, feed="f", question_id="q", outcome="open"),
    ExpertChanged(src=SRC, feed="f", expert_id="e", team="t", excluded=True),
    FeedChanged(src=SRC, feed="f", reset=True),
    BlockNamed(
        src=SRC,
        feed="f",
        questions=75,
        blocks=[NamedBlock(experts=["a", "b"], agreement=0.9, expected=0.2, questions=60)],
    ),
    SettingsChanged(src=SRC, document={"defaults": {"grace": "1m"}}, hash="9f3c0d1e"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was(record: AnyFeedLogRecord) -> None:
    assert decode_feed_log(encode_feed_log(record)) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_equal_records_have_equal_bytes(record: AnyFeedLogRecord) -> None:
    once = encode_feed_log(record)

    assert encode_feed_log(decode_feed_log(once)) == once


def test_probabilities_keep_every_bit() -> None:
    probabilities = [0.1, 1 / 3, 5e-324, 1 - 2**-53]
    record = Round(src=SRC, feed="f", question_id="q", boundary=1, experts=list("abcd"), probabilities=probabilities)

    back = decode_feed_log(encode_feed_log(record))

    assert isinstance(back, Round)
    assert back.probabilities == probabilities


def test_sources_of_one_partition_are_ordered_by_offset_and_index() -> None:
    in_order = [Source("t", 0, 0, 9, 0), Source("t", 0, 0, 9, 1), Source("t", 0, 0, 10, 0)]

    assert sorted(in_order, key=lambda source: source.position) == in_order
    assert {source.place for source in in_order} == {("t", 0)}


def test_a_round_whose_experts_and_probabilities_do_not_fit_is_refused() -> None:
    whole = RECORDS[0]
    for changes, reason in (
        ({"experts": ["b", "a"]}, Reason.WRONG_TYPE),
        ({"experts": ["a", "a"]}, Reason.WRONG_TYPE),
        ({"probabilities": [0.1]}, Reason.WRONG_TYPE),
        ({"probabilities": [0.1, 1.5]}, Reason.PROBABILITY_RANGE),
    ):
        with pytest.raises(RejectedEvent) as refused:
            read_feed_log(encode_feed_log(msgspec.structs.replace(whole, **changes)))
        assert refused.value.reason == reason

    assert read_feed_log(encode_feed_log(whole)) == whole


@pytest.mark.parametrize(
    ("value", "reason"), [(None, "empty"), (b"", "empty"), (b"\xff", "not-json"), (b"[]", "wrong-type")]
)
def test_what_is_no_record_is_refused(value: bytes | None, reason: str) -> None:
    with pytest.raises(RejectedEvent) as refused:
        read_feed_log(value)

    assert refused.value.reason == reason
