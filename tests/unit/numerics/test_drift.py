import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.drift import (
    RATE_LIMIT,
    Earlier,
    agreement_change,
    expert_changes,
    expert_limit,
    measured_change,
    scan_for_changes,
)
from stream_peer.numerics.error_rates import MomentSums, MomentTerms
from tests.unit.numerics.drift_worlds import moments, slow_residuals, slow_scan, steady, votes_and_answers

SPAN = np.array([2.0])


def column(*values: float) -> FloatArray:
    return np.array(values)[:, None]


def ones(values: FloatArray) -> FloatArray:
    return np.ones_like(values)


@pytest.mark.parametrize("with_past", [False, True])
def test_a_scan_equals_its_slow_twin(with_past: bool) -> None:
    generator = np.random.default_rng(3)
    values = generator.normal(size=(140, 7)) + np.linspace(0.0, 1.0, 140)[:, None]
    weights = generator.choice([0.0, 0.3, 1.0], size=values.shape)
    past = [37.5, 31.2, 4.5, 60.0] if with_past else None
    earlier = Earlier(*np.repeat(np.array(past)[:, None], 7, axis=1)) if past else None

    found = scan_for_changes(values, weights, np.full(7, 1.5), earlier)

    for series in range(7):
        z, cut = slow_scan(values[:, series].tolist(), weights[:, series].tolist(), 1.5, past)
        assert found.z[series] == pytest.approx(z, abs=1e-12)
        assert found.cuts[series] == cut


def test_fewer_than_twenty_five_are_no_new_state() -> None:
    few, enough = column(*[-1.0] * 80, *[1.0] * 24), column(*[-1.0] * 80, *[1.0] * 25)

    assert scan_for_changes(few, ones(few), SPAN).cuts[0] < 80
    assert scan_for_changes(enough, ones(enough), SPAN).cuts[0] == 80
    short = few[-49:]
    assert scan_for_changes(short, ones(short), SPAN).z[0] == 0.0


def test_a_series_that_never_varies_has_not_changed() -> None:
    values = column(*[0.7] * 100)

    assert scan_for_changes(values, ones(values), SPAN).z[0] == 0.0


def test_a_few_lapses_of_someone_who_never_lapsed_are_no_change() -> None:
    """Without Bernstein's term these three would be 4.6 standard deviations: (6/25)/√(.0591·(1/175 + 1/25))."""
    values = column(*[1.0] * 175, *[1.0, -1.0, -1.0, -1.0], *[1.0] * 21)

    assert abs(scan_for_changes(values, ones(values), SPAN).z[0]) < 2.6


TEN, FIFTEEN, THIRTY, THIRTY_FIVE = 0.318, 0.35, 0.42, 0.443
"""Error rates of twelve alike experts whose leave-one-out answers err so often, in percent."""


def sums(pair: FloatArray, rest: FloatArray) -> MomentSums:
    total = MomentSums()
    for one in zip(pair.tolist(), rest.tolist(), strict=True):
        total = total.merge(MomentSums.contribution(MomentTerms(*one)))
    return total


def world(seed: int, before: float, now: float, changes_at: int, n_questions: int) -> tuple[FloatArray, FloatArray]:
    errors = steady([before] * 12, n_questions)
    errors[changes_at:] = now
    return moments(*votes_and_answers(np.random.default_rng(seed), errors))


def test_a_step_of_the_error_rate_is_found_where_it_was() -> None:
    pair, rest = world(1, TEN, THIRTY_FIVE, 300, 500)

    found = agreement_change(pair, rest, np.ones(500))

    assert found is not None
    assert found.z > RATE_LIMIT
    assert 280 <= found.cut <= 320
    assert found.before < 0.2 < found.now


def test_with_all_the_past_a_smaller_step_is_found() -> None:
    pair, rest = world(2, FIFTEEN, THIRTY, 1500, 2000)
    window = slice(2000 - 512, 2000)

    alone = agreement_change(pair[window], rest[window], np.ones(512))
    beside_the_past = agreement_change(
        pair[window], rest[window], np.ones(512), sums(pair[: 2000 - 512], rest[: 2000 - 512])
    )

    assert alone is not None
    assert beside_the_past is not None
    assert abs(alone.z) < RATE_LIMIT < beside_the_past.z


def test_a_slow_drift_shows_beside_the_past_and_not_within_the_window() -> None:
    """From .10 to .34 in two thousand questions: in a window it moves by .06."""
    errors = np.tile(np.linspace(0.30, 0.44, 2000)[:, None], (1, 12))
    pair, rest = moments(*votes_and_answers(np.random.default_rng(0), errors))
    window = slice(2000 - 512, 2000)
    past = sums(pair[: 2000 - 512], rest[: 2000 - 512])

    alone = agreement_change(pair[window], rest[window], np.ones(512))
    beside_the_past = agreement_change(pair[window], rest[window], np.ones(512), past)

    assert alone is not None
    assert beside_the_past is not None
    assert abs(alone.z) < RATE_LIMIT < beside_the_past.z


def test_a_feed_that_gets_better_has_a_negative_z() -> None:
    found = agreement_change(*world(3, THIRTY_FIVE, TEN, 250, 500), np.ones(500))

    assert found is not None
    assert found.z < -RATE_LIMIT
    assert found.now < found.before


def test_a_steady_feed_does_not_alarm() -> None:
    found = agreement_change(*world(4, FIFTEEN, FIFTEEN, 0, 512), np.ones(512))

    assert found is not None
    assert abs(found.z) < RATE_LIMIT


def test_the_larger_of_two_slow_scans_is_reported() -> None:
    pair, rest = world(5, FIFTEEN, THIRTY, 150, 300)
    weights = np.random.default_rng(6).choice([0.0, 0.5, 1.0], size=300)

    found = agreement_change(pair, rest, weights)

    scans = []
    for values in (pair, rest):
        mean = float((weights * values).sum() / weights.sum())
        span = float(np.abs(values - mean)[weights > 0].max())
        scans.append(slow_scan(values.tolist(), weights.tolist(), span, None))
    z, cut = max(scans, key=lambda scan: abs(scan[0]))
    assert found is not None
    assert abs(found.z) == pytest.approx(abs(z), abs=1e-12)
    assert found.cut == cut


def test_measured_shares_by_hand() -> None:
    """40 right, then 40 wrong: Δ = 1, s² = ¼, z = 1/√(¼·2/40 + 1/(3·40)) = 1/√(1/80 + 1/120) = √48."""
    wrong = np.repeat([0.0, 1.0], 40)

    found = measured_change(wrong, np.ones(80), 0.0, 0.0)

    assert found is not None
    assert found.z == pytest.approx(48**0.5, abs=1e-12)
    assert (found.before, found.now, found.cut) == (0.0, 1.0, 40)


def test_answers_without_outcome_are_not_looked_at() -> None:
    wrong = np.repeat([0.0, 1.0], 100)
    weights = np.repeat([1.0, 0.0], 100)

    found = measured_change(wrong, weights, 0.0, 0.0)

    assert found is not None
    assert found.z == 0.0


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
