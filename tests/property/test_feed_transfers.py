"""A feed that moves goes on as if it had stayed, whatever happened before and after, and wherever between."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from stream_peer.events.feed_log import AnyFeedLogRecord, FeedLogRecord, Source, encode_feed_log
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.questions.stage import QuestionStage
from stream_peer.tools.transfer.feed_export import StageState, questions_of
from stream_peer.tools.transfer.feed_file import Line
from stream_peer.tools.transfer.feed_import import question_events
from stream_peer.tools.transfer.reshape import Pseudonyms, all_with_pseudonyms
from tests.feed_histories import carry_out_rebuilds, expert, folded, log_of, round_of, stage
from tests.feed_transfers import import_log, lines_of
from tests.property import test_feed_stage as of_feeds
from tests.property import test_question_stage as of_questions
from tests.unit.questions.question_log import DAY, HOUR, T0, book, broadcast, forecast, records, signed, tick
from tests.unit.questions.question_log import stage as question_stage
from tests.unit.questions.test_moved import header

membership = st.builds(
    lambda who, team, excluded: expert(who, team=team, excluded=excluded),
    st.sampled_from(of_feeds.EXPERTS),
    st.sampled_from([None, "red", "blue"]),
    st.booleans(),
)
SHADOWS = [{"name": "plain", "stretch": False}, {"name": "eager", "mixer": {"peer_rate": 0.9}}]
NAMES = Pseudonyms(b"a key of some length")


def every_record(feed_stage: FeedStage, log: Sequence[LogRecord]) -> list[Any]:
    """All outputs about feed f, without revisions."""
    effects, before = Effects(), list[LogRecord]()
    for record in log:
        feed_stage.step(record, effects)
        before.append(record)
        carry_out_rebuilds(feed_stage, before)
        feed_stage.publish(effects)
    decoded = [(output.topic, output.key, msgspec.json.decode(output.value or b"null")) for output in effects.outputs]
    return [(topic, key, _without_revisions(value)) for topic, key, value in decoded if value and value["feed"] == "f"]


def neighbours(count: int) -> list[LogRecord]:
    """Records of another feed of the partition, of a year later."""
    rounds = [round_of(f"g{n}", {"ann": 0.3, "bob": 0.8}, feed="g") for n in range(count)]
    return [
        record._replace(
            timestamp=record.timestamp + 400 * DAY,
            value=encode_feed_log(
                msgspec.structs.replace(event, src=Source("forecast-events", 7, 0, record.offset, 0))
            ),
        )
        for record, event in zip(log_of(rounds), rounds, strict=True)
    ]


def _without_revisions(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_revisions(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_revisions(one) for name, one in value.items() if name != "revision"}
    return value


@settings(deadline=None)
@given(
    past=st.lists(st.one_of(of_feeds.histories.map(tuple), membership.map(lambda one: (one,))), min_size=1, max_size=4),
    future=of_feeds.histories,
    method=of_feeds.methods,
    limits=st.sampled_from([{}, {"memory": 5}, {"ledger_max": 2, "shadows": SHADOWS}, {"ledger_for": "5s"}]),
)
def test_a_feed_that_moves_among_others_says_what_it_has_said_and_would_have_said(
    past: list[tuple[FeedLogRecord, ...]],
    future: list[FeedLogRecord],
    method: dict[str, str],
    limits: dict[str, Any],
) -> None:
    log = log_of([event for part in past for event in part])
    there, _ = folded(log, stage(**method, **limits))
    assume("f" in there.feeds.by_name)
    moved = import_log(lines_of(there, log))
    more = log_of(future, len(log))
    mixed = [record for pair in zip(neighbours(len(moved)), moved, strict=True) for record in pair]
    here = [record._replace(offset=offset) for offset, record in enumerate([*mixed, *more])]

    assert every_record(stage(**method, **limits), here) == every_record(stage(**method, **limits), [*log, *more])


@settings(deadline=None)
@given(past=of_feeds.histories, cuts=st.lists(st.integers(0, 60), max_size=3), method=of_feeds.methods)
def test_an_import_that_is_tried_again_adds_nothing_twice(
    past: list[FeedLogRecord], cuts: list[int], method: dict[str, str]
) -> None:
    log = log_of(past)
    there, _ = folded(log, stage(**method))
    assume("f" in there.feeds.by_name)
    moved = import_log(lines_of(there, log))
    attempts = [record for cut in cuts for record in moved[:cut]]
    again = [record._replace(offset=offset) for offset, record in enumerate([*attempts, *moved])]

    once, more = folded(moved, stage(**method))[0], folded(again, stage(**method))[0]

    assert {name: one.buckets.to_bytes(9) for name, one in once.feeds.by_name.items()} == {
        name: one.buckets.to_bytes(9) for name, one in more.feeds.by_name.items()
    }
    assert once.agrees()


def told(stage_: QuestionStage, log: of_questions.Events, start: int) -> list[AnyFeedLogRecord]:
    nowhere = Source("t", 0, 0, 0, 0)
    return [msgspec.structs.replace(record, src=nowhere) for record in records(of_questions.fold(stage_, log, start))]


def move(there: QuestionStage, here: QuestionStage, now: Milliseconds, *, pseudonyms: bool = False) -> list[Any]:
    """Import all questions of one stage into another; what that caused."""
    snapshot, effects = there.snapshot(), Effects()
    entries = {key: value for key, value in snapshot.entries.items() if value is not None}
    for number, feed in enumerate(("default", *of_questions.FEEDS)):
        found: list[Line] = list(questions_of(feed, StageState(0, 0, snapshot.head, entries)).lines)
        lines = [header(feed, settings={"defaults": of_questions.HISTORICAL}), *found]
        if pseudonyms:
            lines = list(all_with_pseudonyms(lines, NAMES))
        for event in question_events(lines, feed, 1):
            value = msgspec.json.encode(event)
            here.step(LogRecord(number, now, b"key", value, signed(value, broadcast(number))), effects)
    assert not effects.counts["dead-letter", "import-refused"]
    return effects.outputs


@pytest.mark.parametrize("defaults", [of_questions.LIVE, of_questions.HISTORICAL], ids=["live", "historical"])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=of_questions.logs(), data=st.data())
def test_what_questions_emit_after_the_move_is_what_they_would_have_emitted(
    defaults: dict[str, Any], log: of_questions.Events, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(log)))
    there, here = question_stage(book(**defaults)), question_stage(book(**defaults))
    of_questions.fold(there, log[:cut])
    assume(there.clock)

    assert move(there, here, log[cut - 1][0]) == []
    assume(here.clock == there.clock)  # a partition without questions tells no time
    assert told(here, log[cut:], 100 + cut) == told(there, log[cut:], cut)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=of_questions.logs(), cut=st.integers(1, 42))
@example(
    log=[
        (T0 + 32 * HOUR, forecast("ann", 0.0, T0, "q")),  # later than the built-in limit
        (T0 + 3 * DAY, tick(T0 + 3 * DAY)),
    ],
    cut=2,
)
def test_pseudonyms_change_nothing_that_was_emitted(log: of_questions.Events, cut: int) -> None:
    there, here = (question_stage(book(**of_questions.HISTORICAL)) for _ in range(2))
    of_questions.fold(there, log[:cut])

    assert move(there, here, log[:cut][-1][0], pseudonyms=True) == []
