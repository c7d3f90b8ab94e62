import re
from collections import Counter

import msgspec
import pytest

from stream_peer.events.outputs import Certificate
from stream_peer.lab.methods.replayed import replayed_method
from stream_peer.log.stage import Warned
from stream_peer.settings.feed.document import with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.tools.replay.file_events import FileOrder, RevealedShare
from stream_peer.tools.replay.files import FileLine
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.summary import SHOWN_MOMENTS, replay_summary, told_when
from tests.unit.questions.question_log import T0, resolution
from tests.unit.tools.replay.file_lines import lines, season


def test_the_summary_says_whom_to_listen_to_and_how_well_it_went() -> None:
    text = replay_summary(replay([lines(season())]), experts=3)

    assert text.startswith("480 events up to 2026-03-11T15:00:00Z\n\nfeed econ: ")
    for part in ("(40 counted, 40 resolved)", "measured on outcomes", "Brier score  mix 0.", "best expert", "2 more"):
        assert part in text


def test_without_outcomes_it_says_so() -> None:
    text = replay_summary(replay([lines(season())], ReplayOptions(reveal=RevealedShare(0.0))))

    assert "Brier score  no outcome was revealed" in text
    assert "resolved)" in text


def test_refused_lines_are_counted_by_reason_and_shown_with_their_place() -> None:
    text = replay_summary(replay([[FileLine("bad.jsonl:7", b"{"), FileLine("bad.jsonl:8", resolution(0.49, T0))]]))

    assert "2 refused: 1 not-json, 1 outcome-unknown" in text
    assert "bad.jsonl:7: not a JSON object" in text
    assert "there are no weights" in text


def test_outcomes_of_unknown_questions_are_mentioned() -> None:
    assert "1 resolution came before" in replay_summary(replay([lines([resolution(1, T0)])]))


def test_numbers_read_as_a_person_would_write_them() -> None:
    text = replay_summary(replay([lines(season())]))

    assert "on 40 questions; smaller is better" in text
    assert re.search(r"certificate  (none|regret at most [0-9,.]+ in all, [0-9.]+ a question)\n", text)


def test_a_bound_above_what_a_loss_can_be_is_told_as_none_yet() -> None:
    few = replay([lines(season(questions=1))])
    weights = few.history.feeds["econ"].weights
    assert weights is not None
    bound = Certificate(regret_at_most=1.52, confidence=0.95)
    few.history.feeds["econ"].moments[-1] = msgspec.structs.replace(weights, certificate=bound)

    assert "certificate  none yet: the bound is above 1 a question, the largest loss\n" in replay_summary(few)


def test_experts_with_weight_and_a_skill_below_zero_have_it_explained() -> None:
    text = replay_summary(replay([lines(season())]), experts=5)

    assert "    skill below 0: worse than the plain mean of all, which few single experts beat; mix compares" in text


def test_what_is_not_as_built_in_stands_below_its_feed() -> None:
    chosen = {"loss": "log", "method": {"learner": "top-committee", "committee": 2}}
    document = {"feeds": {"econ": chosen}}

    plain, other = (
        replay_summary(replay([lines(season())], ReplayOptions(document=chosen_for, method_of=replayed_method)))
        for chosen_for in (with_method({}, NEWEST_METHOD), with_method(document, NEWEST_METHOD))
    )

    assert "settings" not in plain
    assert "  settings     loss=log, method.learner=top-committee, method.committee=2\n" in other


def test_it_says_how_the_lines_stood_and_which_may_have_used_an_outcome() -> None:
    quiet = replay([lines(season(questions=1))])

    late = replay_summary(quiet._replace(orders=[FileOrder(0, ("f:9",))]))
    unordered = replay_summary(quiet._replace(orders=[FileOrder(1200, tuple("abcd"))]))

    assert "below" not in replay_summary(quiet)
    assert "1 forecast stands below the outcome of their question: they come late, and no score uses" in late
    assert "1,200 lines stand below one of a later time: all were put in order of time\n" in unordered
    assert "4 forecasts stand below the outcome of their question: only their own times say" in unordered
    assert "(a, b, c and 1 more)" in unordered


def test_warnings_are_counted_by_code_and_the_first_shown_with_whose_they_are() -> None:
    quiet = replay([lines(season(questions=1))])
    told = [
        Warned("contradictory-times", "econ", "q7", "closes before it opens"),
        Warned("input-lost", "econ", "", "3 records are gone"),
    ]

    text = replay_summary(quiet._replace(warned=Counter({"input-lost": 1, "contradictory-times": 12}), warnings=told))

    assert "warning" not in replay_summary(quiet)
    assert "13 warnings: 12 contradictory-times, 1 input-lost\n" in text
    assert "  question q7: closes before it opens\n  feed econ: 3 records are gone\n" in text


@pytest.mark.case("C19")
def test_experts_have_coverage_difficulty_and_skill_beside_their_loss_within_a_hundred_columns() -> None:
    text = replay_summary(replay([lines(season())]), experts=5)

    head = next(line for line in text.splitlines() if line.startswith("  expert "))
    rows = text.splitlines()[text.splitlines().index(head) + 1 :][:5]
    assert head.split() == [
        "expert",
        "mix",
        "select",
        "questions",
        "coverage",
        "peer",
        "loss",
        "loss",
        "difficulty",
        "skill",
    ]
    assert [len(row) for row in rows] == [len(head)] * 5
    assert len(head) <= 100
    assert [row.split()[4] for row in rows] == ["1.00"] * 5
    difficulties = {row.split()[7] for row in rows}
    assert len(difficulties) == 1
    for row in rows:
        loss, difficulty, skill = (float(cell) for cell in row.split()[-3:])
        assert skill == pytest.approx(1 - loss / difficulty, abs=0.02)


def test_the_mix_is_told_how_well_it_is_calibrated_once_there_are_outcomes() -> None:
    options = (ReplayOptions(reveal=at) for at in (None, RevealedShare(0.0)))
    known, unknown = (replay_summary(replay([lines(season())], chosen)) for chosen in options)

    terms = r"miscalibration 0\.\d{4}, discrimination 0\.\d{4}, uncertainty 0\.\d{4}; log score 0\.\d{4}"
    assert re.search(rf"  calibration  mix {terms}\n", known)
    assert "calibration" not in unknown
    assert re.search(r"  -      -$", unknown, re.MULTILINE)


def test_moments_run_from_the_first_weights_to_the_last() -> None:
    result = replay([[FileLine("", line) for line in season()]])
    feed = result.history.feeds["econ"]

    lines = list(told_when(feed))

    assert lines[0] == "feed econ: what would have been known when"
    told = [line for line in lines if "; mix " in line]
    assert len(told) == SHOWN_MOMENTS
    assert told[0].split()[0] == feed.moments[0].at[:10]
    assert told[-1].split()[0] == feed.moments[-1].at[:10]
    assert "40 questions, 40 resolved" in told[-1]


def test_the_lead_of_the_mix_is_that_of_summed_scores_up_to_the_end() -> None:
    result = replay([[FileLine("", line) for line in season()]])
    feed = result.history.feeds["econ"]
    gains, total = [], 0.0
    for one in feed.resolved():
        total += (one.forecast.mean - one.outcome) ** 2 - (one.forecast.mix - one.outcome) ** 2
        gains.append(total)
    behind = max((number for number, gain in enumerate(gains, 1) if gain <= 0.0), default=0)

    last = list(told_when(feed))[-1]

    expected = f"number {behind + 1} of 40" if behind < 40 else "was not ahead of the plain mean after 40"
    assert expected in last
