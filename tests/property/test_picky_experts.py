"""An expert who answers only easy questions does not outrank one of equal skill who answers all."""

import json
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import Weights
from stream_peer.log.stage import Output
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.integration.support.chronicle import CHAPTERS, cut
from tests.integration.support.judged import EVENLY, with_a_picky_one

WORLDS = range(24)


def last_weights(seed: int, directory: Path) -> dict[str, float]:
    """Selection weights at the end of one world, by expert."""
    events = chain.from_iterable(cut("f", with_a_picky_one(seed), [EVENLY] * CHAPTERS))
    file = directory / f"{seed}.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    last: list[bytes] = []

    def keep(output: Output) -> None:
        if output.topic == topics.WEIGHTS and output.value is not None:
            last[:] = [output.value]

    replay([read_lines(file)], ReplayOptions(document={"defaults": {"vote_rule": "half"}}, secret=b"picky"), write=keep)
    return {expert.id: expert.select for expert in msgspec.json.decode(last[0], type=Weights).experts}


@pytest.mark.case("C19")
def test_over_many_worlds_the_picky_one_is_followed_no_more_than_its_equal(tmp_path: Path) -> None:
    ahead = [weights["e1"] - weights["e0"] for weights in (last_weights(seed, tmp_path) for seed in WORLDS)]

    assert np.ptp(ahead) > 0.05  # worlds differ, one by one luck decides
    assert np.mean(ahead) < 0.0
