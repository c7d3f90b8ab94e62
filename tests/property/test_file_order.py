"""What a replay of a file is scored on, whatever the order of its lines."""

import random

from hypothesis import given
from hypothesis import strategies as st

from stream_peer.adapters.history import Scores
from stream_peer.adapters.replay import ReplayOptions, replay
from tests.unit.adapters.file_lines import lines, season

AT_THE_CLOSE = ReplayOptions({"defaults": {"round_every": None}})


def scores(values: list[bytes]) -> Scores | None:
    return replay([lines(values)], AT_THE_CLOSE).history.feeds["econ"].scores()


@given(seed=st.integers(0, 1 << 30))
def test_a_shuffled_file_is_scored_like_one_in_order_of_time(seed: int) -> None:
    values = season(questions=12)
    shuffled = random.Random(seed).sample(values, len(values))

    assert scores(shuffled) == scores(values)
