"""Explanations on a real feed: they add up, and nobody needs mathematics to read them."""

import math
from pathlib import Path

import pytest

from stream_peer.serve.explanation import Bound, WeightKind
from stream_peer.tools.explain.weight import explanation_of
from stream_peer.tools.explain.weight_timeline import WeightProbe, WeightTimeline
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay

EXPERTS = ("e0007", "e0096", "e0430")
MIDDLE = Bound(revision=2000)


@pytest.mark.slow
def test_weights_of_pollsters_are_explained_to_nine_digits(data_directory: Path) -> None:
    timelines = [
        *(WeightTimeline(name) for name in EXPERTS),
        *(WeightTimeline(name, until=MIDDLE) for name in EXPERTS),
        *(WeightTimeline(name, since=MIDDLE) for name in EXPERTS),
    ]
    probe = WeightProbe("ONE", timelines)

    result = replay(
        [read_lines(data_directory / "us_polls_general.jsonl.gz")], ReplayOptions(feed_as="ONE"), probes=[probe]
    )
    probe.finish()

    newest = result.history.feeds["ONE"].weights
    assert newest is not None
    published = {expert.id: {"mix": expert.mix, "select": expert.select} for expert in newest.experts}
    kinds: tuple[WeightKind, ...] = ("mix", "select")
    for kind in kinds:
        for timeline in timelines:
            found = explanation_of(timeline, "ONE", kind)
            assert found is not None
            assert math.fsum(one.change for one in found.causes) == pytest.approx(found.difference, abs=1e-9)
            assert found.sentences[0].startswith("Between ")
            if timeline.until is None:
                assert found.until.weight == published[timeline.expert][kind]
        for whole, first, second in zip(timelines[:3], timelines[3:6], timelines[6:], strict=True):
            explanations = [explanation_of(timeline, "ONE", kind) for timeline in (whole, first, second)]
            of_all, *of_parts = (0.0 if found is None else found.difference for found in explanations)
            assert sum(of_parts) == pytest.approx(of_all, abs=1e-9)
