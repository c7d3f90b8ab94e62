import numpy as np
import pytest

from stream_peer.lab.paper import heterogeneous as claim
from stream_peer.lab.paper.heterogeneous import heterogeneous, heterogeneous_promises
from stream_peer.lab.paper.results import Size
from stream_peer.numerics.arguments import FloatArray
from tests.unit.lab.paper.samples import SEED


def test_a_flip_that_does_not_flip_is_marked_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def untouched(reference_answer: FloatArray, coin: FloatArray) -> FloatArray:
        return reference_answer + 0.0 * coin

    monkeypatch.setattr(claim, "flip_answer", untouched)

    missed = {check.what for check in heterogeneous(np.random.default_rng([SEED, 5]), Size.QUICK).missed}

    assert "aligned: regret at p̂ = 0.4, summed loss" in missed


def test_bounds_are_the_figures_worked_out_by_hand() -> None:
    found = heterogeneous_promises(np.array([0.05, 0.45] * 2000), best_loss=400.9, n_experts=4)

    assert [round(value) for value in found] == [5606, 17_939]
