"""New ids that look like another expert's are named once."""

import pytest

from stream_peer.feeds.roster import skeleton
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import START, Changelog, folded, log_of, round_of, stage

ALIKE = [
    ("ecmwf", "ecmwf "),
    ("ecmwf", "ECMWF"),
    ("model", "m\u043edel"),
    ("gfs", "\uff47fs"),
    ("e10", "el0"),
    ("a b", "a\u00a0b"),
    ("ann", "a\u200bnn"),
]
UNLIKE = [("model-2", "model-3"), ("ann", "anne"), ("e1", "e2"), ("a-b", "a_b")]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_ids_that_differ_in_blanks_case_or_look_alike_letters_have_one_skeleton(one: str, other: str) -> None:
    assert skeleton(one) == skeleton(other)


@pytest.mark.parametrize(("one", "other"), UNLIKE)
def test_ids_that_a_person_tells_apart_have_two(one: str, other: str) -> None:
    assert skeleton(one) != skeleton(other)


def warned(effects: Effects) -> list[tuple[str, str]]:
    return [(warning.code, warning.message) for warning in effects.warnings]


def test_a_new_expert_is_met_once_and_its_look_alike_is_named_once() -> None:
    log = log_of(
        [
            round_of("q1", {"ecmwf": 0.9, "gfs": 0.2}),
            round_of("q2", {"ecmwf": 0.8, "ecmwf ": 0.8}),
            round_of("q3", {"ecmwf": 0.7, "ecmwf ": 0.7, "gfs": 0.1}),
        ]
    )

    _, effects = folded(log)

    met = [("f", "ecmwf", START), ("f", "gfs", START), ("f", "ecmwf ", START + 1000)]
    message = "'ecmwf ' looks like 'ecmwf': two experts, or one that is misspelt?"
    assert effects.new_experts == met
    assert warned(effects) == [("look-alike-experts", message)]
    assert effects.look_alikes == [("f", "ecmwf ", "ecmwf")]


def restarted(feed_stage: FeedStage) -> FeedStage:
    changelog, after = Changelog(), stage()
    changelog.take(feed_stage)
    after.load(changelog.head, changelog.entries)
    return after


def test_after_a_restart_experts_are_known_and_new_ones_are_compared_with_them() -> None:
    log = log_of([round_of("q1", {"ann": 0.9, "ANN": 0.2}), round_of("q2", {"Ann": 0.9, "ann": 0.8, "ANN": 0.1})])
    before, _ = folded(log[:1])

    _, effects = folded(log[1:], restarted(before))

    assert [expert for _, expert, _ in effects.new_experts] == ["Ann"]
    assert [code for code, _ in warned(effects)] == ["look-alike-experts"]
