import numpy as np
import pytest

from stream_peer.lab.paper import following
from stream_peer.lab.paper.sublinear import SHARP, play
from stream_peer.numerics.learners import hedge


def test_regret_on_naive_losses_is_a_fixed_share_and_on_peer_losses_falls_behind() -> None:
    course = play(np.random.default_rng(1), runs=4, marks=(300, 1500))

    for regret in (course.hedge, course.normal):
        share = regret / np.array([[300.0], [1500.0]])
        assert share[-1, 3] == pytest.approx(SHARP**2, rel=0.06)
        assert (share[-1, :3] < 0.9 * share[0, :3]).all()
        assert (share[-1, :3] < 0.3 * share[-1, 3]).all()


def test_a_learner_that_reads_its_losses_upside_down_is_far_from_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "hedge", lambda regrets, rate: hedge(-regrets, rate))

    course = play(np.random.default_rng(1), runs=4, marks=(300, 1000))

    assert (course.hedge[-1, :3] > 100.0).all()
