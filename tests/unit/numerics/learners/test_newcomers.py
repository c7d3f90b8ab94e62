import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.learners import (
    HEDGE_START,
    NORMAL_HEDGE_START,
    ada_normal_hedge,
    ada_normal_hedge_logs,
    hedge,
    newcomer_prior,
)


def test_the_start_is_the_log_weight_of_no_regret() -> None:
    assert float(ada_normal_hedge_logs(np.zeros(1), np.zeros(1))[0]) == pytest.approx(NORMAL_HEDGE_START, abs=1e-15)


def test_a_newcomer_to_hedge_starts_at_its_share() -> None:
    regrets, prior = np.array([30.0, 10.0]), np.array([1.0, 5.0])

    q = newcomer_prior(0.2 * regrets, prior, share=1 / 3, start=HEDGE_START)

    weights = hedge(np.append(regrets, 0.0), 0.2, np.append(prior, q))
    old = hedge(regrets, 0.2, prior)
    np.testing.assert_allclose(weights, [*(old * 2 / 3), 1 / 3], rtol=1e-13)


def test_the_first_of_all_has_the_prior_of_everybody() -> None:
    assert newcomer_prior(np.zeros(0), None, 0.5, NORMAL_HEDGE_START) == 1.0


@pytest.mark.parametrize("prior", [None, [0.0, 0.0]])
def test_among_the_weightless_a_newcomer_leads(prior: list[float] | None) -> None:
    logs = np.full(2, -np.inf) if prior is None else np.zeros(2)

    assert newcomer_prior(logs, None if prior is None else np.array(prior), 0.1, NORMAL_HEDGE_START) == 1.0
    assert ada_normal_hedge(np.array([-4.0, -5.0, 0.0]), np.array([4.0, 5.0, 0.0])).tolist() == [0.0, 0.0, 1.0]


def test_a_prior_stays_a_number() -> None:
    assert newcomer_prior(np.array([1e9]), None, 0.5, HEDGE_START) == pytest.approx(math.exp(700))


@pytest.mark.parametrize(("log", "share"), [(0.0, 0.0), (0.0, 1.0), (math.nan, 0.5)])
def test_a_share_out_of_range_is_refused(log: float, share: float) -> None:
    with pytest.raises(FormulaInputError, match="within"):
        newcomer_prior(np.array([log]), None, share, HEDGE_START)
