import numpy as np
import pytest

from stream_peer.lab.paper import certificates as claim
from stream_peer.lab.paper.certificates import QUICK, Row, play, promises


@pytest.mark.parametrize(
    ("n_experts", "questions", "rate", "direct", "repaired", "printed"),
    [
        (4, 500, 0.1, 106, 385, 1030),
        (4, 5000, 0.3, 671, 1927, 5723),
        (32, 5000, 0.1, 434, 1431, 3298),
        (32, 5000, 0.45, 3473, 7360, 20_868),
        (32, 50_000, 0.3, 2745, 7205, 18_368),
    ],
)
def test_promises_are_the_figures_worked_out_by_hand(
    n_experts: int, questions: int, rate: float, direct: int, repaired: int, printed: int
) -> None:
    found = promises(n_experts, questions, rate)

    assert [round(value) for value in found] == [direct, repaired, printed]


def test_a_certificate_that_is_too_small_is_seen_as_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "live_bounds", lambda *_: np.full((5, 4), 0.01))

    assert play(np.random.default_rng(1), Row(4, 200, 0.1, (0, 0, 0)), runs=5).violations == 5


def test_the_certificate_says_nothing_where_reference_answers_are_nearly_coins() -> None:
    found = play(np.random.default_rng(1), Row(4, 50, 0.45, (0, 0, 0)), runs=2)

    assert np.isinf(found.live).all()
    assert found.violations == 0


def test_quick_settings_are_small() -> None:
    assert sum(row.questions for row in QUICK) <= 3000
