"""What meaning settings amount to."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stream_peer.feeds
from stream_peer.errors import SettingsError
from stream_peer.feeds.methods.method import Method, NeededDraws
from stream_peer.feeds.methods.served import served_method
from stream_peer.lab.methods.replayed import replayed_method
from stream_peer.numerics.losses import LOSSES, SQUARED
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings, MethodSettings
from tests.feed_variants import DRAWN, GROUPS, KNOWN, LEARNERS, OF_THE_PATH, VARIANTS, Settings, variant


def method(settings: Settings) -> Method:
    return replayed_method(load_document({"defaults": settings}, in_replay=True).default)


def test_built_in_settings_choose_the_default() -> None:
    assert served_method(FeedSettings()) == method({}) == Method(SQUARED, "auto")


def test_the_guard_is_on_by_default_for_the_default_method_of_version_2_alone() -> None:
    variant = FeedSettings(method_version=2, method=MethodSettings(learner="ada-hedge"))

    assert served_method(FeedSettings(method_version=2)).guards
    assert served_method(FeedSettings(guard="on")).guards
    assert not served_method(FeedSettings()).guards
    assert not served_method(FeedSettings(method_version=2, guard="off")).guards
    assert not served_method(FeedSettings(method_version=2, preset="paper")).guards
    assert not replayed_method(variant).guards


def test_the_preset_paper_is_a_method_of_its_own_that_a_worker_serves() -> None:
    paper = served_method(FeedSettings(preset="paper"))

    assert paper == method({"preset": "paper"})
    assert (paper.draws, paper.is_frozen, paper.from_mean) == (NeededDraws(2), True, True)
    assert (paper.mixes, paper.adjusts, paper.certifies, paper.keeps_histograms) == (False,) * 4


def test_error_rates_are_read_from_answers_of_groups_under_the_preset_paper_and_estimators_of_groups() -> None:
    by_groups = [name for name, chosen in VARIANTS.items() if method(chosen).evidence == "answers of the groups"]
    by_outcomes = [name for name, chosen in VARIANTS.items() if method(chosen).asks_outcomes]

    assert by_groups == [
        name for name in VARIANTS if "groups" in name or "three" in name or name in ("paper", "all-at-once")
    ]
    assert by_outcomes == ["against-everybody", "outcomes"]


def test_no_module_of_feeds_but_the_methods_asks_which_variant_the_settings_choose() -> None:
    feeds = Path(stream_peer.feeds.__file__).parent
    asked = re.compile(r"settings\.(preset|method|method_version)\b|settings\.feed\.checks")

    assert [
        str(file.relative_to(feeds))
        for file in sorted(feeds.rglob("*.py"))
        if asked.search(file.read_text(encoding="utf-8")) and file.parent.name != "methods"
    ] == []


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_a_worker_serves_no_other_method(settings: Settings) -> None:
    chosen = load_document({"defaults": settings}, in_replay=True).default
    if chosen.preset == "paper" or chosen.method == MethodSettings():
        return

    with pytest.raises(SettingsError, match="only a replay computes it"):
        served_method(chosen)


def test_the_same_settings_one_by_one_are_not_the_preset() -> None:
    """They take regrets from the weighted mean, as every learner but the preset does."""
    settings = {"against": "group-a", "error_rate": "two-groups", "learner": "any-time-hedge", "pricing": "frozen"}

    assert not method(variant(**settings, mixer="select")).from_mean


@pytest.mark.parametrize(
    ("chosen", "vote_rule"),
    [
        *((settings, "auto") for settings in (*LEARNERS.values(), *OF_THE_PATH.values())),
        (variant(flip_probability=0.2), "auto"),
        (variant(reference="mean"), "half"),
        (variant(reference="weighted"), "half"),
        (variant(**GROUPS, error_rate="two-groups"), "half"),
        (variant(**KNOWN), "half"),
        (variant(error_rate="class-moments"), "half"),
        (variant(pricing="frozen"), "half"),
    ],
)
def test_auto_takes_votes_at_one_half_where_the_variant_is_made_for_one_rule(chosen: Settings, vote_rule: str) -> None:
    assert method(chosen).vote_rule == vote_rule
    assert method({**chosen, "vote_rule": "half"}).vote_rule == "half"


def test_own_medians_that_were_asked_for_stay() -> None:
    assert method({"vote_rule": "own-median", **variant(pricing="frozen")}).vote_rule == "own-median"


@pytest.mark.parametrize(
    ("chosen", "certifies"),
    [
        (variant(**KNOWN), True),
        (variant(**DRAWN, error_rate="equal-groups"), True),
        (variant(**GROUPS, error_rate="two-groups"), False),
        (variant(against="everybody", error_rate="outcomes"), False),
    ],
)
def test_a_certificate_needs_answers_of_others_than_the_expert(chosen: Settings, certifies: bool) -> None:
    assert method(chosen).certifies == certifies


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_scaled_to_1_and_know_their_unit(name: Any) -> None:
    chosen = method({"loss": name})
    forecasts = np.array([0.0, 0.3, 1.0])

    losses = chosen.losses(forecasts, np.array([1, 0, 1], np.uint8))

    against, if_one, if_zero = losses
    assert np.all((losses >= 0.0) & (losses <= 1.0))
    assert against.tolist() == [if_one[0], if_zero[1], if_one[2]]
    assert if_one[0] == pytest.approx(1.0)
    assert if_one * chosen.loss_unit == pytest.approx(LOSSES[name].sides(forecasts)[0])


def test_every_other_method_differs_from_the_default() -> None:
    assert all(method(settings) != method({}) for settings in VARIANTS.values())
