"""Cases from real users that the feed stage decides: too little evidence, and comparisons of experts."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.views import FeedView
from stream_peer.log.stage import Effects
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import METHOD_VERSIONS
from tests.feed_histories import folded, log_of, newest, outcome, round_of, stage

Forecasts = Mapping[str, float]

METHODS: list[dict[str, Any]] = [
    {"vote_rule": "half"},
    {"vote_rule": "own-median"},
    {"vote_rule": "auto", "loss": "log"},
]


def view_of(events: Iterable[FeedLogRecord], **defaults: object) -> FeedView:
    feed_stage, _ = folded(log_of(events), stage(**defaults))
    return feed_stage.views()["f"]


def signals(
    generator: np.random.Generator, skills: Iterable[float], questions: int, share_of_ones: float = 0.5
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Outcomes, and calibrated forecasts of experts who each see them through noise of their own."""
    strengths = np.array(list(skills))
    y = (generator.random(questions) < share_of_ones).astype(int)
    seen = (2 * y - 1)[:, None] * strengths + generator.normal(size=(questions, len(strengths)))
    odds = np.log(share_of_ones / (1 - share_of_ones)) + 2 * strengths * seen
    return y, 1 / (1 + np.exp(-odds))


# --- C15: one forecaster, none, or too few ---


@pytest.mark.case("C15")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_experts", [1, 2])
def test_one_or_two_experts_get_an_answer_that_is_marked_and_moves_no_weight(
    n_experts: int, method: dict[str, Any]
) -> None:
    before: list[FeedLogRecord] = [round_of(f"q{k}", {"a": 0.9, "b": 0.8, "c": 0.2 + 0.1 * (k % 3)}) for k in range(6)]
    few = dict([("a", 0.9), ("c", 0.1)][:n_experts])
    without, _ = folded(log_of(before), stage(**method))
    with_few, effects = folded(log_of([*before, round_of("few", few)]), stage(**method))

    answer = newest(effects.outputs, topics.REFERENCE_ANSWERS)["few"]
    assert (answer["state"], answer["experts"]) == ("low-evidence", n_experts)
    assert answer["reference_answer"] in (0, 1)
    one, two = (feed_stage.views()["f"].weights for feed_stage in (without, with_few))
    assert one.experts == two.experts
    assert one.questions == two.questions


@pytest.mark.case("C15")
def test_a_feed_of_lone_experts_says_that_it_has_too_little_evidence() -> None:
    view = view_of(round_of(f"q{k}", {f"e{k % 4}": 0.8}) for k in range(20))

    assert (view.weights.status, view.weights.experts) == ("low-evidence", [])
    assert view.weights.status_reasons == ["1.00 voters a question, 3 are needed"]
    assert view.weights.certificate is None
    assert view.error_rates.status == "insufficient"


@pytest.mark.case("C15")
def test_without_experts_there_is_no_answer() -> None:
    _, effects = folded(log_of([outcome("q", 1)]))

    assert not newest(effects.outputs, topics.REFERENCE_ANSWERS)


@pytest.mark.case("C15")
def test_how_many_are_enough_is_a_setting() -> None:
    def state(voters: int, min_experts: int) -> str:
        forecasts = {f"e{k}": 0.9 for k in range(voters)}
        _, effects = folded(log_of([round_of("q", forecasts)]), stage(min_experts=min_experts))
        return str(newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]["state"])

    assert [state(voters, 3) for voters in (2, 3)] == ["low-evidence", "scored"]
    assert [state(voters, 5) for voters in (4, 5)] == ["low-evidence", "scored"]
    assert load_document({}).default.min_experts == 3


# --- C19: experts answer different subsets ---


def many(forecasts: np.ndarray[Any, Any], present: np.ndarray[Any, Any]) -> list[FeedLogRecord]:
    """Rounds of those who are present."""
    names = [f"e{e:02d}" for e in range(forecasts.shape[1])]
    rows = zip(forecasts.tolist(), present.tolist(), strict=True)
    return [
        round_of(f"q{k}", {name: p for name, p, here in zip(names, row, who, strict=True) if here})
        for k, (row, who) in enumerate(rows)
    ]


@pytest.mark.case("C19")
@pytest.mark.parametrize(
    ("weights", "vote_rule", "tolerance"),
    [("select", "half", 0.15), ("mix", "half", 1e-9), ("mix", "own-median", 0.05)],
)
def test_an_expert_that_skips_questions_is_treated_as_a_twin_that_answers_like_the_mixture(
    weights: str, vote_rule: str, tolerance: float
) -> None:
    """The last two experts know the same. On questions that the one skips the other repeats what all together say.

    Losses are convex: of a mean forecast it is a little less than the mean loss, which is what is followed. By own
    medians the twin's votes differ on the questions of both, since it said more.
    """
    generator = np.random.default_rng(19)
    _, forecasts = signals(generator, [0.3, 0.9, 0.5, 0.7, 0.6, 0.6], 240)
    forecasts[:, 5] = forecasts[:, 4]
    feed_stage, effects = stage(vote_rule=vote_rule), Effects()
    for number, row in enumerate(forecasts.tolist()):
        by_expert = {f"e{e}": p for e, p in enumerate(row)}
        if number % 2:
            del by_expert["e4"], by_expert["e5"]
            by_expert["e4"] = together(feed_stage, by_expert, weights)
        feed_stage.step(log_of([round_of(f"q{number}", by_expert)], number)[0], effects)

    twin, absent = ({e.id: e for e in feed_stage.views()["f"].weights.experts}[name] for name in ("e4", "e5"))
    assert (twin.coverage, absent.coverage) == (1.0, 0.5)
    assert getattr(absent, weights) == pytest.approx(getattr(twin, weights), rel=tolerance)


@pytest.mark.case("C19")
def test_who_skips_questions_gains_nothing_on_a_twin_that_says_what_all_say_under_version_2() -> None:
    generator = np.random.default_rng(19)
    _, forecasts = signals(generator, [0.3, 0.9, 0.5, 0.7, 0.6, 0.6], 240)
    present = np.ones_like(forecasts, dtype=bool)
    present[1::2, 5] = False
    forecasts[:, 5] = forecasts[:, 4]
    forecasts[1::2, 4] = forecasts[1::2, :4].mean(axis=1)

    twin, absent = view_of(many(forecasts, present), vote_rule="half", method_version=2).weights.experts[4:]

    assert 0.7 * twin.mix < absent.mix <= twin.mix


def together(feed_stage: FeedStage, by_expert: Forecasts, weights: str) -> float:
    """What those present say by their selection weights, or as a plain mean, with which mixers compare."""
    views = feed_stage.views()
    if weights == "mix" or not views:
        return float(np.mean(list(by_expert.values())))
    select = {e.id: e.select for e in views["f"].weights.experts}
    total = sum(select[expert] for expert in by_expert)
    if not total:
        return float(np.mean(list(by_expert.values())))
    return sum(select[expert] * p for expert, p in by_expert.items()) / total


@pytest.mark.case("C19")
def test_who_has_answered_the_easy_questions_keeps_no_credit_of_them_under_version_2() -> None:
    """Then they guess on hard ones, on which the first goes on as before: the picky one weighs less than it did."""
    generator = np.random.default_rng(1)
    _, forecasts = signals(generator, [1.2, 1.2, 0.7, 0.8, 0.9, 0.7, 0.8], 240)
    forecasts[120:] = 0.5 + 0.3 * (forecasts[120:] - 0.5)
    forecasts[:120, 1] = forecasts[:120, 0]
    forecasts[120:, 1] = 1.0 - forecasts[120:, 0]
    events = many(forecasts, np.ones_like(forecasts, dtype=bool))

    earned, spent = (
        view_of(events[:upto], vote_rule="half", method_version=2).weights.experts[1].mix for upto in (120, 240)
    )

    assert spent < 0.5 * earned


@pytest.mark.case("C19")
@pytest.mark.parametrize("method_version", METHOD_VERSIONS)
@pytest.mark.parametrize(("vote_rule", "noise"), [("half", 0.0), ("own-median", 0.1)])
def test_answering_only_easy_questions_does_not_outrank_equal_skill_with_full_coverage(
    vote_rule: str, noise: float, method_version: int
) -> None:
    """Experts 0 and 1 say the same; 1 stays away from every second question, on which all dare less.

    By own medians only one of the two keeps its votes, and selection weights soon single out one of them.
    """
    ahead = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        y, forecasts = signals(generator, [1.2, 1.2, 0.7, 0.8, 0.9, 0.7, 0.8], 240)
        forecasts[1::2] = 0.5 + 0.3 * (forecasts[1::2] - 0.5)
        forecasts[:, 1] = forecasts[:, 0]
        present = np.ones_like(forecasts, dtype=bool)
        present[1::2, 1] = False
        full, picky = view_of(
            many(forecasts, present), vote_rule=vote_rule, method_version=method_version
        ).weights.experts[:2]
        losses = np.square(forecasts - y[:, None])
        assert losses[::2, 1].mean() < losses[:, 0].mean() - 0.02  # a mean of its losses would favour the picky one
        assert (full.coverage, picky.coverage) == (1.0, 0.5)
        ahead.append((picky.select - full.select, picky.mix - full.mix))

    select, mix = np.mean(ahead, axis=0)
    assert select <= noise
    assert mix < 0.0


# --- skewed outcomes ---


@pytest.mark.parametrize("share_of_ones", [0.15, 0.25])
def test_where_yes_is_rare_auto_finds_the_right_expert_and_votes_at_one_half_do_not(share_of_ones: float) -> None:
    """Votes at one half nearly all say no, so that whoever says no most firmly looks best."""
    generator = np.random.default_rng(7)
    skills = [1.1, 0.35, 0.45, 0.5, 0.4, 0.55, 0.45, 0.6, 0.5, 0.35]
    y, forecasts = signals(generator, skills, 700, share_of_ones)
    forecasts[:, 1] = forecasts[:, 1] ** 2 / (forecasts[:, 1] ** 2 + (1 - forecasts[:, 1]) ** 2)  # overconfident
    excess = {}
    events = many(forecasts, np.ones_like(forecasts, dtype=bool))
    losses = np.square(forecasts - y[:, None]).mean(axis=0)
    for vote_rule in ("half", "auto"):
        view = view_of(events, vote_rule=vote_rule)
        elected = max(range(len(skills)), key=lambda e: view.weights.experts[e].select)
        excess[vote_rule] = losses[elected] - losses.min()
        if vote_rule == "auto":
            assert view.error_rates.vote_rule == "own-median"
            assert view.error_rates.zero > view.error_rates.one

    assert int(np.argmin(losses)) == 0
    assert excess["auto"] == 0.0
    assert excess["half"] > 0.01
