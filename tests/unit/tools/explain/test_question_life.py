from pathlib import Path
from typing import Any

from stream_peer.tools.explain.question_life import QuestionLife, narrate
from stream_peer.tools.explain.question_timeline import QuestionProbe
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.unit.questions.question_log import DAY, HOUR, T0, event, forecast, question, resolution
from tests.unit.tools.explain.test_question_timeline import CLOSE, LIFE
from tests.unit.tools.replay.file_lines import lines

THREE = ("ann", "bob", "cleo")
LATER = question("other", at=CLOSE + HOUR, opens_at=T0, feed="econ")
"""By it, time passes the close."""
OPEN = [question(at=T0, opens_at=T0, closes_at=CLOSE, feed="econ"), *(forecast(e, 0.7, T0 + HOUR) for e in THREE)]


def told(values: list[bytes], **options: Any) -> QuestionLife:
    probe = QuestionProbe("q")
    replay([lines(values)], ReplayOptions(**options), probes=[probe])
    return narrate("q", probe.steps())


def text(found: QuestionLife) -> str:
    steps = [line for step in found.steps for line in (step.heading, *step.items)]
    return "\n".join([found.title, *found.opening, *steps, *found.ending])


def of(found: QuestionLife, start: str) -> tuple[str, ...]:
    """What came of the step whose heading begins so."""
    (items,) = [step.items for step in found.steps if step.heading.startswith(start)]
    return items


def test_a_revision_says_that_a_late_forecast_caused_it() -> None:
    items = of(told(LIFE), "ann says 0.10: dated 4 Mar 12:00, it arrives only now (line 6)")

    assert items[0] == (
        "The round of 9 Mar 12:00 is revised, because a forecast of ann dated 4 Mar 12:00 arrived on 9 Mar 13:00: "
        "ann 0.70 → 0.10 (revision 1 replaces 0)"
    )


def test_a_part_of_a_group_is_told_with_its_coherent_forecast_beside_its_own() -> None:
    names = {"Ada": 0.9, "Bo": 0.5}
    values = [
        question("chair", at=T0, opens_at=T0, closes_at=CLOSE, options=[*names]),
        *(event("forecast", question_id="chair", expert_id=one, options=names, at=T0 + HOUR) for one in THREE),
        event("resolution", question_id="chair", option="Bo", at=CLOSE + HOUR),
    ]
    probe = QuestionProbe("chair::=Ada")
    replay([lines(values)], ReplayOptions(), probes=[probe])

    found = text(narrate("chair::=Ada", probe.steps()))

    assert "A part of group chair of feed" in found
    assert "Coherent with the other parts of chair: mixed forecast 0.70, stretched 0.70; by itself 0.90" in found
    assert "Coherent" not in text(told(LIFE))


def test_rounds_go_because_the_close_moved_and_the_outcome_leaves_the_forecast_as_it_was() -> None:
    found = told(LIFE)

    assert of(found, "The question is edited (line 7)")[:2] == (
        "The close moves from 10 Mar 12:00 to 6 Mar 12:00",
        "The question was open; it is closed now",
    )
    assert "withdrawn, because the close moved (revision 2)" in of(found, "The question is edited")[2]
    resolved = of(found, "The question is resolved: yes, closed at 6 Mar 12:00 (line 8)")
    assert "Published as resolved: outcome yes; it was scored" in resolved
    assert any(item.startswith("The latest round is unchanged: mixed forecast 0.50") for item in resolved)


def test_an_outcome_that_is_taken_back_leaves_every_weight_as_it_was() -> None:
    told_then = [resolution(1, CLOSE + HOUR), resolution("open", CLOSE + 2 * HOUR), resolution(0, CLOSE + DAY)]
    values = [*OPEN, LATER, *told_then]

    found = told(values)

    assert any("to the last bit" in item for item in of(found, "The resolution is retracted (line 7)"))
    assert not any("to the last bit" in item for item in of(found, "The question is resolved: no"))
    assert "Unchanged by outcomes: the mixed forecast 0.70" in found.ending[-1]


def test_an_annulled_question_counts_for_nothing_until_that_is_taken_back() -> None:
    annulled = [*OPEN, LATER, resolution(None, CLOSE + HOUR), resolution("open", CLOSE + DAY)]

    found = text(told(annulled))

    assert "The question is annulled (line 6)" in found
    assert "Published as annulled: it counts for nothing; it was scored" in found
    assert "Published as scored: no outcome is known; it was annulled" in found


def test_forecasts_that_wait_are_told_together_and_those_before_the_opening_as_such() -> None:
    values = [question(at=T0, opens_at=T0 + 2 * DAY, feed="econ"), *(forecast(e, 0.7, T0 + DAY) for e in THREE[:2])]
    values.append(forecast("cleo", 0.7, T0 + 2 * DAY - HOUR))

    found = told([*values, forecast("ann", None, T0 + 3 * DAY), forecast("bob", 0.4, T0 + 4 * DAY)])

    headings = [step.heading for step in found.steps]
    assert headings[1] == (
        "Forecasts wait for the opening: ann 0.70, bob 0.70 and cleo 0.70 on 3 Mar (line 2 to line 4)"
    )
    assert "ann withdraws (line 5)" in headings[2]


def test_what_was_refused_is_told_with_its_reason() -> None:
    found = told([*OPEN, forecast("ann", 62, T0 + DAY)])

    assert of(found, "Refused: probability: Expected `float` <= 1.0, got 62") == ()
    assert "Refused: line 5 (probability-range)." in found.ending


def test_a_forecast_after_the_close_is_said_to_count_in_no_round() -> None:
    found = text(told([*OPEN, forecast("ann", 0.2, CLOSE + HOUR)]))

    assert "ann says 0.20: after the close: it counts in no round unless the close moves (line 5)" in found


def test_exclusion_team_and_forgetting_are_told_where_the_expert_spoke_of_the_question() -> None:
    def control(number: int, expert: str, **fields: Any) -> bytes:
        return event("expert", feed="econ", expert_id=expert, at=T0 + (7 + number) * DAY + HOUR, **fields)

    values = [
        *OPEN,
        forecast("dora", 0.2, T0 + 7 * DAY + HOUR),
        control(0, "dora", excluded=True),
        control(0, "stranger", excluded=True),
        control(1, "dora", excluded=False, team="panel"),
        control(1, "ann", rename="anna"),
        control(1, "bob", forget=True),
    ]

    found = text(told(values))

    assert "dora is excluded, from now on (line 6)\nIn the rounds scored from now on dora is absent" in found
    assert "dora is included again and belongs to team panel, from now on (line 8)" in found
    assert "ann is renamed anna (line 9)\nWhat anna says from now on counts for ann" in found
    assert "bob is erased (line 10)\nThe feed is rebuilt from its log without bob" in found
    assert "stranger" not in found


def test_a_question_that_moves_to_another_feed_says_so() -> None:
    found = text(told([*OPEN, LATER, question(at=CLOSE + DAY, feed="other")]))

    assert "The question belongs to feed other now" in found


def test_a_question_of_a_feed_that_is_deleted_is_published_no_more() -> None:
    ended = told([*OPEN, LATER, event("feed", feed="econ", delete=True)])
    again = told([*OPEN, LATER, event("feed", feed="econ", delete=True), *OPEN])

    assert "The feed is deleted" in text(ended)
    assert ended.ending[0] == "Its feed was deleted: nothing of it is published now."
    assert again.ending[0].startswith("Published last: ")


def test_a_late_outcome_of_a_question_whose_history_is_gone_is_told() -> None:
    later = [question("other", at=CLOSE + n * DAY, opens_at=T0, feed="econ") for n in (1, 3)]
    document = {"defaults": {"history_for": "1d"}}

    found = told([*OPEN, *later, resolution(1, CLOSE + 9 * DAY)], document=document)

    assert of(found, "Time passes (line 6)") == ("The question was closed; its history is deleted",)
    assert "Published as resolved: outcome yes; it was scored" in of(found, "The question is resolved: yes (line 7)")


def test_what_is_wrong_with_its_times_is_told_where_it_shows() -> None:
    found = text(told([*OPEN, question(at=T0 + DAY, closes_at=T0 - DAY)]))

    assert "The question is edited (line 5)" in found
    assert "closes_at" in found


def test_a_question_without_rounds_was_never_published() -> None:
    assert told([question(at=T0, opens_at=T0)]).ending == ("Nothing of it was published.",)


def test_lines_of_several_files_are_told_with_the_name_of_their_file() -> None:
    probe = QuestionProbe("q")
    replay([lines(OPEN, "a.jsonl"), lines([resolution(1, CLOSE + HOUR)], "b.jsonl")], probes=[probe])

    found = narrate("q", probe.steps())

    assert "from a.jsonl and b.jsonl" in found.opening[0]
    assert any("(line 1 of b.jsonl)" in step.heading for step in found.steps)


EXAMPLE = "examples/life-of-a-question.jsonl"
EXPECTED = [
    "The question is announced: it opens 4 May 12:00 and closes 15 Jun 12:00",
    "Forecasts wait for the opening: amara 0.35, amara 0.42 on 28 Apr",
    "The question was scheduled; it is open now",
    "because a forecast of farid dated 10 May 20:00 arrived on 13 May",
    "bruno leaves",
    "llm-a belongs to team llm-panel",
    "got 62 (percent? convert at the source)",
    "The close moves from 15 Jun 12:00 to 17 Jun 18:00",
    "after the close: it counts in no round",
    "The question is resolved: yes",
    "The resolution is retracted",
    "to the last bit",
    "The question is resolved: no",
    "closed at 10 Jun 12:00",
    "The rounds of 15 Jun 12:00 and 17 Jun 18:00 are withdrawn, because the close moved",
    "it reopens",
    "chidi is excluded",
    "The question is annulled",
    "Published as scored: no outcome is known; it was annulled",
    "chidi is included again",
    "farid is erased",
]


def test_the_example_shows_all_that_can_become_of_a_question(repository: Path) -> None:
    probe = QuestionProbe("fed-cut-june-2026")
    replay([read_lines(repository / EXAMPLE)], probes=[probe])

    found = text(narrate("fed-cut-june-2026", probe.steps()))

    missing = [part for part in EXPECTED if part not in found]
    assert missing == []
    assert (repository / EXAMPLE).stat().st_size < 60_000
