"""Explanations on a real feed: they add up, and nobody needs mathematics to read them."""

import math
from pathlib import Path

import pytest

from stream_peer.serve.explanation import Bound, WeightKind
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.story import story_of
from stream_peer.tools.explain.weight_story.witness import WeightWitness
from stream_peer.tools.replay.jsonl import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay

EXPERTS = ("e0007", "e0096", "e0430")
MIDDLE = Bound(revision=2000)


@pytest.mark.slow
def test_weights_of_pollsters_are_explained_to_nine_digits(data_directory: Path) -> None:
    accounts = [
        *(Account(name) for name in EXPERTS),
        *(Account(name, until=MIDDLE) for name in EXPERTS),
        *(Account(name, since=MIDDLE) for name in EXPERTS),
    ]
    witness = WeightWitness("ONE", accounts)

    result = replay(
        [read_lines(data_directory / "us_polls_general.jsonl.gz")], ReplayOptions(feed_as="ONE"), witness=witness
    )
    witness.finish()

    newest = result.history.feeds["ONE"].weights
    assert newest is not None
    published = {expert.id: {"mix": expert.mix, "select": expert.select} for expert in newest.experts}
    kinds: tuple[WeightKind, ...] = ("mix", "select")
    for kind in kinds:
        for account in accounts:
            story = story_of(account, "ONE", kind)
            assert story is not None
            assert math.fsum(one.change for one in story.causes) == pytest.approx(story.difference, abs=1e-9)
            assert story.sentences[0].startswith("Between ")
            if account.until is None:
                assert story.until.weight == published[account.expert][kind]
        for whole, first, second in zip(accounts[:3], accounts[3:6], accounts[6:], strict=True):
            stories = [story_of(account, "ONE", kind) for account in (whole, first, second)]
            of_all, *of_parts = (0.0 if story is None else story.difference for story in stories)
            assert sum(of_parts) == pytest.approx(of_all, abs=1e-9)
