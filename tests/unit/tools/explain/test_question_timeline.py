from typing import Any

import pytest

from stream_peer.events.feed_log import ExpertChanged, OutcomeRevealed, Round, RoundWithdrawn
from stream_peer.tools.explain.question_timeline import LifeStep, QuestionProbe, RevisionCounter
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.run import THE_END
from tests.unit.questions.question_log import DAY, HOUR, T0, event, forecast, question, resolution
from tests.unit.tools.replay.file_lines import lines, season

CLOSE = T0 + 9 * DAY
LIFE = [
    question(at=T0, opens_at=T0 + DAY, closes_at=CLOSE, feed="econ"),
    *(forecast(e, 0.7, T0 + 2 * DAY) for e in ("ann", "bob", "cleo")),
    question("other", at=T0 + 8 * DAY + HOUR, opens_at=T0 + 8 * DAY, feed="econ"),
    forecast("ann", 0.1, T0 + 3 * DAY),
    question(at=T0 + 9 * DAY, closes_at=T0 + 5 * DAY),
    resolution(1, T0 + 10 * DAY, closed_at=T0 + 5 * DAY),
]


def steps(values: list[bytes], question_id: str = "q", **options: Any) -> list[LifeStep]:
    probe = QuestionProbe(question_id)
    replay([lines(values)], ReplayOptions(**options), probes=[probe])
    return probe.steps()


def test_every_record_stands_in_the_chapter_of_the_line_that_it_names_as_its_cause() -> None:
    told = [(one.arrival.event.place, [type(each.event) for each in one.feed_steps]) for one in steps(LIFE)]

    assert [(place, kinds) for place, kinds in told if kinds] == [
        ("f:5", [Round]),
        ("f:6", [Round]),
        ("f:7", [RoundWithdrawn, Round]),
        ("f:8", [OutcomeRevealed]),
    ]
    for one in steps(LIFE):
        assert all(each.cause and each.cause.event == one.arrival.event for each in one.feed_steps)


def test_what_was_published_bears_the_offset_of_its_record_as_revision() -> None:
    logged = [each for one in steps(LIFE) for each in one.feed_steps]

    assert [each.revision for each in logged] == [0, 1, 2, 3, 4]
    assert [each.answer.revision for each in logged if each.answer] == [0, 1, 2, 3, 4]
    assert [each.mixed.boundary is None for each in logged if each.mixed] == [False, False, True, False, False]


def test_the_moments_of_the_question_are_told_before_and_after_a_line() -> None:
    moved = next(one for one in steps(LIFE) if one.arrival.event.place == "f:7")

    assert moved.before.plan is not None
    assert moved.after.plan is not None
    assert (moved.before.plan.close, moved.after.plan.close) == (CLOSE, T0 + 5 * DAY)
    assert moved.before.clock < moved.after.clock == T0 + 9 * DAY


def test_a_question_that_opens_or_closes_by_the_clock_has_a_chapter_of_that_line_or_of_the_end() -> None:
    values = [*LIFE[:4], question("other", at=T0 + DAY + HOUR, opens_at=T0, feed="econ")]

    places = [one.arrival.event.place for one in steps([LIFE[0], values[-1], *LIFE[1:4]])]

    assert places == ["f:1", "f:2", "f:3", "f:4", "f:5", THE_END]


def test_refused_lines_and_controls_of_the_feed_have_steps() -> None:
    values = [
        *LIFE[:4],
        forecast("ann", 62, T0 + 3 * DAY),
        event("expert", feed="econ", expert_id="bob", at=T0 + 3 * DAY, excluded=True),
        event("expert", feed="elsewhere", expert_id="bob", at=T0 + 3 * DAY, excluded=True),
        LIFE[4],
        event("expert", feed="econ", expert_id="ann", at=T0 + 9 * DAY, excluded=True),
    ]

    told = {one.arrival.event.place: one for one in steps(values)}

    assert [refusal.reason for refusal in told["f:5"].refused] == ["probability-range"]
    assert isinstance(told["f:9"].feed_steps[0].event, ExpertChanged)
    assert "f:7" not in told


@pytest.mark.parametrize("partitions", [2, 5])
def test_over_several_partitions_the_causes_are_those_that_the_records_name_as_well(partitions: int) -> None:
    found = steps(LIFE, partitions=partitions, feed_log_partitions=3)

    logged = [(each, one) for one in found for each in one.feed_steps]
    assert len(logged) == 2
    assert all(each.cause and each.cause.event == one.arrival.event for each, one in logged)


def test_revisions_are_counted_by_question() -> None:
    counter = RevisionCounter()

    replay([lines(LIFE)], write=counter.write)

    assert counter.ranked() == ["q"]
    assert counter.revisions["q"] == 5


def test_questions_with_equally_many_revisions_come_by_name() -> None:
    counter = RevisionCounter()

    replay([lines(season(questions=3))], write=counter.write)

    assert counter.ranked() == ["q000", "q001", "q002"]


def test_what_events_of_a_group_say_of_a_part_stands_in_its_steps() -> None:
    group = {"question_id": "chair", "at": T0 + 2 * DAY}
    values = [
        question("chair", at=T0, opens_at=T0 + DAY, closes_at=CLOSE, options=["Ada", "Bo"]),
        *(event("forecast", expert_id=e, options={"Ada": 0.7, "Bo": 0.3}, **group) for e in ("ann", "bob", "cleo")),
        event("forecast", expert_id="dan", options={"Bo": 0.3}, **group),
        event("resolution", question_id="chair", option="Bo", at=CLOSE + HOUR),
    ]

    told = steps(values, "chair::=Ada")

    said = {expert: p for one in told for expert, p in one.forecasts.items()}
    assert said == {"ann": 0.7, "bob": 0.7, "cleo": 0.7}
    assert [
        each.event.outcome for one in told for each in one.feed_steps if isinstance(each.event, OutcomeRevealed)
    ] == [0]
