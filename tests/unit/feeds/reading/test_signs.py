"""What votes, outcomes and groups say against a feed, read off the sums of a feed that was folded."""

from collections.abc import Callable

import numpy as np
import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.columns import EXPERT, SCALE
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read, signs_of, trust_of
from stream_peer.feeds.reading.trust import FEWEST_RANKED, JUDGED_EACH, MOST_RANKED, read_ranks
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.sums import Sums
from stream_peer.log.stage import Effects
from stream_peer.numerics.answers import votes
from stream_peer.numerics.dependence import DependenceSums
from tests.feed_histories import expert, folded, log_of, outcome, round_of, stage, withdrawn
from tests.reference.plain_formulas import vote_moments

Answers = Callable[[np.random.Generator, int], list[float]]


def alike(generator: np.random.Generator, y: int) -> list[float]:
    right = generator.random(9) < np.linspace(0.6, 0.9, 9)
    return [0.8 if one == (y == 1) else 0.2 for one in right.tolist()]


def of_unlike_questions(generator: np.random.Generator, y: int) -> list[float]:
    """Every other question is hard for everybody."""
    right = generator.random(9) < generator.choice([0.5, 0.95])
    return [0.8 if one == (y == 1) else 0.2 for one in right.tolist()]


def events(answers: Answers, *, questions: int = 260, told: float = 1.0, seed: int = 4) -> list[FeedLogRecord]:
    generator = np.random.default_rng(seed)
    found: list[FeedLogRecord] = []
    for number in range(questions):
        y = int(generator.random() < 0.5)
        found.append(round_of(f"q{number}", {f"e{k}": p for k, p in enumerate(answers(generator, y))}))
        if generator.random() < told:
            found.append(outcome(f"q{number}", 1 if y else 0))
    return found


def feed_of(folded_stage: FeedStage) -> Feed:
    return folded_stage.feeds.by_name["f"]


def test_votes_of_unlike_questions_show_in_the_fourth_moment_and_trust_is_dependent() -> None:
    clean, unlike = (
        feed_of(folded(log_of(events(world, told=0.0)), stage(vote_rule="half"))[0])
        for world in (alike, of_unlike_questions)
    )

    z = [signs_of(feed, read(feed)).dependence.z for feed in (clean, unlike)]
    assert z[0] is not None
    assert z[1] is not None
    assert z[0] < 2.0
    assert z[1] > 3.0
    assert (clean.path_state.trust, unlike.path_state.trust) == ("ok", "dependent")
    assert f"z = {z[1]:.1f}" in trust_of(unlike, read(unlike)).reasons[0]


def test_the_gap_is_that_of_the_votes_of_all_questions_in_subsamples_that_do_not_depend_on_them() -> None:
    history = events(of_unlike_questions, told=0.0)
    feed = feed_of(folded(log_of(history), stage(vote_rule="half"))[0])

    expected = DependenceSums()
    for number in range(260):
        facts = feed.ledger.entries[f"q{number}"].facts()[0]
        moments = vote_moments(votes(facts.forecasts))
        assert moments is not None
        expected = expected.merge(DependenceSums.contribution(moments, int(facts.moments.subsample)))
    reading, found = expected.reading(), read(feed).dependence.found
    assert found.gap == pytest.approx(reading.gap, abs=1e-9)
    assert found.z == pytest.approx(reading.z, rel=1e-6)
    of_others = [round_of(f"q{number}", dict.fromkeys(["a", "b", "c", "d"], 0.9)) for number in range(40)]
    other = feed_of(folded(log_of(of_others), stage(vote_rule="half"))[0])
    for number in range(40):
        subsamples = {each.ledger.entries[f"q{number}"].facts()[0].moments.subsample for each in (feed, other)}
        assert len(subsamples) == 1


def test_members_of_a_team_are_one_voter_in_the_moments() -> None:
    history: list[FeedLogRecord] = [expert(f"e{k}", team="one") for k in range(6)]
    feed = feed_of(folded(log_of([*history, *events(alike, told=0.0, questions=5)]), stage(vote_rule="half"))[0])

    for number in range(5):
        facts = feed.ledger.entries[f"q{number}"].facts()[0]
        yes = votes(facts.forecasts) > 0
        voters = [np.mean(yes[:6]), *yes[6:].astype(float)]
        assert facts.moments.fourth is not None
        assert facts.moments.fourth[0] == pytest.approx(np.mean(voters))
        assert facts.moments.fourth[3] == pytest.approx(np.prod(voters))


def test_peer_losses_of_independent_experts_rank_them_as_outcomes_do() -> None:
    feed = feed_of(folded(log_of(events(alike)), stage(vote_rule="half"))[0])

    ranks = signs_of(feed, read(feed)).ranks
    assert ranks is not None
    assert ranks.experts == 9
    assert ranks.correlation > 0.8


def test_what_is_compared_are_mean_losses_beside_those_present() -> None:
    feed = feed_of(folded(log_of(events(alike, questions=30)), stage(vote_rule="half"))[0])

    rows = [feed.buckets.sums.matrix[EXPERT.at(name), :9] / SCALE for name in ("judged", "judged_peer", "judged_true")]
    peer, true = np.zeros((2, 9))
    for entry in feed.ledger.entries.values():
        (facts,) = entry.facts()
        loss = np.square(facts.forecasts - float(entry.evidence == 1))
        against, one, zero = (np.square(facts.forecasts - answer) for answer in (facts.answers, 1, 0))
        e0, e1 = facts.losses.rate_zero, facts.losses.rate_one
        priced = (against - e0 * one - e1 * zero) / (1.0 - e0 - e1)
        peer += priced - priced.mean()
        true += loss - loss.mean()
    np.testing.assert_allclose(rows, [np.full(9, 30.0), peer, true], atol=1e-9)


def test_ranks_are_read_anew_when_an_outcome_comes_goes_or_its_round_does() -> None:
    history = events(alike, questions=60)
    feed_stage, log = folded(log_of(history), stage(vote_rule="half"))[0], len(history)
    feed = feed_of(feed_stage)
    changes: list[FeedLogRecord] = [
        outcome("q3", "open"),
        outcome("q3", 1),
        withdrawn("q4"),
        round_of("q5", {f"e{k}": 0.1 + 0.05 * k for k in range(9)}),
        round_of("new", {f"e{k}": 0.1 + 0.05 * k for k in range(9)}),
    ]

    for record in log_of(changes, log):
        feed_stage.step(record, Effects())
        assert signs_of(feed, read(feed)).ranks == read_ranks(feed.buckets.sums)


def test_few_experts_or_questions_rank_nobody_and_the_first_thousand_stand_for_all() -> None:
    def ranked(n_experts: int, judged: float) -> int:
        sums = Sums(n_experts)
        sums.matrix[EXPERT.at("judged")] = int(judged * SCALE)
        for name in ("judged_peer", "judged_true"):
            sums.matrix[EXPERT.at(name)] = np.arange(n_experts)
        found = read_ranks(sums)
        return found.experts if found else 0

    assert ranked(FEWEST_RANKED - 1, JUDGED_EACH) == 0
    assert ranked(FEWEST_RANKED, JUDGED_EACH - 0.5) == 0
    assert ranked(FEWEST_RANKED, JUDGED_EACH) == FEWEST_RANKED
    assert ranked(MOST_RANKED + 50, JUDGED_EACH) == MOST_RANKED
