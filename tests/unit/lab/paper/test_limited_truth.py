import numpy as np

from stream_peer.lab.paper.limited_truth import REVEALED, play


def test_the_same_generator_gives_the_same_questions_to_panels_of_any_size() -> None:
    small, large = (play(np.random.default_rng(1), n, runs=24, questions=400) for n in (4, 32))

    together = np.corrcoef(small.excess[0], large.excess[0])[0, 1]
    assert together > 0.8


def test_a_rate_measured_on_half_of_the_outcomes_costs_little() -> None:
    found = play(np.random.default_rng(1), 8, runs=24, questions=400)

    assert REVEALED[-1] == 0.5
    assert abs(found.excess[-1].mean()) < 0.2 * found.known.mean()
