"""What outcomes do to the status of error rates and to trust; and what teams do to both."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import ExpertChanged, OutcomeRevealed, Round
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import Changelog, expert, folded, log_of, newest, outcome, round_of, stage
from tests.order_free import order_free

Event = Round | OutcomeRevealed | ExpertChanged
N_EXPERTS = 9


class World:
    """Independent experts, right three times in four, but for a share of questions on which all of them are wrong."""

    def __init__(self, *, shocks: float, questions: int = 320, copies: int = 1, seed: int = 1) -> None:
        generator = np.random.default_rng(seed)
        self.outcomes = (generator.random(questions) < 0.4).astype(int).tolist()
        self.shaken = (generator.random(questions) < shocks).tolist()
        self.rounds: list[Round] = []
        for number, y in enumerate(self.outcomes):
            right = generator.random(N_EXPERTS) < (0.0 if self.shaken[number] else 0.75)
            right[:copies] = right[0]
            sharp = generator.uniform(0.05, 0.45, N_EXPERTS)
            forecasts = 0.5 + sharp * np.where(right == (y == 1), 1.0, -1.0)
            self.rounds.append(round_of(f"q{number}", {f"e{k}": float(p) for k, p in enumerate(forecasts)}))

    def told(self, questions: Sequence[int]) -> list[OutcomeRevealed]:
        return [outcome(f"q{number}", 1 if self.outcomes[number] else 0) for number in questions]

    @property
    def all_of_them(self) -> range:
        return range(len(self.rounds))


def said(events: Sequence[Event], into: FeedStage | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last ``error-rates`` and ``weights``."""
    _, effects = folded(log_of(events), into or stage(vote_rule="half"))
    return newest(effects.outputs, topics.ERROR_RATES)["f"], newest(effects.outputs, topics.WEIGHTS)["f"]


def test_how_often_experts_err_together_is_told_by_outcomes_and_by_nothing_else() -> None:
    """Votes show that they do, being more alike on some questions than independent ones ever are."""
    world = World(shocks=0.25)

    blind = said(world.rounds)
    rates, weights = said([*world.rounds, *world.told(world.all_of_them)])

    assert [record["status"] for record in blind] == ["ok", "dependent"]
    assert blind[0]["zero"] < 0.15
    assert [rates["status"], weights["status"]] == ["contradicted", "contradicted"]
    assert weights["error_rate"]["status"] == "contradicted"
    assert rates["status_reasons"] == weights["status_reasons"][:1]
    assert "experts share errors" in rates["status_reasons"][0]
    assert weights["certificate"] is None


def test_independent_experts_are_borne_out_by_outcomes() -> None:
    world = World(shocks=0.0)

    rates, weights = said([*world.rounds, *world.told(world.all_of_them)])

    assert (rates["status"], rates["status_reasons"]) == ("ok", [])
    assert (weights["status"], weights["status_reasons"]) == ("ok", [])


@pytest.mark.parametrize("chosen", ["what happened", "what all agreed on"])
def test_outcomes_that_were_not_revealed_at_random_are_a_biased_reveal(chosen: str) -> None:
    world = World(shocks=0.0, questions=600)
    agreed = [abs(sum(p > 0.5 for p in event.probabilities) - N_EXPERTS / 2) > 3 for event in world.rounds]
    picked = [n for n in world.all_of_them if (world.outcomes[n] if chosen == "what happened" else agreed[n])]

    rates, weights = said([*world.rounds, *world.told(picked)])
    at_random, _ = said([*world.rounds, *world.told([n for n in world.all_of_them if n % 3 == 0])])

    assert rates["status"] == weights["error_rate"]["status"] == "biased-reveal"
    assert all("unlike the others" in reason for reason in rates["status_reasons"])
    assert at_random["status"] == "ok"


@pytest.mark.case("C02")
@pytest.mark.parametrize("shocks", [0.0, 0.25])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_outcomes_that_are_all_taken_back_leave_error_rates_and_trust_as_they_were(shocks: float, share: float) -> None:
    """With a restart between resolving and retracting."""
    world = World(shocks=shocks, questions=250)
    picked = list(range(int(share * 250)))
    log = log_of([*world.rounds, *world.told(picked), *(outcome(f"q{n}", "open") for n in picked)])
    half = len(log) - len(picked)
    before_rates, before = said(world.rounds)

    first, changelog = stage(vote_rule="half"), Changelog()
    _, resolved = folded(log[:half], first)
    changelog.take(first)
    _, effects = folded(log[half:], changelog.restored(vote_rule="half"))
    rates, weights = (newest(effects.outputs, topic)["f"] for topic in (topics.ERROR_RATES, topics.WEIGHTS))

    assert order_free(topics.ERROR_RATES, rates) == order_free(topics.ERROR_RATES, before_rates)
    assert order_free(topics.WEIGHTS, weights) == order_free(topics.WEIGHTS, before)
    assert (weights["status"], weights["status_reasons"]) == (before["status"], before["status_reasons"])
    if shocks and share == 1.0:
        assert newest(resolved.outputs, topics.ERROR_RATES)["f"]["status"] == "contradicted"


def test_trust_does_not_flicker_where_the_status_of_the_rates_does() -> None:
    world = World(shocks=0.25)
    shaken = [n for n in world.all_of_them if world.shaken[n]]
    calm = [n for n in world.all_of_them if not world.shaken[n]][:60]
    events: list[Event] = [*world.rounds, *world.told(calm)]
    feed_stage, effects = stage(vote_rule="half"), Effects()
    for record in log_of(events):
        feed_stage.step(record, effects)
    steps: list[tuple[str, str]] = []

    def tell(event: OutcomeRevealed) -> None:
        (record,) = log_of([event], len(events) + len(steps))
        feed_stage.step(record, effects)
        view = feed_stage.views()["f"]
        steps.append((view.error_rates.status, view.weights.status))

    for number in shaken:
        tell(*world.told([number]))
        if steps[-1][0] != "ok" and steps[-1][1] == "contradicted":
            break
    for _ in range(5):
        tell(outcome(f"q{number}", "open"))
        tell(*world.told([number]))

    turned = [rates for rates, _ in steps[-11:]]
    assert turned[1:] == ["ok", turned[0]] * 5
    assert {trust for _, trust in steps[-11:]} == {"contradicted"}


TEAMS: list[Event] = [expert("e0", team="red"), expert("e1", team="red"), expert("e2", team="red")]


@pytest.mark.parametrize(("shocks", "picked"), [(0.25, "all"), (0.0, "ones"), (0.25, "few")])
def test_status_and_rates_are_the_same_bits_in_any_order_of_questions(shocks: float, picked: str) -> None:
    """Team and all: those were told before."""
    world = World(shocks=shocks, questions=240, copies=3)
    chosen = {
        "all": list(world.all_of_them),
        "ones": [n for n in world.all_of_them if world.outcomes[n]],
        "few": list(range(40)),
    }[picked]
    outcomes = {event.question_id: event for event in world.told(chosen)}
    records = [said(in_some_order(world.rounds, outcomes, seed)) for seed in range(4)]

    assert len({str(order_free(topics.ERROR_RATES, rates)) for rates, _ in records}) == 1
    assert len({str(order_free(topics.WEIGHTS, weights)) for _, weights in records}) == 1
    assert records[0][0]["status"] == {"all": "contradicted", "ones": "biased-reveal", "few": "ok"}[picked]


def in_some_order(rounds: Sequence[Round], outcomes: Mapping[str, OutcomeRevealed], seed: int) -> list[Event]:
    """Rounds in another order, outcomes anywhere among them, some before their rounds."""
    events: list[Event] = [*rounds, *outcomes.values()]
    random.Random(seed).shuffle(events)
    return [*TEAMS, *events]


@pytest.mark.case("C16")
def test_copies_that_are_named_a_team_neither_spoil_the_rates_nor_the_answers_of_the_others() -> None:
    """Six copies of one expert beside three: unnamed they seem never to err, and outcomes say otherwise."""
    world = World(shocks=0.0, questions=500, copies=6)
    outcomes = world.told(world.all_of_them)
    team: list[Event] = [expert(f"e{k}", team="one mind") for k in range(6)]

    unnamed, _ = said(world.rounds)
    named, _ = said([*team, *world.rounds])
    found_out, trust = said([*world.rounds, *outcomes])
    borne_out, _ = said([*team, *world.rounds, *outcomes])

    assert unnamed["zero"] < 0.08
    assert named["zero"] == pytest.approx(0.5 * sum(list(borne_out["from_truth"].values())[:2]), abs=0.06)
    assert (found_out["status"], trust["status"]) == ("contradicted", "dependent")  # the copies are named
    assert borne_out["status"] == "ok"
