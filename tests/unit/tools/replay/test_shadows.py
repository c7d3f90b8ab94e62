"""Shadows of a replay: what the command line says, and how their forecasts did beside the live ones."""

from typing import Any

import pytest

from stream_peer.errors import SettingsError
from stream_peer.events.outputs import ShadowScores
from stream_peer.log.stage import Effects
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.shadows import (
    Judged,
    Prequential,
    ReplayShadow,
    ShadowRuns,
    books_of,
    documents,
    read_shadows,
    shadow_scores,
    shadow_table,
)
from tests.feed_histories import changed, folded, log_of, outcome, round_of, settings, withdrawn
from tests.unit.tools.replay.file_lines import lines, season

QUICK: dict[str, Any] = {"defaults": {"round_every": "9h", "vote_rule": "half"}}
OFTEN = {"defaults": {**QUICK["defaults"], "shadows": [{"name": "plain", "stretch": False}]}}


def faults_of(*texts: str) -> dict[str, tuple[str, str]]:
    with pytest.raises(SettingsError) as caught:
        documents(read_shadows(texts), QUICK)
    return {fault.path: (fault.origin, fault.message) for fault in caught.value.faults}


def beside(*texts: str, document: dict[str, Any] = QUICK) -> tuple[list[ShadowScores], list[ShadowScores]]:
    """How shadows of a replay did, and those that ran beside the live mixers within it."""
    options = ReplayOptions(document=document)
    shadows = ShadowRuns(read_shadows(texts), options)
    result = replay(shadows.kept([iter(lines(season()))]), options, probes=shadows.probes())
    weights = result.history.feeds["econ"].weights
    assert weights is not None
    return shadows.run()["econ"], list(weights.shadows or ())


def test_a_shadow_is_a_name_and_assignments() -> None:
    assert read_shadows(["a:loss=log", "b.2:mixer={peer_rate: 1, truth_rate: 2},stretch=false,min_experts=2"]) == [
        ReplayShadow("a", ("loss=log",)),
        ReplayShadow("b.2", ("mixer={peer_rate: 1, truth_rate: 2}", "stretch=false", "min_experts=2")),
    ]


@pytest.mark.parametrize("text", ["", "a", "a:", "a:loss", ":loss=log", "a b:loss=log", f"{'x' * 41}:loss=log"])
def test_what_is_no_shadow_is_refused_with_what_one_looks_like(text: str) -> None:
    assert faults_of(text) == {
        text: ("--shadow", "write it as NAME:SETTING=VALUE[,SETTING=VALUE], the name of letters, digits, . - _")
    }


def test_every_fault_of_every_shadow_names_it() -> None:
    assert faults_of("a:lss=log,memory=0", "b:loss=[")["loss=["] == ("--shadow b", "'[' is no YAML")
    assert faults_of("a:lss=log", "b:loss=[")["defaults.lss"] == (
        "--shadow a",
        "no such setting; did you mean loss?",
    )
    assert faults_of("a:loss=log", "a:loss=log")["a:loss=log"][1] == "another shadow is named a"


def test_a_shadow_as_live_has_no_regret_and_the_scores_that_the_service_would_show_as_live() -> None:
    ((same,), (plain,)) = beside("same:stretch=true", document=OFTEN)

    assert same.questions == plain.questions == 40.0
    assert same.regret == 0.0
    live = (same.brier, same.log_score, same.mix_brier)
    assert live == (same.live_brier, same.live_log_score, same.live_mix_brier)
    assert live == pytest.approx((plain.live_brier, plain.live_log_score, plain.live_mix_brier), abs=1e-9)


def test_a_shadow_may_differ_in_meaning_and_in_its_rounds() -> None:
    ((log, rare, timid), _) = beside("log:loss=log", "rare:round_every=30d", "timid:stretch=false", document=OFTEN)

    assert [one.name for one in (log, rare, timid)] == ["log", "rare", "timid"]
    assert rare.brier != rare.live_brier
    assert timid.brier == timid.mix_brier == timid.live_mix_brier


def test_without_shadows_nothing_is_kept_and_nothing_run() -> None:
    none = ShadowRuns([], ReplayOptions())
    files = [iter(lines(season()))]

    assert none.kept(files) is files
    assert none.probes() == []
    assert none.run() == {}


def test_only_questions_that_both_have_resolved_are_compared() -> None:
    live = {
        ("f", "a"): Judged(2.0, (0.2, 0.5, 0.3)),
        ("f", "b"): Judged(1.0, (0.9, 0.9, 0.9)),
        ("g", "c"): Judged(1.0, (0.1,) * 3),
    }
    shadow = {("f", "a"): Judged(9.0, (0.1, 0.4, 0.3)), ("f", "d"): Judged(1.0, (0.0, 0.0, 0.0))}

    found = shadow_scores("s", shadow, live)

    assert [found["f"].questions, found["f"].regret] == pytest.approx([2.0, -0.2])
    assert (found["f"].brier, found["f"].live_brier, found["f"].log_score) == pytest.approx((0.1, 0.2, 0.4))
    assert (found["g"].questions, found["g"].brier) == (0.0, None)


def test_a_table_is_of_every_feed_and_of_what_is_known() -> None:
    scores = shadow_scores("nobody", {}, {("f", "a"): Judged(1.0, (0.1, 0.1, 0.1))})["f"]

    text = shadow_table({"g": [scores], "f": [scores]})

    assert [line for line in text.splitlines() if line.startswith("feed")] == ["feed f", "feed g"]
    assert text.splitlines()[-1].split() == ["nobody", "0", "-", "-", "-", "-", "0.000"]
    assert shadow_table({}).startswith("No feed was scored")


def test_what_is_taken_back_is_judged_no_longer() -> None:
    said = {"a": 0.9, "b": 0.8, "c": 0.3}
    history = [round_of("q", said), round_of("p", said), outcome("q", 1), outcome("p", 0)]
    feed_stage, followed = folded([])[0], Prequential()
    counts = []
    for record in log_of([*history, outcome("q", "open"), withdrawn("p"), changed(delete=True)]):
        effects = Effects()
        feed_stage.step(record, effects)
        followed.after_record(effects, feed_stage)
        counts.append(len(followed.questions))

    assert counts == [0, 0, 1, 2, 1, 0, 0]


def test_settings_of_a_shadow_lie_over_those_that_a_log_names() -> None:
    books = books_of(read_shadows(["log:loss=log,mixer.truth_rate=0.5"]), "econ")
    document = {
        "defaults": {"min_experts": 2, "shadows": [{"name": "gone"}]},
        "feeds": {"econ": {"mixer": {"peer_rate": 0.9}}, "other": {"loss": "squared"}},
    }

    later = books["log"].of_document(document)

    assert (books["log"].of("econ").loss, books["log"].of("other").loss) == ("log", "squared")
    econ = later.of("econ")
    assert (econ.loss, econ.min_experts, econ.mixer.truth_rate, econ.mixer.peer_rate) == ("log", 2, 0.5, 0.9)
    assert econ.shadows == ()
    assert later.of("other").loss == "squared"
    assert later.hash != books["log"].hash
    assert later.of_document({}).of("econ").loss == "log"


def test_a_log_is_folded_under_a_shadow_through_all_changes_of_settings() -> None:
    from stream_peer.feeds.stage import FeedStage
    from stream_peer.lab.methods.replayed import replayed_method

    (book,) = books_of(read_shadows(["other:method.learner=hedge,method.learning_rate=0.5,memory=9"]), "f").values()
    feed_stage = FeedStage(topic="feed-log", partition=0, secret=b"secret", settings=book, method_of=replayed_method)
    changes = settings({"defaults": {"min_experts": 2, "loss": "log"}})
    history = log_of([round_of("q", {"a": 0.9, "b": 0.2}), changes, round_of("p", {"a": 0.9, "b": 0.2})])

    _, effects = folded(history, feed_stage)

    adopted = feed_stage.feeds.feed("f").settings
    assert (adopted.method.learner, adopted.memory, adopted.min_experts, adopted.loss) == ("hedge", 9, 2, "log")
    assert effects.counts["dead-letter", "settings-invalid"] == 0
    assert feed_stage.agrees()


@pytest.mark.parametrize("setting", ["round_every=1d", "quorum=3", "history=true"])
def test_rounds_of_a_log_are_as_they_are(setting: str) -> None:
    with pytest.raises(SettingsError, match="the log has them already; replay files to compare it"):
        books_of(read_shadows([f"a:{setting}"]), "econ")


@pytest.mark.parametrize("setting", ["defaults.loss=log", "feeds.econ.loss=log"])
def test_a_log_is_of_one_feed_and_so_are_its_shadows(setting: str) -> None:
    with pytest.raises(SettingsError, match="name the setting alone"):
        books_of(read_shadows([f"a:{setting}"]), "econ")


def test_a_fault_of_a_shadow_of_a_log_is_told_before_it_is_read() -> None:
    with pytest.raises(SettingsError) as caught:
        books_of(read_shadows(["a:nothing=1", "b:loss=cubic"]), "econ")

    assert [(fault.path, fault.origin) for fault in caught.value.faults] == [
        ("feeds.econ.nothing", "--shadow a"),
        ("feeds.econ.loss", "--shadow b"),
    ]
