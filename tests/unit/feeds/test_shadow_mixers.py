"""Shadows of a feed: what they read, what is kept of them, and when they begin anew."""

from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.columns import SCALE, SHADOW
from stream_peer.feeds.facts import Facts, ScoringInputs, score, unpack
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read, scoring_inputs
from stream_peer.feeds.shadow_mixers import SHADOW_BYTES, ShadowForecast, losses_of_mix, shadow_columns
from stream_peer.feeds.sums import NOTHING, Sums
from stream_peer.feeds.vote_units import Groups
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import NEWEST_METHOD, MixerSettings
from tests.feed_histories import changed, folded, log_of, newest, outcome, round_of, settings, stage
from tests.unit.feeds.sample_facts import facts_of

LIVE = MixerSettings()


def other(name: str) -> dict[str, float | str]:
    """Settings of which that one is another than live; of a prior the others are, too, so that they sum to 1."""
    rest: dict[str, float | str] = {prior: 0.1 for prior in LIVE.__struct_fields__ if prior.startswith("prior_")}
    if name in rest:
        return {**rest, name: 0.7}
    value = getattr(LIVE, name)
    if name == "trust_prior":
        return {name: "off"}
    return {name: 0.1 if value == 0.0 else value / 4.0}


EAGER = {"name": "eager", "mixer": {"peer_rate": 9.0}}


def history(count: int, first: int = 0) -> list[FeedLogRecord]:
    """Rounds of eight experts, the later ones the better; every second question with its outcome."""
    random, events = np.random.default_rng(5 + first), list[FeedLogRecord]()
    for number in range(first, first + count):
        y = int(random.random() < 0.5)
        signs = [1 if random.random() < 0.55 + 0.05 * k else -1 for k in range(8)]
        said = {f"e{k}": 0.5 + (0.1 + 0.04 * k) * sign * (1 if y else -1) for k, sign in enumerate(signs)}
        events.append(round_of(f"q{number}", said))
        if number % 2:
            events.append(outcome(f"q{number}", 1 if y else 0))
    return events


def feed_with(**defaults: object) -> Feed:
    return folded(log_of(history(40)), stage(**defaults))[0].feeds.feed("f")


def inputs_of(feed: Feed) -> ScoringInputs:
    return scoring_inputs(feed, read(feed), feed.roster.listed(feed.buckets.sums), "q", 7)


def next_round(feed: Feed, under: ScoringInputs | None = None) -> Facts:
    experts, forecasts = feed.roster.listed(feed.buckets.sums), np.linspace(0.1, 0.95, 8)
    return score(7, experts, forecasts, under or inputs_of(feed), feed.method)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", MixerSettings.__struct_fields__)
def test_a_shadow_says_what_the_feed_would_say_of_the_same_sums_under_its_settings(name: str, grouped: bool) -> None:
    feed = feed_with(method_version=NEWEST_METHOD, shadows=[{"name": "other", "mixer": other(name)}])
    groups = Groups.of([[0, 1, 2], [6, 7]], 8) if grouped else None
    of_feed = replace(inputs_of(feed), groups=groups, net_share=0.25)
    (said,) = next_round(feed, of_feed).shadows

    feed.adopt(load_document({"defaults": {"method_version": NEWEST_METHOD, "mixer": other(name)}}).default, "")
    live = next_round(feed, replace(inputs_of(feed), groups=groups, net_share=0.25)).mix

    assert [said.mix, said.stretched] == pytest.approx([live.mix, live.stretched], abs=1e-10)
    before = next_round(feed, of_feed).mix
    assert abs(live.mix - before.mix) + abs(live.stretched - before.stretched) > 1e-6


def test_a_shadow_as_live_says_the_same_bits() -> None:
    facts = next_round(feed_with(shadows=[{"name": "same"}, {"name": "plain", "stretch": False}]))
    same, plain = facts.shadows

    assert (same.mix, same.stretched) == (facts.mix.mix, facts.mix.stretched)
    assert (plain.mix, plain.stretched) == (facts.mix.mix, facts.mix.mix)


@pytest.mark.parametrize("groups", [[3, -1, -1, 0, -1, 3, 3, 1], [1, 1, 1, 0, 3, 0, 2, 0], [1, 3, 3, 0, -1, 2, 2, 2]])
def test_a_shadow_says_at_most_1_though_weights_of_groups_are_rounded(groups: list[int]) -> None:
    feed = feed_with(shadows=[EAGER])
    under = replace(inputs_of(feed), groups=Groups(np.array(groups), np.zeros(8, np.bool_)))

    (said,) = score(7, feed.roster.listed(feed.buckets.sums), np.ones(8), under, feed.method).shadows

    assert said.mix <= 1.0


def test_losses_of_a_mix_worked_out_by_hand() -> None:
    assert losses_of_mix(0.6, 0.9, 1) == pytest.approx((0.01, -np.log(0.9), 0.16))
    assert losses_of_mix(0.6, 1.0, 0) == pytest.approx((1.0, -np.log(0.001), 0.36))


def test_a_shadow_and_the_live_mixers_are_scored_on_the_same_round() -> None:
    seen = (ShadowForecast(7, 0.6, 0.8), ShadowForecast(8, 0.5, 0.5))

    first, second = shadow_columns((0.7, 0.9), seen, 1, 0.25)

    assert (first[0], second[0]) == (7, 8)
    values = dict(zip(SHADOW.names(), (first[1] / SCALE).tolist(), strict=True))
    assert values == pytest.approx(
        {
            "questions": 0.25,
            "squared": 0.25 * 0.04,
            "live_squared": 0.25 * 0.01,
            "log": -0.25 * np.log(0.8),
            "live_log": -0.25 * np.log(0.9),
            "mix_squared": 0.25 * 0.16,
            "live_mix_squared": 0.25 * 0.09,
        }
    )


def test_facts_with_shadows_come_back_bit_for_bit_and_without_are_as_long_as_before() -> None:
    bare = facts_of([0.2, 0.9, 0.6])
    shadows = (ShadowForecast(-5, 0.1, 1 / 3), ShadowForecast(2**62, 0.0, 1.0))
    facts = msgspec.structs.replace(bare, shadows=shadows)

    assert unpack(facts.pack()).shadows == shadows
    assert unpack(bare.pack()).shadows == ()
    assert len(facts.pack()) == len(bare.pack()) + 2 * SHADOW_BYTES


def test_sums_of_shadows_are_stored_and_what_is_taken_out_leaves_none() -> None:
    part = shadow_columns((0.5, 0.5), (ShadowForecast(-3, 0.6, 0.8),), 1, 1.0)
    sums = feed_with(shadows=[EAGER]).buckets.sums.copy()
    before = dict(sums.shadows)

    sums.add(msgspec.structs.replace(NOTHING, shadows=part))
    again = Sums.from_bytes(sums.to_bytes(8), 8)
    sums.subtract(msgspec.structs.replace(NOTHING, shadows=part))

    assert again.of_shadow(-3).tolist() == part[0][1].tolist()
    assert set(again.shadows) == {-3, *before}
    assert not again.equals(sums)
    assert sums.shadows.keys() == before.keys()


def test_a_changed_shadow_begins_anew_and_one_that_is_put_back_goes_on() -> None:
    def told(shadow: dict[str, Any], first: int) -> list[FeedLogRecord]:
        return [settings({"defaults": {"shadows": [shadow]}}), *history(10, first)]

    events = [*told(EAGER, 0), *told({**EAGER, "stretch": False}, 10), *told(EAGER, 20)]
    counted = []
    for upto in (11 + 5, 2 * (11 + 5), 3 * (11 + 5)):
        _, effects = folded(log_of(events[:upto]))
        (scores,) = newest(effects.outputs, topics.WEIGHTS)["f"]["shadows"]
        counted.append(scores["questions"])

    assert counted == [5.0, 5.0, 10.0]


def test_rounds_before_a_shadow_came_do_not_have_it_and_none_does_when_it_has_gone() -> None:
    came = settings({"defaults": {"shadows": [EAGER]}})
    went = settings({"defaults": {}})
    told = [outcome("q1", "open"), outcome("q1", 1), outcome("q11", "open"), outcome("q11", 1)]

    _, effects = folded(log_of([*history(10), came, *history(10, 10), *told]))
    _, after = folded(log_of([*history(10), came, *history(10, 10), went, *told]))

    mixed = newest(effects.outputs, topics.MIXED_FORECASTS)
    assert mixed["q1"]["shadows"] == {}
    assert set(mixed["q11"]["shadows"]) == {"eager"}
    assert "shadows" not in newest(after.outputs, topics.MIXED_FORECASTS)["q11"]
    assert "shadows" not in newest(after.outputs, topics.WEIGHTS)["f"]


def test_before_the_first_outcome_scores_are_not_known() -> None:
    _, effects = folded(log_of(history(1)), stage(shadows=[EAGER, {"name": "plain", "stretch": False}]))

    scores = newest(effects.outputs, topics.WEIGHTS)["f"]["shadows"]

    assert [one["name"] for one in scores] == ["eager", "plain"]
    assert {value for one in scores for name, value in one.items() if name not in ("name", "questions", "regret")} == {
        None
    }
    assert {(one["questions"], one["regret"]) for one in scores} == {(0.0, 0.0)}


def test_a_reset_ends_what_was_counted() -> None:
    feed_stage, _ = folded(log_of([*history(10), changed(reset=True)]), stage(shadows=[EAGER]))

    assert [scores.questions for scores in feed_stage.views()["f"].weights.shadows or ()] == [0.0]
