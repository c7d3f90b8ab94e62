import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.changes import Earlier, scan_for_changes
from stream_peer.numerics.losses import FloatArray
from tests.unit.numerics.changes.worlds import slow_scan

SPAN = np.array([2.0])


def column(*values: float) -> FloatArray:
    return np.array(values)[:, None]


def ones(values: FloatArray) -> FloatArray:
    return np.ones_like(values)


def test_a_step_of_all_or_nothing_by_hand() -> None:
    """30 times -1 and 30 times 1: Δ = 2, s² = 1, so z = 2/√(2/30 + 2·2/(3·30)) = 2/√(1/9) = 6."""
    values = column(*[-1.0] * 30, *[1.0] * 30)

    found = scan_for_changes(values, ones(values), SPAN)

    assert found.z[0] == pytest.approx(6.0, abs=1e-12)
    assert found.cuts[0] == 30


def test_with_a_past_all_rows_may_be_new() -> None:
    """90 questions of mean 0 and mean square 1, then 30 of 1: Δ = 1, mean ¼, s² = 1 - 1/16, both counts known."""
    values = column(*[1.0] * 30)
    past = Earlier(*(np.array([number]) for number in (90.0, 90.0, 0.0, 90.0)))

    found = scan_for_changes(values, ones(values), SPAN, past)

    assert found.cuts[0] == 0
    assert found.z[0] == pytest.approx(1.0 / math.sqrt(15 / 16 * (1 / 90 + 1 / 30) + 2.0 / 90.0), abs=1e-12)


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


def test_rows_of_no_weight_are_not_there() -> None:
    generator = np.random.default_rng(8)
    values = generator.normal(size=(120, 1))
    holes = np.insert(values, 60, np.full((10, 1), 1000.0), axis=0)
    weights = np.where(holes > 999.0, 0.0, 1.0)

    with_holes, without = scan_for_changes(holes, weights, SPAN), scan_for_changes(values, ones(values), SPAN)

    assert with_holes.z[0] == without.z[0]


def test_nothing_is_nothing() -> None:
    nothing = np.zeros((0, 2))

    assert scan_for_changes(nothing, nothing, np.ones(2)).z.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("shape", [(10, 3), (9, 2)])
def test_shapes_that_do_not_fit_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(FormulaInputError, match="does not fit"):
        scan_for_changes(np.ones((10, 2)), np.ones(shape), np.ones(2))
