import numpy as np
import pytest

from stream_peer.lab.paper import wrong_expert as claim
from stream_peer.lab.paper.results import Size
from stream_peer.lab.paper.wrong_expert import chances_to_be_elected, duel, wrong_expert
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import squared_loss
from tests.unit.lab.paper.samples import SEED


def naive(forecasts: FloatArray, reference_answer: FloatArray, error_rate: float) -> FloatArray:
    """What a peer loss is without its correction."""
    del error_rate
    return squared_loss(forecasts, reference_answer.astype(np.int64))


def test_naive_losses_in_the_place_of_peer_losses_are_marked_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "peer_loss", naive)

    missed = [check.what for check in wrong_expert(np.random.default_rng([SEED, 2]), Size.QUICK).missed]

    assert "peer: right expert elected at η = 0.35, κ = 0, share of runs" in missed
    assert "panel: right expert elected by peer losses, η estimated without outcomes, share" in missed
    assert not [what for what in missed if what.startswith("naive")]


@pytest.mark.parametrize(("error_rate", "shrinkage"), [(0.2, 0.4), (0.45, 0.4), (0.1, 0.4)])
def test_shares_of_runs_are_those_that_the_normal_approximation_expects(error_rate: float, shrinkage: float) -> None:
    played = duel(np.random.default_rng(5), error_rate, shrinkage, runs=400)
    naive_share, peer_share = chances_to_be_elected(error_rate, shrinkage)

    assert played.naive.mean() == pytest.approx(naive_share, abs=0.1)
    assert played.peer.mean() == pytest.approx(peer_share, abs=0.1)
