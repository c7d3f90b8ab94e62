"""Shadows in a settings document: what they inherit, and every fault by its path."""

from typing import Any

import pytest

from stream_peer.errors import SettingsError
from stream_peer.settings.feed.document import MOST_SHADOWS, load_document
from stream_peer.settings.feed.model import MixerSettings, ShadowSettings


def shadows_of(document: dict[str, Any], feed: str = "econ") -> tuple[ShadowSettings, ...]:
    return load_document(document).of(feed).shadows


def faults_of(*shadows: object, **beside: object) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        load_document({"defaults": {**beside, "shadows": list(shadows)}}, in_replay=True)
    return {fault.path.removeprefix("defaults."): fault.message for fault in caught.value.faults}


def test_what_a_shadow_leaves_out_is_as_it_is_live() -> None:
    found = shadows_of(
        {
            "defaults": {"mixer": {"peer_rate": 0.5, "truth_rate": 0.3}, "shadows": [{"name": "default"}]},
            "feeds": {
                "econ": {
                    "mixer": {"truth_rate": 0.4},
                    "stretch": False,
                    "shadows": [
                        {"name": "a", "mixer": {"peer_rate": 0.9}},
                        {"name": "b", "stretch": True, "mixer": None},
                    ],
                }
            },
        }
    )

    assert found == (
        ShadowSettings(name="a", mixer=MixerSettings(peer_rate=0.9, truth_rate=0.4), stretch=False),
        ShadowSettings(name="b", mixer=MixerSettings(peer_rate=0.5, truth_rate=0.4), stretch=True),
    )


@pytest.mark.parametrize("nothing", [None, []])
def test_a_feed_may_have_none_though_others_do(nothing: object) -> None:
    document = {"defaults": {"shadows": [{"name": "a"}]}, "feeds": {"econ": {"shadows": nothing}}}

    assert shadows_of(document) == ()
    assert len(shadows_of(document, "other")) == 1


def test_another_name_or_another_setting_is_another_shadow() -> None:
    variants = [
        {"name": "a"},
        {"name": "b"},
        {"name": "a", "stretch": False},
        {"name": "a", "mixer": {"truth_rate": 0.123}},
    ]

    numbers = {shadows_of({"defaults": {"shadows": [variant]}})[0].id for variant in variants}

    assert len(numbers) == len(variants)
    assert all(-(2**63) <= number < 2**63 for number in numbers)


@pytest.mark.parametrize(
    ("setting", "value"), [("loss", "log"), ("memory", 5), ("method", {}), ("vote_rule", "half"), ("guard", "on")]
)
def test_what_changes_the_meaning_of_sums_runs_in_a_replay(setting: str, value: object) -> None:
    message = faults_of({"name": "other", setting: value})[f"shadows.0.{setting}"]

    assert message.startswith("changes what the sums mean")
    assert f"in one replay: stream-peer replay FILE (or --from-log FEED) --shadow other:{setting}=" in message


def test_what_changes_which_rounds_there_are_runs_in_a_replay_of_files() -> None:
    message = faults_of({"name": "daily", "round_every": "1d"})["shadows.0.round_every"]

    assert message.startswith("changes which rounds there are")
    assert message.endswith("in one replay: stream-peer replay FILE --shadow daily:round_every=VALUE")


def test_a_prior_that_trust_sets_needs_version_2_of_the_method() -> None:
    live, shadow = {"trust_prior": "on"}, {"name": "a", "mixer": {"trust_prior": "off"}}
    path = "mixer.trust_prior"

    stays = faults_of(shadow, {"name": "b"}, method_version=1, mixer=live)

    assert stays.keys() == {path, f"shadows.0.{path}"}
    assert all(message.startswith("from version 2 of the method on") for message in stays.values())
    for beside in ({}, {"method_version": 2, "mixer": live}):
        assert shadows_of({"defaults": {**beside, "shadows": [shadow]}})[0].mixer.trust_prior == "off"
    assert shadows_of({"defaults": {"method_version": 1, "mixer": {"trust_prior": "off"}}}) == ()


def test_the_preset_paper_has_no_prior_that_trust_sets() -> None:
    with pytest.raises(SettingsError, match=r"feeds\.econ\.mixer\.trust_prior.* nothing is mixed"):
        load_document({"feeds": {"econ": {"preset": "paper", "mixer": {"trust_prior": "on"}}}})


def test_what_is_no_matter_of_forecasts_is_refused_and_so_is_what_nobody_knows() -> None:
    found = faults_of({"name": "a", "confidence": 0.9, "mixers": {}})

    assert found["shadows.0.confidence"].startswith("does not change what is forecast")
    assert found["shadows.0.mixers"].startswith("not known here")


def test_every_fault_names_the_shadow_that_it_is_of() -> None:
    found = faults_of(
        {"name": "good"},
        {"name": "good"},
        {"name": "two words"},
        {"mixer": {"peer_rate": 1.0}},
        "text",
        {"name": "unbalanced", "mixer": {"prior_mean": 0.9}},
        {"name": "backwards", "mixer": {"peer_rate": -1.0}},
        {"name": "misspelt", "mixer": {"peer_rat": 1.0}},
    )

    assert found["shadows.1.name"] == "another shadow is named good"
    assert "40 letters" in found["shadows.2.name"]
    assert "40 letters" in found["shadows.3.name"]
    assert "must be a mapping" in found["shadows.4"]
    assert found["shadows.5.mixer"].startswith("the four priors sum to")
    assert "> 0.0" in found["shadows.6.mixer.peer_rate"]
    assert "did you mean peer_rate" in found["shadows.7.mixer.peer_rat"]
    assert len(found) == 7


def test_a_fault_of_the_live_mixer_is_told_once() -> None:
    assert set(faults_of({"name": "a"}, mixer={"prior_mean": 0.9})) == {"mixer"}


def test_a_feed_has_so_many_shadows_at_most() -> None:
    many = [{"name": f"shadow-{number}"} for number in range(MOST_SHADOWS + 1)]

    assert "9 are given, a feed can have 8" in faults_of(*many)["shadows"]


@pytest.mark.parametrize("given", ["eager", {"name": "eager"}, 3])
def test_shadows_are_a_list(given: object) -> None:
    with pytest.raises(SettingsError, match="must be a list of shadows"):
        load_document({"defaults": {"shadows": given}})


@pytest.mark.parametrize("other", [{"preset": "paper"}, {"method": {"mixer": "select"}}])
def test_where_the_mixer_is_another_there_is_nothing_to_vary(other: dict[str, Any]) -> None:
    assert "a shadow varies the mixer auto" in faults_of({"name": "a"}, **other)["shadows"]
