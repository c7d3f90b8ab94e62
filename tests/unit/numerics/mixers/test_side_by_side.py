import numpy as np
import pytest

from stream_peer.numerics.mixers import SideBySide, mixers_side_by_side, peer_mixer, truth_slow


def test_each_row_is_what_its_mixer_says_alone() -> None:
    random = np.random.default_rng(3)
    sums, scored, resolved = random.normal(size=(4, 6)), random.random(6) * 20, random.random(6) * 9
    peers, slow = [(0.35, 24.0), (0.0, 2.0)], [24.0, 3.0]
    answered = scored + resolved

    found = mixers_side_by_side(SideBySide.of(peers, slow), sums, float(answered.mean()), float(resolved.mean()))

    expected = [
        *(
            peer_mixer(sums[0], sums[1], sums[2], answered, nominal=nominal, rate=rate, uniform_share=0.0)
            for nominal, rate in peers
        ),
        *(truth_slow(sums[3], resolved, rate=rate) for rate in slow),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_weights_sum_to_one_however_large_the_sums(size: float) -> None:
    sums = np.array([[0.0, size], [0.0, -size], [size, 0.0], [size, -size]])

    found = mixers_side_by_side(SideBySide.of([(0.2, 1.0)], [1.0]), sums, 10.0, 0.0)

    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
