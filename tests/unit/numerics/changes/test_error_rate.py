import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.changes import RATE_LIMIT, agreement_change, measured_change
from stream_peer.numerics.error_rates import MomentSums, MomentTerms
from stream_peer.numerics.losses import FloatArray
from tests.unit.numerics.changes.worlds import moments, slow_scan, steady, votes_and_answers

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


def test_without_any_question_there_is_nothing_to_say() -> None:
    assert agreement_change(np.ones(3), np.ones(3), np.zeros(3)) is None
    assert measured_change(np.ones(3), np.zeros(3), 1.0, 10.0) is None


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormulaInputError, match="does not fit"):
        agreement_change(np.ones(3), np.ones(2), np.ones(3))
    with pytest.raises(FormulaInputError, match="does not fit"):
        measured_change(np.ones(3), np.ones(2), 0.0, 0.0)
