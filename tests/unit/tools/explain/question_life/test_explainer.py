from typing import Any

import pytest

from stream_peer.events.feed_log import ExpertChanged, OutcomeRevealed, Round, RoundWithdrawn
from stream_peer.tools.explain.question_life.explainer import Chapter, Explainer
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.run import THE_END
from tests.unit.questions.question_log import DAY, HOUR, T0, event, forecast, question, resolution
from tests.unit.tools.replay.file_lines import lines

CLOSE = T0 + 9 * DAY
LIFE = [
    question(at=T0, opens_at=T0 + DAY, closes_at=CLOSE, feed="econ"),
    *(forecast(e, 0.7, T0 + 2 * DAY) for e in ("ann", "bob", "cleo")),
    question("other", at=T0 + 8 * DAY + HOUR, opens_at=T0 + 8 * DAY, feed="econ"),
    forecast("ann", 0.1, T0 + 3 * DAY),
    question(at=T0 + 9 * DAY, closes_at=T0 + 5 * DAY),
    resolution(1, T0 + 10 * DAY, closed_at=T0 + 5 * DAY),
]


def chapters(values: list[bytes], question_id: str = "q", **options: Any) -> list[Chapter]:
    explainer = Explainer(question_id)
    replay([lines(values)], ReplayOptions(**options), witness=explainer)
    return explainer.chapters()


def test_every_record_stands_in_the_chapter_of_the_line_that_it_names_as_its_cause() -> None:
    told = [(one.arrival.event.place, [type(logged.record) for logged in one.logged]) for one in chapters(LIFE)]

    assert [(place, kinds) for place, kinds in told if kinds] == [
        ("f:5", [Round]),
        ("f:6", [Round]),
        ("f:7", [RoundWithdrawn, Round]),
        ("f:8", [OutcomeRevealed]),
    ]
    for one in chapters(LIFE):
        assert all(logged.cause and logged.cause.event == one.arrival.event for logged in one.logged)


def test_what_was_published_bears_the_offset_of_its_record_as_revision() -> None:
    logged = [each for one in chapters(LIFE) for each in one.logged]

    assert [each.revision for each in logged] == [0, 1, 2, 3, 4]
    assert [each.answer.revision for each in logged if each.answer] == [0, 1, 2, 3, 4]
    assert [each.mixed.boundary is None for each in logged if each.mixed] == [False, False, True, False, False]


def test_the_moments_of_the_question_are_told_before_and_after_a_line() -> None:
    moved = next(one for one in chapters(LIFE) if one.arrival.event.place == "f:7")

    assert moved.before.plan is not None
    assert moved.after.plan is not None
    assert (moved.before.plan.close, moved.after.plan.close) == (CLOSE, T0 + 5 * DAY)
    assert moved.before.clock < moved.after.clock == T0 + 9 * DAY


def test_a_question_that_opens_or_closes_by_the_clock_has_a_chapter_of_that_line_or_of_the_end() -> None:
    values = [*LIFE[:4], question("other", at=T0 + DAY + HOUR, opens_at=T0, feed="econ")]

    places = [one.arrival.event.place for one in chapters([LIFE[0], values[-1], *LIFE[1:4]])]

    assert places == ["f:1", "f:2", "f:3", "f:4", "f:5", THE_END]


def test_refused_lines_and_controls_of_the_feed_have_chapters() -> None:
    values = [
        *LIFE[:4],
        forecast("ann", 62, T0 + 3 * DAY),
        event("expert", feed="econ", expert_id="bob", at=T0 + 3 * DAY, excluded=True),
        event("expert", feed="elsewhere", expert_id="bob", at=T0 + 3 * DAY, excluded=True),
        LIFE[4],
        event("expert", feed="econ", expert_id="ann", at=T0 + 9 * DAY, excluded=True),
    ]

    told = {one.arrival.event.place: one for one in chapters(values)}

    assert [refusal.reason for refusal in told["f:5"].refused] == ["probability-range"]
    assert isinstance(told["f:9"].logged[0].record, ExpertChanged)
    assert "f:7" not in told


@pytest.mark.parametrize("partitions", [2, 5])
def test_over_several_partitions_the_causes_are_those_that_the_records_name_as_well(partitions: int) -> None:
    found = chapters(LIFE, partitions=partitions, feed_log_partitions=3)

    logged = [(each, one) for one in found for each in one.logged]
    assert len(logged) == 2
    assert all(each.cause and each.cause.event == one.arrival.event for each, one in logged)
