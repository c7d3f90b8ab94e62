"""Error rates of a feed whose questions are parts of groups: a group is as much evidence as one question."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from tests.feed_histories import folded, log_of, newest, outcome, round_of, stage

EXPERTS = tuple("abcdef")  # no tie among the five others, so that no coin is tossed


def asked(names: Mapping[str, int], seed: int = 3, questions: int = 40) -> list[FeedLogRecord]:
    """Rounds of questions of which each is asked under several names, and outcomes of every second one."""
    dice = random.Random(seed)
    found: list[FeedLogRecord] = []
    for number in range(questions):
        truth = dice.random() < 0.5
        said = {one: 0.8 if (dice.random() < 0.75) is truth else 0.3 for one in EXPERTS}
        parts = [name.format(number) for name, times in names.items() if number < times]
        found += [round_of(part, said, final=True) for part in parts]
        found += [outcome(part, 1 if truth else 0) for part in parts if number % 2]
    return found


def rates_of(names: Mapping[str, int], version: int = 2) -> dict[str, Any]:
    _, effects = folded(log_of(asked(names)), stage(method_version=version))
    record: dict[str, Any] = newest(effects.outputs, topics.ERROR_RATES)["f"]
    return {name: record[name] for name in ("zero", "one", "low", "high", "effective_questions", "from_truth")}


ALONE = {"q{}": 40}
PARTS = {f"g{{}}::={part}": 40 for part in range(4)}


def test_a_group_whose_parts_say_all_the_same_counts_as_one_question() -> None:
    alone, parts = rates_of(ALONE), rates_of(PARTS)

    assert alone["effective_questions"] == pytest.approx(40)
    assert alone["from_truth"]["resolved"] == 20
    for name in ("zero", "one", "low", "high", "effective_questions"):
        assert parts[name] == pytest.approx(alone[name]), name
    assert parts["from_truth"] == pytest.approx(alone["from_truth"])


def test_version_1_counts_parts_as_questions() -> None:
    alone, parts = rates_of(ALONE, version=1), rates_of(PARTS, version=1)

    assert parts["effective_questions"] == pytest.approx(4 * alone["effective_questions"])
    assert parts["high"] - parts["low"] < 0.6 * (alone["high"] - alone["low"])


def test_questions_that_are_no_parts_count_beside_groups_and_a_group_weighs_as_much_as_its_parts() -> None:
    mixed = rates_of({**ALONE, **PARTS})

    assert mixed["effective_questions"] == pytest.approx((40 + 4 * 40) ** 2 / (40 * 1**2 + 40 * 4**2))


def test_the_place_of_a_part_in_its_group_is_stored() -> None:
    feed_stage, _ = folded(log_of(asked(PARTS)), stage(method_version=2))
    entries = feed_stage.feeds.by_name["f"].ledger.entries

    assert [entries[f"g7::={part}"].rank for part in range(4)] == [1, 2, 3, 4]
    assert {type(entries["g7::=3"]).decode(entries[f"g7::={part}"].encode()).rank for part in range(4)} == {1, 2, 3, 4}
    assert feed_stage.agrees()
