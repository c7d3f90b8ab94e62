import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import squared_loss
from stream_peer.numerics.skill import skill_score


@pytest.mark.case("C19")
def test_who_answers_only_what_is_easy_has_a_smaller_loss_but_no_more_skill_than_its_equal() -> None:
    """Two experts of equal skill: one answers everything, one only the questions on which nobody errs much."""
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=4000)
    hardness = np.repeat([0.15, 0.45], 2000)
    crowd, thorough, picky = (
        np.clip(np.abs(truth - hardness) + rng.normal(0.0, 0.05, 4000), 0.0, 1.0) for _ in range(3)
    )
    reference = squared_loss(crowd, truth)

    everything = skill_score(squared_loss(thorough, truth), reference)
    easy_only = skill_score(squared_loss(picky, truth)[:2000], reference[:2000])

    assert easy_only.loss < everything.loss / 3
    assert easy_only.difficulty < everything.difficulty / 3
    assert easy_only.skill == pytest.approx(everything.skill, abs=0.03)


def test_deviation_is_that_of_repeated_draws() -> None:
    rng = np.random.default_rng(8)
    draws = [skill_score(rng.gamma(2.0, 0.1, 400), rng.gamma(2.0, 0.12, 400)) for _ in range(300)]

    spread = np.std([draw.skill for draw in draws if draw.skill is not None])

    assert np.mean([draw.deviation for draw in draws if draw.deviation is not None]) == pytest.approx(spread, rel=0.1)


def test_where_the_reference_never_errs_there_is_no_skill_to_tell() -> None:
    assert skill_score(np.array([0.1]), np.array([0.0])) == (1, 0.1, 0.0, None, None)


def test_one_question_has_no_deviation() -> None:
    assert skill_score(np.array([0.1]), np.array([0.2])) == (1, 0.1, 0.2, 0.5, None)


@pytest.mark.parametrize(("losses", "reference"), [([], []), ([0.1], [0.1, 0.2]), ([-0.1], [0.1]), ([np.nan], [0.1])])
def test_what_are_no_losses_on_the_same_questions_is_refused(losses: list[float], reference: list[float]) -> None:
    with pytest.raises(FormulaInputError):
        skill_score(np.array(losses), np.array(reference))
