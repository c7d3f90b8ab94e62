"""What meaning settings amount to."""

from typing import Any

import numpy as np
import pytest

from stream_peer.feeds.method import Method, method_of
from stream_peer.numerics.losses import LOSSES, SQUARED
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.method import PAPER
from stream_peer.settings.feed.model import FeedSettings
from tests.feed_variants import DRAWN, GROUPS, KNOWN, LEARNERS, OF_THE_PATH, VARIANTS, Settings, variant


def method(settings: Settings) -> Method:
    return method_of(load_document({"defaults": settings}, in_replay=True).default)


def test_built_in_settings_have_no_variant() -> None:
    built_in = method_of(FeedSettings())

    assert built_in == Method(SQUARED, "auto")
    assert built_in.variant is None
    assert (built_in.is_frozen, built_in.shares, built_in.reads_classes, built_in.side_mixer) == (False,) * 3 + (None,)
    assert (built_in.mixes, built_in.certifies) == (True, True)


def test_the_preset_paper_is_a_variant_of_its_own() -> None:
    paper = method({"preset": "paper"})

    assert paper == Method(SQUARED, "half", PAPER, is_paper=True)
    assert paper.is_frozen
    assert (paper.mixes, paper.certifies, paper.keeps_histograms) == (False, False, False)


def test_the_same_settings_one_by_one_are_not_the_preset() -> None:
    """They take regrets from the weighted mean, as every learner but the preset does."""
    settings = {"against": "group-a", "error_rate": "two-groups", "learner": "any-time-hedge", "pricing": "frozen"}

    assert not method(variant(**settings, mixer="select")).is_paper


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


def test_every_variant_differs_from_what_is_built_in() -> None:
    assert all(method(settings) != method({}) for settings in VARIANTS.values())
