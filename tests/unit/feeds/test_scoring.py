import numpy as np
import pytest
from msgspec.structs import astuple, replace

from stream_peer.feeds.methods.method import NO_ANSWERS
from tests.unit.feeds.sample_facts import facts_of, scoring_inputs


def test_facts_of_a_round_worked_out_by_hand() -> None:
    facts = facts_of([0.9, 0.6, 0.2, 0.5], under=scoring_inputs(4, select=[0.5, 0.25, 0.25, 0.0]))

    assert astuple(facts.votes) == (0, True, 1, False, NO_ANSWERS, 3, 2, 3)
    assert facts.answers.tolist() == [0, 1, 1, 1]  # the others of the first two are tied: .6 + .2 < 1 < .9 + .2
    assert facts.ties.tolist() == [1, 1, 0, 0]
    assert facts.mix.mean == pytest.approx(0.55)
    assert facts.losses.own[1] == pytest.approx(0.5 * 0.01 + 0.25 * 0.16 + 0.25 * 0.64)
    assert facts.losses.own[2] == pytest.approx(0.5 * 0.81 + 0.25 * 0.36 + 0.25 * 0.04)
    assert facts.losses.own[0] == pytest.approx(0.5 * 0.81 + 0.25 * 0.16 + 0.25 * 0.64)
    assert facts.losses.spread == pytest.approx(0.5 * 0.8 + 0.25 * 0.2 + 0.25 * 0.6)
    assert facts.mix.mix == pytest.approx(0.55)
    assert facts.mix.stretched == pytest.approx(0.5 + 1.5 * 0.05)


def test_experts_are_drawn_in_proportion_to_their_weights() -> None:
    select = [0.5, 0.0, 0.3, 0.2]
    drawn = [
        facts_of([0.1, 0.2, 0.3, 0.4], under=scoring_inputs(4, select=select, ticket=(k + 0.5) / 100)).selected
        for k in range(100)
    ]

    assert [drawn.count(position) for position in range(4)] == [50, 0, 30, 20]


def test_the_safety_net_moves_the_published_mix_towards_the_mean() -> None:
    under = scoring_inputs(2, net_share=0.25)
    under = replace(under, weights=replace(under.weights, peer=np.array([1.0, 0.0])))

    facts = facts_of([1.0, 0.0], under=under)

    assert facts.mix.before_net == pytest.approx(0.75)
    assert facts.mix.mix == pytest.approx(0.75 * 0.75 + 0.25 * 0.5)


def test_too_few_voters_make_low_evidence() -> None:
    assert not facts_of([0.9, 0.8, 0.5, 0.5]).votes.counts
    assert not facts_of([0.5]).votes.counts
    assert facts_of([0.9, 0.8, 0.3]).votes.counts


def test_under_own_medians_a_vote_is_a_forecast_above_the_experts_threshold() -> None:
    thresholds = [0.2, 0.3, 0.1, 0.4]
    under = scoring_inputs(4, thresholds=thresholds)

    facts = facts_of([0.3, 0.2, 0.3, 0.4], under=under)

    # published at one half: all say no; by the rule the fourth does not vote
    assert astuple(facts.votes) == (1, True, 0, False, NO_ANSWERS, 4, 0, 3)
    assert facts.answers.tolist() == [1, 1, 1, 1]  # the others' leads are 0, 2, 0, 1; of the ties one leans by .1
    assert facts.ties.tolist() == [1, 0, 1, 0]
    assert facts.moments.classes == pytest.approx((2 / 3, 1 / 3, 0.0, 1.0, 2 / 3))


def test_at_one_half_there_are_no_moments_of_classes() -> None:
    assert facts_of([0.9, 0.6, 0.2]).moments.classes is None
    assert facts_of([0.9, 0.6], under=scoring_inputs(2, thresholds=[0.5, 0.5])).moments.classes is None


IN_TEAMS = np.array([4, 4, 4, -1, -1])


def test_members_of_a_team_are_scored_against_the_others_alone() -> None:
    under = replace(scoring_inputs(5), teams=IN_TEAMS)

    facts = facts_of([0.9, 0.8, 0.7, 0.2, 0.1], under=under)

    assert facts.answers.tolist() == [0, 0, 0, 1, 1]
    assert (facts.votes.answer, facts.votes.half_voters, facts.votes.half_yes) == (1, 5, 3)  # everybody's, one by one
    assert (facts.votes.voters, facts.votes.counts) == (3, 1)
    assert (facts.moments.pair, facts.moments.rest) == pytest.approx((-1 / 3, -1.0))  # of the teams' pairs one agrees
    assert facts.moments.ones == pytest.approx(2 / 3)


def test_a_round_of_one_team_is_of_one_mind_and_does_not_count() -> None:
    one_team = facts_of([0.9, 0.8, 0.7, 0.6], under=replace(scoring_inputs(4), teams=np.zeros(4, np.int64)))
    two_minds = facts_of([0.9, 0.8, 0.7, 0.6], under=replace(scoring_inputs(4), teams=np.array([0, 0, 0, -1])))

    assert (one_team.votes.voters, one_team.votes.counts, one_team.moments.pair) == (1, 0, 0.0)
    assert (two_minds.votes.voters, two_minds.votes.counts, two_minds.moments.pair) == (2, 0, 1.0)


def test_teams_of_one_leave_the_facts_as_they_are_without_teams() -> None:
    generator = np.random.default_rng(7)
    for thresholds in (None, generator.random(9).tolist()):
        forecasts = generator.random(9).tolist()
        under = scoring_inputs(9, thresholds=thresholds)
        plain = facts_of(forecasts, under=under).pack()
        for teams in (np.full(9, -1), np.arange(9)):
            assert facts_of(forecasts, under=replace(under, teams=teams)).pack() == plain


def test_under_own_medians_class_moments_are_of_experts_of_different_teams() -> None:
    under = replace(scoring_inputs(5, thresholds=[0.5] * 5), teams=IN_TEAMS)

    classes = facts_of([0.9, 0.8, 0.2, 0.9, 0.1], under=under).moments.classes

    # the team says yes by two thirds, one other yes, one no; those who are not in it hear 2 : 1 and 1 : 0
    assert classes is not None
    assert classes[:2] == pytest.approx((5 / 9, 2 / 9))
    assert classes[2] == pytest.approx(0.0, abs=1e-15)
