"""A feed that moves goes on as if it had stayed, whatever happened before and after, and wherever between."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from stream_peer.events.feed_log import AnyFeedLogRecord, FeedLogRecord, Source
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.portable import Line
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.log.transfers import transfer_of
from stream_peer.questions.stage import QuestionStage
from stream_peer.tools.transfer.pseudonyms import Pseudonyms
from stream_peer.tools.transfer.reshape import with_pseudonyms
from stream_peer.tools.transfer.stored_feed import StageState, questions_of
from tests.feed_histories import expert, folded, log_of, stage
from tests.feed_transfers import import_log, lines_of
from tests.property import test_feed_stage as of_feeds
from tests.property import test_question_stage as of_questions
from tests.unit.questions.question_log import DAY, HOUR, T0, book, broadcast, forecast, records, signed, tick
from tests.unit.questions.question_log import stage as question_stage
from tests.unit.questions.test_imports import header

membership = st.builds(
    lambda who, team, excluded: expert(who, team=team, excluded=excluded),
    st.sampled_from(of_feeds.EXPERTS),
    st.sampled_from([None, "red", "blue"]),
    st.booleans(),
)
SHADOWS = [{"name": "plain", "stretch": False}, {"name": "eager", "mixer": {"peer_rate": 0.9}}]
NAMES = Pseudonyms(b"a key of some length")


def every_revision(feed_stage: FeedStage, log: Sequence[LogRecord]) -> dict[tuple[str, bytes | None, int], Any]:
    effects = Effects()
    for record in log:
        feed_stage.step(record, effects)
        feed_stage.publish(effects)
    return of_feeds.by_revision(effects.outputs)


@settings(deadline=None)
@given(
    past=st.lists(st.one_of(of_feeds.histories.map(tuple), membership.map(lambda one: (one,))), min_size=1, max_size=4),
    future=of_feeds.histories,
    method=of_feeds.methods,
    first=st.integers(0, 500),
    limits=st.sampled_from([{}, {"memory": 5}, {"ledger_max": 2, "shadows": SHADOWS}]),
)
def test_every_revision_after_the_move_has_the_bytes_that_it_would_have_had(
    past: list[tuple[FeedLogRecord, ...]],
    future: list[FeedLogRecord],
    method: dict[str, str],
    first: int,
    limits: dict[str, Any],
) -> None:
    log = log_of([event for part in past for event in part])
    there, _ = folded(log, stage(**method, **limits))
    assume("f" in there.feeds.by_name)
    imported = import_log(lines_of(there, log[-1].offset), first=first)
    here, effects = folded(imported, stage(**method, **limits))
    more = log_of(future, len(log))
    behind = [record._replace(offset=imported[-1].offset + 1 + n) for n, record in enumerate(more)]

    assert not effects.counts["dead-letter", "import-refused"]
    assert every_revision(here, behind) == every_revision(there, more)
    assert here.agrees()


def told(stage_: QuestionStage, log: of_questions.Events, start: int) -> list[AnyFeedLogRecord]:
    nowhere = Source("t", 0, 0, 0, 0)
    return [msgspec.structs.replace(record, src=nowhere) for record in records(of_questions.fold(stage_, log, start))]


def move(there: QuestionStage, here: QuestionStage, now: Milliseconds, *, pseudonyms: bool = False) -> list[Any]:
    """Import all questions of one stage into another; what that caused."""
    snapshot, effects = there.snapshot(), Effects()
    entries = {key: value for key, value in snapshot.entries.items() if value is not None}
    for number, feed in enumerate(("default", *of_questions.FEEDS)):
        lines: list[Line] = list(questions_of(feed, StageState(0, 0, snapshot.head, entries)).lines)
        if pseudonyms:
            settings_of_all = book(**of_questions.HISTORICAL).default
            lines = [with_pseudonyms(line, NAMES, settings_of_all) for line in lines]
        for event in transfer_of(header(feed), lines, feed, 1):
            if event.partition is not None:
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
