from dataclasses import asdict

import pytest

from stream_peer.feeds.columns import EXPERT, FEED, RULE_PART, SCALE, VOTE_RULES
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.feeds.reading.rates import HALF, OWN_MEDIAN, outcome_reasons, read_rates, used_rules
from stream_peer.feeds.reading.weights import (
    rows_of,
)
from stream_peer.numerics.error_rates import ClassMomentSums, ClassMomentTerms, ErrorRate, MomentSums
from tests.unit.feeds.sample_sums import FeedSums, agreeing, feed_sums

METHOD = Method()


def class_sums(*, skill: float, share: float, weight: float) -> FeedSums:
    """Moments of many votes for yes with chances ``skill`` and 1 - ``skill``, of answers that are as good."""
    yes = {1: skill, 0: 1.0 - skill}
    chance = {1: share, 0: 1.0 - share}
    means = [
        *(sum(chance[y] * yes[y] ** k for y in (0, 1)) for k in (1, 2, 3)),
        sum(chance[y] * yes[y] for y in (0, 1)),
        sum(chance[y] * yes[y] ** 2 for y in (0, 1)),
    ]
    sums = ClassMomentSums.contribution(ClassMomentTerms(*means))
    return feed_sums(**{f"class_{name}": weight * getattr(sums, name) for name in ClassMomentSums.__dataclass_fields__})


def test_error_rates_without_truth_are_those_of_the_moments() -> None:
    rates = read_rates(agreeing(1000), 0, 0.95, METHOD)

    moments = MomentSums(weight=1000, weight2=1000, pair=250, rest=400, pair2=160, rest2=300, pair_rest=150)
    assert rates.zero == rates.one == pytest.approx(moments.estimate().zero)
    assert rates.measured is None
    assert rates.status == "ok"


def test_outcomes_move_each_class_by_its_own_errors() -> None:
    sums = agreeing(1000).plus(feed_sums(right_zero=27, wrong_zero=3, right_one=12, wrong_one=18))
    rates = read_rates(sums, 0, 0.95, METHOD)

    assert rates.zero < 0.12
    assert rates.one > 0.3
    assert rates.measured == pytest.approx(21 / 60)


def test_rates_too_high_to_price_are_scaled_and_said_to_be_uninformative() -> None:
    sums = agreeing(1000).plus(feed_sums(wrong_zero=500, wrong_one=500))
    rates = read_rates(sums, 0, 0.95, METHOD)

    assert rates.zero + rates.one == pytest.approx(0.8)
    assert rates.estimate.zero + rates.estimate.one > 0.8
    assert rates.status == "uninformative"


def test_a_rule_is_used_once_something_was_scored_under_it() -> None:
    own = feed_sums()
    own[FEED.at("wrong_one", "own-median")] = 1

    assert used_rules(agreeing(3), 0) == (0,)
    assert used_rules(agreeing(3), 1) == (1, 0)
    assert used_rules(agreeing(3).plus(own), 0) == (0, 1)
    assert rows_of((0,)).stop < rows_of((0, 1)).stop == EXPERT.size


def test_own_medians_read_a_rate_for_each_class_and_else_say_why_not() -> None:
    found = read_rates(class_sums(skill=0.8, share=0.25, weight=1e6), 1, 0.95, METHOD)
    nothing = read_rates(class_sums(skill=0.5, share=0.25, weight=1e6), 1, 0.95, METHOD)

    assert found[2:4] == pytest.approx((0.2, 0.2), abs=1e-3)
    assert found.status == "ok"
    assert nothing.status == "insufficient"  # of the symmetric ones that stand in: no question is behind them
    assert nothing.zero == nothing.one
    both = class_sums(skill=0.5, share=0.25, weight=1e6)
    both[FEED.at("moment_weight", "own-median") : FEED.at("pair_rest", "own-median") + 1] = agreeing(1000)[
        FEED.at("moment_weight") : FEED.at("pair_rest") + 1
    ]
    stands_in = read_rates(both, 1, 0.95, METHOD)
    assert stands_in.status == "uninformative"
    assert stands_in.zero == read_rates(agreeing(1000), 0, 0.95, METHOD).zero


def resolved(wrong: int, right: int, *, pair: float = 0.25, answers: float | None = None) -> FeedSums:
    """A thousand questions, of which some have outcomes, as many of 0 as of 1; with means of these and of all."""
    mean = 0.5 if answers is None else answers
    return agreeing(1000).plus(
        feed_sums(
            right_zero=right / 2,
            wrong_zero=wrong / 2,
            right_one=right / 2,
            wrong_one=wrong / 2,
            revealed_pair=pair * (wrong + right),
            answer=1000 * mean,
            answer2=1000 * mean,
        )
    )


@pytest.mark.case("C02")
def test_outcomes_that_show_far_more_errors_contradict_until_they_are_taken_back() -> None:
    before = read_rates(agreeing(1000), 0, 0.95, METHOD)
    after = read_rates(resolved(60, 140), 0, 0.95, METHOD)
    taken_back = read_rates(resolved(60, 140).plus(resolved(60, 140), -1).plus(agreeing(1000)), 0, 0.95, METHOD)

    assert (before.status, after.status) == ("ok", "contradicted")
    assert taken_back == before
    (reason,) = outcome_reasons(after)
    assert reason.startswith("30.0% of the reference answers to 200 resolved questions were wrong")
    assert not outcome_reasons(before)


def test_outcomes_within_what_the_estimate_allows_leave_it_ok() -> None:
    for wrong in (0, 10, 20, 30):
        rates = read_rates(resolved(wrong, 200 - wrong), 0, 0.95, METHOD)
        assert rates.status == "ok", wrong
        assert not outcome_reasons(rates)


def test_a_few_outcomes_contradict_nothing() -> None:
    assert read_rates(resolved(49, 0), 0, 0.95, METHOD).contradiction is None


@pytest.mark.parametrize(
    ("sums", "said"),
    [
        (resolved(20, 180, pair=0.6), "agreement of the experts 0.60, of those 0.16"),
        (resolved(20, 180, answers=0.2), "share of reference answers that are 1 0.50, of those 0.12"),
    ],
)
def test_outcomes_of_unlike_questions_are_a_biased_reveal(sums: FeedSums, said: str) -> None:
    rates = read_rates(sums, 0, 0.95, METHOD)

    assert rates.status == "biased-reveal"
    (reason,) = outcome_reasons(rates)
    assert said in reason


def test_a_biased_reveal_may_explain_a_contradiction_and_both_are_said() -> None:
    rates = read_rates(resolved(80, 120, pair=0.6), 0, 0.95, METHOD)

    assert rates.status == "biased-reveal"
    assert len(outcome_reasons(rates)) == 2


def test_rates_that_nobody_estimated_are_not_contradicted() -> None:
    known = Method(rate=lambda *_: ErrorRate(0.1, 0.1, 0.1, 0.1, 0.0, "ok", 0.0), estimates=False)

    assert read_rates(resolved(100, 100), 0, 0.95, known).contradiction is None


@pytest.mark.parametrize("rule", [HALF, OWN_MEDIAN])
def test_an_estimator_finds_all_that_is_summed_for_it_in_one_place(rule: int) -> None:
    """Agreement, classes, groups and outcomes: each number is that of the column of its name."""
    feed = [round(place * SCALE) for place in range(FEED.size)]
    read = RateSums(feed, rule)

    found = {"moment_weight": read.moments.weight, "moment_weight2": read.moments.weight2}
    found |= {name: getattr(read.moments, name) for name in ("pair", "rest", "pair2", "rest2", "pair_rest")}
    found |= {f"class_{name}": value for name, value in asdict(read.classes).items()}
    found |= dict(zip(FEED.between("group_weight", "group_123"), read.groups, strict=True))
    found |= asdict(read.truth) | {"revealed_pair": read.revealed_pair, "answer": read.answer, "answer2": read.answer2}

    assert found == {name: FEED.at(name, VOTE_RULES[rule]) for name in found}
    assert {*RULE_PART, *FEED.between("class_weight", "class_both_both")} < {*found}
