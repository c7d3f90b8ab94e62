import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.numerics.drift import Earlier, agreement_change, changes_of, expert_changes, scan_for_changes
from tests.hypothesis_profiles import examples
from tests.unit.numerics.drift_worlds import moments, steady, votes_and_answers

seeds = st.integers(0, 2**32 - 1)
presences = st.sampled_from([0.4, 0.8, 1.0])
unhurried = settings(deadline=None, max_examples=examples(30))


@unhurried
@given(seed=seeds, presence=presences, n_experts=st.integers(3, 9))
def test_what_is_said_of_an_expert_does_not_depend_on_the_order_of_experts(
    seed: int, presence: float, n_experts: int
) -> None:
    generator = np.random.default_rng(seed)
    errors = steady(generator.uniform(0.05, 0.5, n_experts).tolist(), 150)
    votes, answers = votes_and_answers(generator, errors, presence)
    order = generator.permutation(n_experts)

    found, turned = expert_changes(votes, answers), expert_changes(votes[:, order], answers[:, order])

    for one, other in zip(found, turned, strict=True):
        np.testing.assert_array_equal(one[order], other)


@unhurried
@given(seed=seeds, presence=presences, limit=st.floats(0.5, 5.0))
def test_whose_change_exceeds_a_limit_is_told_as_if_there_were_none(seed: int, presence: float, limit: float) -> None:
    generator = np.random.default_rng(seed)
    errors = steady(generator.uniform(0.05, 0.5, 6).tolist(), 200)
    errors[120:, 0] = generator.uniform(0.0, 1.0)
    votes, answers = votes_and_answers(generator, errors, presence)
    agreement = votes * answers
    of_all = np.add.reduce(agreement, axis=1, dtype=np.int64), np.count_nonzero(agreement, axis=1)

    found, told = expert_changes(votes, answers), changes_of(agreement, *of_all, np.full(6, limit))

    exceeds = np.abs(found.z) > limit
    assert not (np.abs(told.z[~exceeds]) > limit).any()
    for one, other in zip(found, told, strict=True):
        np.testing.assert_array_equal(one[exceeds], other[exceeds])


@unhurried
@given(seed=seeds, presence=presences)
def test_who_is_absent_from_all_questions_changes_nothing(seed: int, presence: float) -> None:
    generator = np.random.default_rng(seed)
    votes, answers = votes_and_answers(generator, steady([0.1, 0.2, 0.3, 0.4], 120), presence)
    absent = np.zeros((120, 1), np.int8)

    found = expert_changes(votes, answers)
    beside = expert_changes(np.append(votes, absent, axis=1), np.append(answers, absent, axis=1))

    np.testing.assert_array_equal(found.z, beside.z[:4])
    assert beside.z[4] == 0.0


@unhurried
@given(seed=seeds)
def test_yes_and_no_may_change_places(seed: int) -> None:
    generator = np.random.default_rng(seed)
    votes, answers = votes_and_answers(generator, steady([0.1, 0.2, 0.3, 0.4, 0.4], 120))
    sides = generator.choice(np.array([-1, 1], np.int8), size=(120, 1))

    found, mirrored = expert_changes(votes, answers), expert_changes(sides * votes, sides * answers)

    np.testing.assert_array_equal(found.z, mirrored.z)


@unhurried
@given(seed=seeds, shift=st.floats(-3.0, 3.0), scale=st.floats(0.1, 4.0))
def test_a_scan_does_not_depend_on_the_unit_of_a_series(seed: int, shift: float, scale: float) -> None:
    values = np.random.default_rng(seed).normal(size=(100, 1))
    weights, span = np.ones((100, 1)), np.array([5.0])

    found = scan_for_changes(values, weights, span)
    changed = scan_for_changes(shift + scale * values, weights, scale * span)

    assert changed.z[0] == pytest.approx(found.z[0], rel=1e-6)


@unhurried
@given(seed=seeds, n_past=st.integers(1, 60))
def test_rows_that_become_the_past_leave_the_cuts_behind_them_as_they_were(seed: int, n_past: int) -> None:
    """A cut among later rows weighs the same two groups, whether the first rows are given one by one or as sums."""
    values = np.random.default_rng(seed).normal(size=(160, 1))
    values[100:] += 3.0
    past = values[:n_past, 0]
    sums = (float(n_past), float(n_past), float(past.sum()), float((past * past).sum()))

    whole = scan_for_changes(values, np.ones((160, 1)), np.array([4.0]))
    rest = scan_for_changes(
        values[n_past:], np.ones((160 - n_past, 1)), np.array([4.0]), Earlier(*(np.array([x]) for x in sums))
    )

    assert rest.z[0] == pytest.approx(whole.z[0], rel=1e-9)
    assert rest.cuts[0] + n_past == whole.cuts[0]


@unhurried
@given(seed=seeds)
def test_time_turned_round_turns_the_sign(seed: int) -> None:
    generator = np.random.default_rng(seed)
    pair, rest = moments(*votes_and_answers(generator, steady([0.2] * 6, 200)))

    forward, back = agreement_change(pair, rest, np.ones(200)), agreement_change(pair[::-1], rest[::-1], np.ones(200))

    assert forward is not None
    assert back is not None
    assert abs(back.z) == pytest.approx(abs(forward.z), rel=1e-9)
    assert (back.before, back.now) == pytest.approx((forward.now, forward.before), abs=1e-9)
