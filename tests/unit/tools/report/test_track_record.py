import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.numerics.losses import LOG
from stream_peer.tools.replay.history import FeedHistory, ReplayHistory
from stream_peer.tools.report.track_record import FEWEST_CALIBRATED, measured_regret, track_record
from tests.unit.tools.report.sample_history import FEED, add, losses, mixed, sample_history


def told(questions: list[tuple[int, float, dict[str, float]]], drawn: str | None = None) -> FeedHistory:
    """Questions with their outcome, the plain mean and the experts' forecasts."""
    history = ReplayHistory()
    for number, (outcome, mean, forecasts) in enumerate(questions, start=1):
        add(history, topics.MIXED_FORECASTS, mixed(f"q{number}", number, 0.5, mean, outcome, drawn))
        add(history, topics.PEER_LOSSES, losses(f"q{number}", number, forecasts, outcome))
    return history.feeds[FEED]


def test_before_the_first_outcome_there_is_no_record() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q", 1, 0.5, 0.5, None))

    assert track_record(history.feeds[FEED]) is None
    assert measured_regret(history.feeds[FEED]).regret == []


@pytest.mark.case("C19")
def test_an_expert_is_held_against_the_mean_on_the_questions_that_it_answered() -> None:
    record = track_record(told([(1, 0.9, {"a": 0.9, "b": 0.8}), (0, 0.6, {"b": 0.5})]))

    assert record is not None
    easy, all_of_them = record.expert_score("a"), record.expert_score("b")
    assert easy is not None
    assert all_of_them is not None
    assert (easy.coverage, all_of_them.coverage) == (0.5, 1.0)
    assert easy.skill.loss < all_of_them.skill.loss
    assert easy.skill.difficulty == pytest.approx(0.01)
    assert all_of_them.skill.difficulty == pytest.approx((0.01 + 0.36) / 2)
    assert easy.skill.skill == pytest.approx(0.0)
    assert all_of_them.skill.skill == pytest.approx(1 - (0.04 + 0.25) / (0.01 + 0.36))
    assert record.expert_score("nobody") is None


def test_a_question_that_one_expert_answered_alone_compares_it_with_nobody() -> None:
    shared = [(1, 0.5, {"good": 0.9, "poor": 0.1})] * 6
    alone = [(1, 0.1, {"poor": 0.1})] * 20

    few, many = track_record(told(shared)), track_record(told([*shared, *alone]))

    assert few is not None
    assert many is not None
    before, after = few.expert_score("poor"), many.expert_score("poor")
    assert before is not None
    assert after is not None
    assert after.skill == before.skill
    assert (after.coverage, after.skill.questions) == (1.0, 6)
    assert many.score("mix").skill == few.score("mix").skill
    lonely = track_record(told(alone))
    assert lonely is not None
    score = lonely.expert_score("poor")
    assert score is not None
    assert (score.skill.questions, score.skill.skill, score.skill.deviation) == (0, None, None)
    assert score.skill.loss == pytest.approx(0.81)


def test_a_correction_changes_no_score() -> None:
    history = ReplayHistory()
    first = mixed("q", 1, 0.6, 0.5, None, "a")
    add(history, topics.PEER_LOSSES, losses("q", 1, {"a": 0.6, "b": 0.5}, 1))
    add(history, topics.MIXED_FORECASTS, first)
    add(history, topics.PEER_LOSSES, losses("q", 2, {"a": 0.6, "b": 0.5}, 1))
    add(history, topics.MIXED_FORECASTS, mixed("q", 2, 0.6, 0.5, 1, "a", first.scored))
    before = track_record(history.feeds[FEED])
    add(history, topics.PEER_LOSSES, losses("q", 3, {"a": 0.99, "b": 0.5, "late": 1.0}, 1))
    add(history, topics.MIXED_FORECASTS, mixed("q", 3, 0.99, 0.9, 1, "late", first.scored))

    record = track_record(history.feeds[FEED])

    assert before is not None
    assert record is not None
    assert record.published["mix"].tolist() == before.published["mix"].tolist() == [0.6]
    assert {name: said.tolist() for name, (_, said) in record.said.items()} == {"a": [0.6], "b": [0.5]}
    assert measured_regret(history.feeds[FEED]).regret == [0.0]


def test_the_regret_is_in_the_unit_of_the_loss() -> None:
    feed = told([(1, 0.5, {"a": 0.5, "b": 1.0})], drawn="a")

    assert measured_regret(feed, LOG).regret == pytest.approx([np.log(2.0)], abs=2e-3)


def test_calibration_is_told_only_of_those_with_enough_questions() -> None:
    few = {"busy": 0.7}
    record = track_record(told([(n % 2, 0.6, {**few, "idle": 0.4} if n else few) for n in range(FEWEST_CALIBRATED)]))

    assert record is not None
    busy, idle = record.expert_score("busy"), record.expert_score("idle")
    assert busy is not None
    assert busy.murphy is not None
    assert busy.murphy.loss == pytest.approx(busy.skill.loss)
    assert idle is not None
    assert idle.murphy is None


def test_losses_are_squared_ones_whatever_the_feed_is_scored_by() -> None:
    feed = told([(1, 0.5, {"a": 0.5})])
    record = track_record(feed)

    assert record is not None
    assert record.expert_losses("a")[1].tolist() == [0.25]
    assert record.score("mix").log_score == pytest.approx(np.log(2.0))


def test_the_mean_has_no_skill_against_itself() -> None:
    record = track_record(sample_history(questions=40, n_experts=5).feeds[FEED])

    assert record is not None
    assert record.score("mean").skill.skill == 0.0


def test_measured_regret_is_against_the_best_single_expert_on_its_own_questions() -> None:
    """Drawn is always a: loses .25 and .01; b lost .01 and did not answer the second; c lost .25 and 0."""
    feed = told([(1, 0.5, {"a": 0.5, "b": 0.9, "c": 0.5}), (1, 0.5, {"a": 0.9, "c": 1.0})], drawn="a")

    found = measured_regret(feed)

    assert found.questions == [1, 2]
    assert found.revisions == [1, 2]
    assert found.regret == pytest.approx([0.24, 0.24])


def test_a_drawn_expert_that_is_the_best_has_no_regret() -> None:
    feed = told([(1, 0.5, {"a": 0.9, "b": 0.5})] * 3, drawn="a")

    assert measured_regret(feed).regret == [0.0, 0.0, 0.0]


def test_a_mix_above_one_by_a_rounding_is_one() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q", 1, 1.000000000001, 1.0, 1))

    record = track_record(history.feeds[FEED])

    assert record is not None
    assert record.score("mix").skill.loss == 0.0
