import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.changes import expert_changes, expert_limit
from tests.unit.numerics.changes.worlds import slow_residuals, slow_scan, steady, votes_and_answers

ERRORS = [0.15, 0.15, 0.2, 0.2, 0.25, 0.25, 0.3, 0.3, 0.3, 0.35, 0.35, 0.4]
LIMIT = expert_limit(len(ERRORS))


def test_a_scan_of_experts_equals_its_slow_twin() -> None:
    votes, answers = votes_and_answers(np.random.default_rng(2), steady([0.2, 0.3, 0.35, 0.4], 180), presence=0.8)

    found = expert_changes(votes, answers)

    for expert in range(4):
        residuals, there = slow_residuals(votes, answers, expert)
        z, cut = slow_scan(residuals, there, 2.0, None, step=8)
        agreed = (votes * answers)[:, expert]
        after = [x for x, counts in zip(agreed[cut:].tolist(), there[cut:], strict=True) if counts]
        assert found.z[expert] == pytest.approx(z, abs=1e-12)
        assert found.since[expert] == len(after)
        assert found.now[expert] == pytest.approx(after.count(1) / len(after), abs=1e-12)


def test_an_expert_who_gets_worse_is_found_and_nobody_else() -> None:
    errors = steady(ERRORS, 512)
    errors[300:, 0] = 0.4
    votes, answers = votes_and_answers(np.random.default_rng(5), errors)

    found = expert_changes(votes, answers)

    assert found.z[0] < -LIMIT
    assert 180 <= found.since[0] <= 240
    assert found.now[0] < 0.7 < found.before[0]
    assert np.abs(found.z[1:]).max() < LIMIT


def test_an_expert_who_gets_better_has_a_positive_z() -> None:
    errors = steady(ERRORS, 512)
    errors[300:, 11] = 0.1
    votes, answers = votes_and_answers(np.random.default_rng(6), errors)

    found = expert_changes(votes, answers)

    assert found.z[11] > LIMIT
    assert found.now[11] > found.before[11]


def test_a_hard_batch_of_questions_accuses_nobody() -> None:
    """From question 256 on all know half of what they knew: agreement alone would accuse the best."""
    errors = steady(ERRORS, 512)
    errors[256:] = 0.5 - 0.5 * (0.5 - errors[256:])
    votes, answers = votes_and_answers(np.random.default_rng(4), errors)

    found = expert_changes(votes, answers)

    assert np.abs(found.z).max() < LIMIT
    fell = (votes * answers)[:256].mean(axis=0) - (votes * answers)[256:].mean(axis=0)
    assert np.count_nonzero(fell / np.sqrt(4.0 / 512.0) > LIMIT) >= 3


def test_who_answered_little_is_not_judged() -> None:
    votes, answers = votes_and_answers(np.random.default_rng(4), steady([0.2] * 5, 200))
    votes[:151, 0] = answers[:151, 0] = 0

    found = expert_changes(votes, answers)

    assert found.z[0] == 0.0
    assert np.isnan(found.now[0])
    assert found.since[0] == 0


def test_two_voters_say_nothing_of_either() -> None:
    votes, answers = votes_and_answers(np.random.default_rng(4), steady([0.1, 0.1], 200))

    assert expert_changes(votes, answers).z.tolist() == [0.0, 0.0]


def test_many_experts_are_looked_at_a_part_at_a_time() -> None:
    errors = steady(ERRORS * 13, 120)
    votes, answers = votes_and_answers(np.random.default_rng(9), errors)

    whole = expert_changes(votes, answers)
    turned = expert_changes(votes[:, ::-1], answers[:, ::-1])

    assert np.array_equal(whole.z, turned.z[::-1])


def test_limits_grow_with_the_number_of_experts() -> None:
    limits = [expert_limit(n) for n in (0, 1, 6, 12, 60, 10_000)]

    assert limits == sorted(limits)
    assert limits[0] == pytest.approx(15.6**0.5, abs=1e-12)
    assert limits[-1] < 6.0
    with pytest.raises(FormulaInputError, match="experts"):
        expert_limit(-1)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormulaInputError, match="does not fit"):
        expert_changes(np.ones((3, 2), np.int8), np.ones((2, 3), np.int8))
