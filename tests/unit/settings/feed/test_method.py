"""Variants of the mathematics: which of them a worker serves, and which combinations cannot be computed."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from stream_peer.errors import SettingsError
from stream_peer.settings.feed.checks import only_in_replay
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import BUILT_IN, FeedSettings, MethodSettings
from tests.feed_variants import GROUPS, KNOWN, VARIANTS, Settings, variant

THREE_CLASSES = {"error_rate": "three-class-references", **GROUPS}

BAD_COMBINATIONS: list[tuple[Settings, str, str]] = [
    ({"min_experts": 2, **variant(error_rate="class-moments")}, "min_experts", "at least three experts a round"),
    ({"min_experts": 2, **variant(**THREE_CLASSES)}, "min_experts", "at least three experts a round"),
    ({"min_experts": 2, "vote_rule": "own-median"}, "vote_rule", "three voters a round"),
    (variant(against="other-group", error_rate="two-groups"), "method.against", "set method.groups to redrawn"),
    (variant(groups="redrawn"), "method.groups", "nobody asks groups while method.against is others"),
    (variant(error_rate="two-groups"), "method.error_rate", "set method.against to group-a or other-group"),
    (variant(against="everybody", error_rate="three-references"), "method.error_rate", "how often groups err"),
    (variant(against="everybody"), "method.error_rate", "answers of all others err; method.against is everybody"),
    (variant(**GROUPS, error_rate="class-moments"), "method.error_rate", "method.against is group-a"),
    ({"vote_rule": "own-median", **variant(reference="mean")}, "method.reference", "mean takes no votes"),
    ({"vote_rule": "own-median", **variant(reference="product")}, "method.reference", "set vote_rule to half"),
    ({"vote_rule": "own-median", **variant(**KNOWN)}, "method.error_rate", "own-median brings its own"),
    ({"vote_rule": "own-median", **variant(error_rate="outcomes")}, "method.error_rate", "set vote_rule to half"),
    (variant(error_rate="known"), "method.error_rate", "needs method.known_zero and method.known_one"),
    (variant(error_rate="known", known_zero=0.1), "method.error_rate", "needs method.known_zero and method.known_one"),
    (variant(known_zero=0.1, known_one=0.2), "method.known_zero", "needs method.error_rate known"),
    (variant(error_rate="known", known_zero=0.5, known_one=0.4), "method.known_zero", "0.5 and 0.4 sum to more"),
    (
        variant(error_rate="known", known_zero=0.6, known_one=0.1, flip_probability=0.1),
        "method.flip_probability",
        "brings 0.6 down",
    ),
    (variant(learner="hedge"), "method.learner", "hedge needs method.learning_rate"),
    (variant(learning_rate=0.1), "method.learning_rate", "ada-normal-hedge has none to set"),
    (variant(learner="ada-hedge", learning_rate=0.1), "method.learning_rate", "hedge and fixed-share have"),
    (variant(learner="top-committee", share=0.1), "method.share", "top-committee has none to set"),
    (variant(learner="fixed-share", committee=3), "method.committee", "fixed-share has none to set"),
    ({"preset": "paper", **variant(learner="ada-hedge")}, "method", "leave method out, or set preset to robust"),
    ({"preset": "paper", "loss": "log"}, "loss", "leave loss out, or set preset to robust"),
    ({"preset": "paper", "vote_rule": "own-median"}, "vote_rule", "set vote_rule to half"),
    ({"preset": "paper", "mixer": {"peer_rate": 48}}, "mixer.peer_rate", "does not use it; leave it out"),
    ({"preset": "paper", "stretch": False}, "stretch", "does not use it; leave it out"),
    ({"mixer": {"uniform_share": 0.1}, **variant(mixer="five")}, "mixer.uniform_share", "does not use it"),
]

OUT_OF_RANGE: list[dict[str, Any]] = [
    {"flip_probability": 0.5},
    {"known_zero": 1.1},
    {"learning_rate": 0.0},
    {"share": 0.0},
    {"share": 1.0},
    {"committee": 0},
    {"learner": "squint"},
    {"nothing": 1},
]


def faults_of(settings: Settings, *, in_replay: bool) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        load_document({"defaults": settings}, in_replay=in_replay)
    return {fault.path.removeprefix("defaults."): fault.message for fault in caught.value.faults}


def taken(settings: Settings) -> FeedSettings:
    return load_document({"defaults": settings}, in_replay=True).default


@pytest.mark.parametrize("chosen", VARIANTS.values(), ids=VARIANTS)
def test_a_replay_takes_every_variant(chosen: Settings) -> None:
    assert taken(chosen) != FeedSettings()


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "paper"])
def test_a_worker_refuses_each_of_them_and_names_every_setting_at_fault(name: str) -> None:
    chosen = VARIANTS[name]

    faults = faults_of(chosen, in_replay=False)

    expected = {f"method.{setting}" for setting in chosen.get("method", {})}
    assert set(faults) == (expected or {"loss"})
    assert all("stream-peer replay --set" in message for message in faults.values())


@pytest.mark.parametrize("chosen", [{}, {"preset": "paper"}, {"preset": "paper", "vote_rule": "half"}, {"loss": "log"}])
def test_a_worker_serves_both_presets(chosen: Settings) -> None:
    assert only_in_replay(load_document({"defaults": chosen}).default) == []


@pytest.mark.parametrize(("chosen", "path", "reason"), BAD_COMBINATIONS)
def test_what_cannot_be_computed_is_refused_with_its_reason(chosen: Settings, path: str, reason: str) -> None:
    assert reason in faults_of(chosen, in_replay=True)[path]


@pytest.mark.parametrize("method", OUT_OF_RANGE)
def test_what_is_out_of_range_is_refused(method: dict[str, Any]) -> None:
    assert set(faults_of({"method": method}, in_replay=True)) == {f"method.{name}" for name in method}


def test_all_faults_are_named_at_once() -> None:
    chosen = {"preset": "paper", "loss": "log", "vote_rule": "own-median", **variant(learner="hedge", known_one=0.1)}

    in_replay, in_service = (faults_of(chosen, in_replay=place) for place in (True, False))

    assert set(in_replay) == {"loss", "vote_rule", "method", "method.learner", "method.known_zero"}
    assert set(in_service) == {"method.known_one", *in_replay}


def test_settings_of_a_feed_overlay_single_ones_of_the_defaults() -> None:
    feeds = {"econ": variant(learner="top-committee", committee=3)}

    book = load_document({"defaults": variant(pricing="frozen"), "feeds": feeds}, in_replay=True)

    assert book.of("econ").method == MethodSettings(learner="top-committee", committee=3, pricing="frozen")
    assert book.of("other").method == MethodSettings(pricing="frozen")


def test_a_feed_with_the_preset_paper_may_say_that_the_defaults_of_the_others_are_not_its_own() -> None:
    feeds = {"econ": {"preset": "paper", "mixer": {"peer_rate": 24}, "stretch": True}}
    others = {"mixer": {"peer_rate": 48}, "stretch": False}

    assert load_document({"defaults": others, "feeds": feeds}).of("econ") == taken({"preset": "paper"})
    with pytest.raises(SettingsError, match=r"feeds\.econ\.mixer\.peer_rate"):
        load_document({"defaults": others, "feeds": {"econ": {"preset": "paper"}}})


def test_the_documentation_names_every_variant(repository: Path) -> None:
    """Each value of each setting, in the table that the section on variants refers to."""
    section = (repository / "docs" / "generated" / "feed-settings.md").read_text(encoding="utf-8")
    values = _values()

    assert len(values) > 30
    assert [value for name, value in values if value not in section] == []
    assert all(name in section for name, _ in values)


def test_the_variants_of_the_tests_have_each_value_of_each_setting() -> None:
    tried = {pair for chosen in VARIANTS.values() for pair in chosen.get("method", {}).items()}
    built_in = {(name, getattr(BUILT_IN, name)) for name in MethodSettings.__struct_fields__}

    assert set(_values()) <= tried | built_in


def _values() -> list[tuple[str, str]]:
    """Each value of each setting of the method that has names for its values."""
    return [
        (name, value)
        for name, kind in get_type_hints(MethodSettings).items()
        for value in get_args(kind)
        if isinstance(value, str)
    ]
