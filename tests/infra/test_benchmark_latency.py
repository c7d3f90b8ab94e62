"""Waits are found from logs: of the record that caused a consequence, until the last of what follows from it."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from benchmarks.latency import OUTPUTS, Logs, Span, table, waits
from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, Round, Source, encode_feed_log
from stream_peer.log.changelog import HeadRecord


def record(offset: int, timestamp: int, value: bytes = b"", key: bytes = b"", partition: int = 0) -> Any:
    return SimpleNamespace(partition=partition, offset=offset, timestamp=timestamp, key=key, value=value)


def source(offset: int) -> Source:
    return Source("forecast-events", 0, 0, offset, 0)


def a_round(question: str, offset: int) -> FeedLogRecord:
    return Round(src=source(offset), feed="f", question_id=question, boundary=1, experts=["a"], probabilities=[0.5])


def shown(question: str, timestamp: int, state: str = "scored") -> Any:
    return record(0, timestamp, msgspec.json.encode({"question": question, "state": state, "revision": 1}))


def head(applied: int, timestamp: int) -> Any:
    return record(0, timestamp, msgspec.msgpack.encode(HeadRecord(1, "token", applied, b"")), b"0/head")


@pytest.fixture
def logs() -> Logs:
    told = [
        a_round("one", 0),
        a_round("two", 2),
        OutcomeRevealed(src=source(3), feed="f", question_id="one", outcome=1),
    ]
    feed_log = [record(n, 0, encode_feed_log(one), partition=n) for n, one in enumerate(told)]
    outputs = {topic: [shown("one", 130 + n), shown("two", 320)] for n, topic in enumerate(OUTPUTS)}
    outputs["peer-losses"] += [shown("one", 450, "resolved"), shown("one", 999, "resolved")]
    events = [record(n, at) for n, at in enumerate((100, 200, 300, 400))]
    return Logs(events, feed_log, outputs, [head(1, 210), record(0, 220, key=b"0/q/x"), head(3, 440)])


def test_a_round_ends_with_the_last_of_its_outputs_and_an_outcome_with_the_first_that_has_it(logs: Logs) -> None:
    found = waits(logs, Span(0, 1_000, 1_000), archive_partition=0)

    assert found == {"rounds": [32, 20], "outcomes": [50], "state": [110, 10, 140, 40]}


def test_after_the_rebuild_began_what_shares_its_partition_is_told_apart(logs: Logs) -> None:
    found = waits(logs, Span(0, 250, 1_000), archive_partition=1)

    assert found["rounds"] == [32]
    assert found["rounds, a rebuild in its partition"] == [20]
    assert found["outcomes, a rebuild elsewhere"] == [50]


def test_only_what_was_caused_within_the_span_counts(logs: Logs) -> None:
    found = waits(logs, Span(250, 1_000, 400), archive_partition=0)

    assert found == {"rounds": [20], "outcomes": [], "state": [140]}


def test_the_table_has_a_row_for_all_that_was_waited_for() -> None:
    lines = table({"rounds": [10] * 999 + [400], "outcomes": []}, 0.25)

    assert lines[2] == "| rounds | 1,000 | 10 | 10 | 10 | 400 | 400 |"
    assert lines[-1] == "The worker took 0.25 of a core."
