"""The feed settings document: layers, durations, and every fault at once."""

from typing import Any

import pytest

from stream_peer.errors import SettingsError
from stream_peer.settings.feed.document import document_hash, load_document
from stream_peer.settings.feed.model import DURATIONS, MEANING, FeedSettings, parse_duration


def faults_of(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        load_document(document, origin="feeds.yaml")
    assert {fault.origin for fault in caught.value.faults} == {"feeds.yaml"}
    return {fault.path: fault.message for fault in caught.value.faults}


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500),
        ("90s", 90_000),
        ("5m", 300_000),
        ("24h", 86_400_000),
        ("7d", 604_800_000),
        ("2w", 1_209_600_000),
        ("2y", 63_072_000_000),
        (" 1.5 h ", 5_400_000),
        (60, 60_000),
        (0.25, 250),
    ],
)
def test_durations_are_text_with_a_unit_or_seconds(text: str | float, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1s", "1 fortnight", "1h30m"])
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_duration(text)


@pytest.mark.parametrize("value", [True, float("inf"), float("nan"), 1e308, 1e30, 10**400, "10001y", "9" * 400 + "y"])
def test_what_no_clock_could_count_is_a_fault_and_no_crash(value: object) -> None:
    assert set(faults_of({"defaults": {"max_open": value}})) == {"defaults.max_open"}


def test_the_clock_is_shared_by_all_feeds_and_so_is_its_skew() -> None:
    assert "under defaults" in faults_of({"feeds": {"econ": {"skew": "1h"}}})["feeds.econ.skew"]
    assert load_document({"defaults": {"skew": "1h"}, "feeds": {"econ": {}}}).of("econ").skew == 3_600_000


@pytest.mark.parametrize("name", [None, 1, True, "", "a b", "x" * 101])
def test_what_is_no_name_of_a_feed_is_a_fault(name: object) -> None:
    assert "a feed name has" in faults_of({"feeds": {name: {}}})[f"feeds.{name}"]


def test_an_empty_document_gives_the_built_in_settings() -> None:
    book = load_document({})

    assert book.default == book.of("anything") == FeedSettings()


def test_a_feed_overlays_the_defaults_which_overlay_the_built_in_ones() -> None:
    book = load_document({"defaults": {"grace": "2m", "quorum": 5}, "feeds": {"econ": {"grace": "1h"}}})

    assert book.of("econ").grace == 3_600_000
    assert book.of("econ").quorum == book.of("other").quorum == 5
    assert book.of("other").grace == 120_000
    assert book.of("other").round_every == FeedSettings().round_every


def test_nested_settings_overlay_field_by_field() -> None:
    defaults = {"mixer": {"prior_mean": 0.3, "prior_peer": 0.45}}

    book = load_document({"defaults": defaults, "feeds": {"econ": {"mixer": {"peer_rate": 1.0}}}})

    assert book.of("econ").mixer.prior_mean == 0.3
    assert book.of("econ").mixer.peer_rate == 1.0


def test_a_historical_feed_has_no_limit_of_lateness_and_no_idle_clock() -> None:
    book = load_document({"feeds": {"old": {"history": True}, "strict": {"history": True, "backdate_limit": "1h"}}})

    assert (book.of("old").backdate_limit, book.of("old").idle_after) == (None, None)
    assert book.of("strict").backdate_limit == 3_600_000


def test_every_fault_is_named_at_once_with_its_path() -> None:
    document = {
        "defaults": {"grace": "soon", "min_experts": 1},
        "feeds": {"econ": {"colour": "blue", "confidence": 2}, "a b": {}, "econ\n": {}},
        "feed": {},
    }

    faults = faults_of(document)

    assert set(faults) == {
        "feed",
        "defaults.grace",
        "defaults.min_experts",
        "feeds.econ.colour",
        "feeds.econ.confidence",
        "feeds.a b",
        "feeds.econ\n",
    }


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"defaults": []}, "defaults"),
        ({"defaults": 7}, "defaults"),
        ({"feeds": ["econ"]}, "feeds"),
        ({"feeds": {"econ": "fast"}}, "feeds.econ"),
    ],
)
def test_what_is_no_mapping_is_a_fault(document: dict[str, Any], path: str) -> None:
    assert path in faults_of(document)


@pytest.mark.parametrize("variant", [{"preset": "paper"}, {"method": {"reference": "mean"}}])
def test_the_guard_is_for_reference_answers_as_they_are_built_in(variant: dict[str, Any]) -> None:
    assert load_document({"feeds": {"econ": {"guard": "on"}}}).of("econ").guard == "on"
    with pytest.raises(SettingsError, match="guards the default reference answers"):
        load_document({"feeds": {"econ": {"guard": "on", **variant}}}, in_replay=True)


@pytest.mark.parametrize("rule", ["half", "own-median", "auto"])
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_losses_and_vote_rules_can_be_chosen(rule: str, loss: str) -> None:
    settings = load_document({"feeds": {"econ": {"vote_rule": rule, "loss": loss}}}).of("econ")

    assert (settings.vote_rule, settings.loss) == (rule, loss)


def test_own_medians_need_three_voters_a_round_and_auto_does_without() -> None:
    message = faults_of({"feeds": {"econ": {"vote_rule": "own-median", "min_experts": 2}}})["feeds.econ.vote_rule"]

    assert "three voters a round" in message
    assert "min_experts is 2" in message
    assert load_document({"defaults": {"vote_rule": "auto", "min_experts": 2}}).default.min_experts == 2


def test_priors_must_sum_to_one() -> None:
    assert "sum to 1.1, not 1" in faults_of({"defaults": {"mixer": {"prior_mean": 0.5}}})["defaults.mixer"]


def test_the_hash_names_the_content_not_the_order() -> None:
    one = {"defaults": {"grace": "1m", "quorum": 3}, "feeds": {}}
    other = {"defaults": {"quorum": 3, "grace": "1m"}}

    assert document_hash(one) == document_hash(other) == load_document(one).hash
    assert document_hash(one) != document_hash({"defaults": {"quorum": 4, "grace": "1m"}})
    assert len(document_hash({})) == 8


def test_meaning_changes_with_each_meaning_setting_and_with_no_other() -> None:
    base = FeedSettings()

    assert len(base.meaning()) == len(MEANING)
    assert FeedSettings(min_experts=4).meaning() != base.meaning()
    assert FeedSettings(seed="other").meaning() != base.meaning()
    assert FeedSettings(publish_every=0).meaning() == base.meaning()


def test_every_setting_in_milliseconds_is_read_as_a_duration() -> None:
    spans = {name for name in FeedSettings.__struct_fields__ if isinstance(getattr(FeedSettings(), name), int)}

    assert spans - {"history", "min_experts", "stretch", "top_experts", "ledger_max", "method_version"} == DURATIONS - {
        "forecast_for"
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("warm_up_questions", -1),
        ("warm_up_questions", float("inf")),
        ("dependence_z", 0),
        ("dependence_z", "nan"),
        ("measured_error_rate", 0),
        ("measured_error_rate", 1.5),
        ("rank_correlation", 1),
        ("rank_correlation", -1),
        ("mood", 1),
    ],
)
def test_limits_of_trust_that_mean_nothing_are_faults(name: str, value: object) -> None:
    assert list(faults_of({"defaults": {"trust": {name: value}}})) == [f"defaults.trust.{name}"]


@pytest.mark.parametrize(
    ("settings", "path", "message"),
    [
        (
            {"method": {"learner": "hdge"}},
            "method.learner",
            "must be one of ada-normal-hedge, hedge, any-time-hedge, ada-hedge, fixed-share, follow-the-leader, "
            "top-committee, got 'hdge'; did you mean hedge",
        ),
        ({"method": {"lerner": 1}}, "method.lerner", "no such setting; there are reference, against, groups, "),
        ({"method": {"lerner": 1}}, "method.lerner", "did you mean learner?"),
        ({"mixer": {"peer_rat": 1}}, "mixer.peer_rat", "did you mean peer_rate"),
        ({"trust": {"dependance_z": 1}}, "trust.dependance_z", "did you mean dependence_z?"),
        ({"loss": "squard"}, "loss", "must be one of squared, log, spherical, got 'squard'; did you mean squared?"),
        ({"guard": True}, "guard", "must be one of auto, off, on, got True"),
        ({"shadows": [{"name": "a", "mixer": {"peer_rat": 1}}]}, "shadows.0.mixer.peer_rat", "did you mean peer_rate"),
    ],
)
def test_a_misspelt_name_or_word_is_told_with_those_that_there_are(
    settings: dict[str, object], path: str, message: str
) -> None:
    assert message in faults_of({"defaults": settings})[f"defaults.{path}"]


def test_every_fault_of_nested_settings_is_named_at_once() -> None:
    settings = {"mixer": {"peer_rate": -1, "truth_rte": 2}, "method": {"learner": "hdge", "share": 7}}

    assert set(faults_of({"defaults": settings})) == {
        "defaults.mixer.peer_rate",
        "defaults.mixer.truth_rte",
        "defaults.method.learner",
        "defaults.method.share",
    }


def test_limits_of_trust_are_read_and_their_built_in_ones_stand() -> None:
    trust = load_document({"defaults": {"trust": {"dependence_z": 5, "rank_correlation": 0}}}).default.trust

    assert (trust.dependence_z, trust.rank_correlation) == (5.0, 0.0)
    assert (trust.warm_up_questions, trust.measured_error_rate) == (200.0, 0.3)
