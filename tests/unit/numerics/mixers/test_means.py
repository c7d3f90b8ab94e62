import math

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.mixers import logit_mean


def test_one_certain_expert_does_not_decide_the_logit_mean() -> None:
    assert logit_mean(np.array([1.0, 0.2, 0.2])) == pytest.approx(
        1 / (1 + math.exp(-(math.log(0.98 / 0.02) + 2 * math.log(0.25)) / 3)), abs=1e-12
    )
    assert logit_mean(np.array([0.0, 1.0])) == pytest.approx(0.5)


def test_nobody_has_no_mean() -> None:
    with pytest.raises(FormulaInputError, match="of nobody"):
        logit_mean(np.zeros(0))
