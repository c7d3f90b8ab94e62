"""Error rates of version 2 are published with what speaks against them."""

import math
from dataclasses import replace as changed
from typing import get_args

import msgspec
import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import ErrorRates, ErrorRateStatus, TrustState, Weights
from stream_peer.feeds.columns import FEED, UNIT
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.published_rates import PublishedRates, published_rates, rate_by_stated_error
from stream_peer.feeds.reading.rates import Rates, read_rates
from stream_peer.numerics.error_rates import ErrorRate, TruthSums, early_contradiction
from tests.feed_histories import folded, log_of, newest, round_of, stage
from tests.unit.feeds.sample_facts import facts_of
from tests.unit.feeds.sample_sums import FeedSums, agreeing, feed_sums

FIRST, SECOND = Method(), Method(rates_by_trust=True)


def rates_of(sums: FeedSums, method: Method = SECOND) -> Rates:
    return read_rates(sums, 0, 0.95, method)


def published(state: TrustState, sums: FeedSums, method: Method = SECOND, stated_error: float = 0.3) -> PublishedRates:
    return published_rates(rates_of(sums, method), state, stated_error, None, 0.95, method)


@pytest.mark.parametrize("state", get_args(TrustState))
def test_a_status_of_ok_is_that_of_a_feed_whose_trust_does_not_deny_it(state: TrustState) -> None:
    found = published(state, agreeing(1000.0))

    assert found.status == (state if state in ("dependent", "contradicted") else "ok")
    assert found.by_trust == (found.status == state != "ok")
    assert published(state, agreeing(1000.0), FIRST).status == "ok"
    assert published(state, agreeing(10.0)).status == "insufficient"


def test_both_words_are_in_the_catalogue_of_statuses() -> None:
    assert {"dependent", "contradicted"} < {*get_args(ErrorRateStatus)}


@pytest.mark.parametrize("state", get_args(TrustState))
def test_the_interval_goes_up_to_the_doubt_of_the_experts_unless_trust_is_ok(state: TrustState) -> None:
    rates = rates_of(agreeing(1000.0))

    found = published(state, agreeing(1000.0))

    widened = 0.3 + 1.959964 * math.sqrt(0.3 * 0.7 / 1000.0)
    assert found.high == pytest.approx(rates.estimate.high if state == "ok" else widened, abs=1e-6)
    assert published(state, agreeing(1000.0), stated_error=0.01).high == rates.estimate.high
    assert published(state, agreeing(1000.0), FIRST).high == rates.estimate.high


def test_outcomes_lower_what_doubt_widens() -> None:
    known = agreeing(1000.0).plus(feed_sums(right_zero=190.0, wrong_zero=10.0, right_one=180.0, wrong_one=20.0))
    alone = TruthSums(190.0, 10.0, 180.0, 20.0).estimate().high

    assert rate_by_stated_error(rates_of(known), 0.3, 0.95) == pytest.approx(alone)
    assert rate_by_stated_error(rates_of(agreeing(1000.0)), None, 0.95) == 0.475


def test_what_is_measured_and_the_interval_are_means_over_both_outcomes() -> None:
    sums = agreeing(1000.0).plus(feed_sums(right_zero=90.0, wrong_zero=10.0, right_one=12.0, wrong_one=8.0))

    assert published("ok", sums).measured == pytest.approx((0.1 + 0.4) / 2)
    assert published("ok", sums, FIRST).measured == pytest.approx(18.0 / 120.0)
    assert published("ok", agreeing(1000.0).plus(feed_sums(right_one=3.0, wrong_one=1.0))).measured == pytest.approx(
        0.25
    )
    assert published("ok", agreeing(1000.0)).measured is None


FREE = ErrorRate(0.03, 0.03, 0.0, 0.07, 400.0, "ok", 0.0004)


@pytest.mark.parametrize(("wrong", "of", "is_found"), [(10, 28, True), (5, 28, False), (4, 5, True), (1, 1, False)])
def test_few_outcomes_contradict_if_they_differ_grossly(wrong: int, of: int, is_found: bool) -> None:
    found = early_contradiction(TruthSums(right_zero=of - wrong, wrong_zero=wrong), FREE)

    chance = sum(math.comb(of, k) * 0.09**k * 0.91 ** (of - k) for k in range(wrong, of + 1))
    assert found is not None
    assert found.found == is_found == (chance < 0.00135)


def test_from_fifty_outcomes_on_or_without_any_it_is_not_asked() -> None:
    assert early_contradiction(TruthSums(right_zero=20.0, wrong_zero=30.0), FREE) is None
    assert early_contradiction(TruthSums(), FREE) is None
    assert early_contradiction(TruthSums(wrong_zero=9.0), FREE._replace(status="insufficient")) is None


def test_an_interval_that_cannot_hold_is_contradicted_before_fifty_outcomes() -> None:
    sums = agreeing(1000.0).plus(feed_sums(right_zero=4.0, wrong_zero=6.0, right_one=5.0, wrong_one=5.0))

    assert rates_of(sums).status == "contradicted"
    assert rates_of(sums, FIRST).status == "ok"


def test_without_a_difference_few_outcomes_contradict_seldom() -> None:
    """Looked at after each of 49 outcomes, of 2,000 feeds whose rate is the upper end of the interval."""
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(2000):
        wrong = np.cumsum(rng.random(49) < FREE.high)
        alarms += any(
            (found := early_contradiction(TruthSums(float(n - w), float(w)), FREE)) is not None and found.found
            for n, w in enumerate(wrong.tolist(), 1)
        )

    assert alarms < 20


def test_doubt_is_the_mean_forecasts_distance_from_certainty() -> None:
    entry = Entry(weight=0.5)
    entry.put(facts_of([0.9, 0.6, 0.9]))
    entry.put(facts_of([0.1, 0.3, 0.2], boundary=2))

    stated_error = dict(contribution(entry, SECOND).feed)[FEED.at("stated_error")] * UNIT

    assert stated_error == pytest.approx(0.5 * (0.2 + 0.2) / 2)
    assert FEED.at("stated_error") not in dict(contribution(entry, FIRST).feed)
    assert changed(FIRST, rates_by_trust=True) == SECOND


@pytest.mark.parametrize("version", [1, 2])
def test_who_shares_errors_is_dependent_on_the_record_of_the_error_rates(version: int) -> None:
    """Questions differ in difficulty: on the hard ones all eight experts are near to guessing, and do it alike."""
    rng, records = np.random.default_rng(8), []
    for number in range(320):
        votes = rng.random(8) < rng.choice([0.02, 0.5, 0.98])
        records.append(round_of(f"q{number}", {f"e{i}": float(v) for i, v in enumerate(votes)}, final=True))

    _, effects = folded(log_of(records), stage(method_version=version))

    rates = msgspec.convert(newest(effects.outputs, topics.ERROR_RATES)["f"], ErrorRates)
    weights = msgspec.convert(newest(effects.outputs, topics.WEIGHTS)["f"], Weights)
    assert rates.trust == "dependent"
    assert rates.status == weights.error_rate.status == ("ok" if version == 1 else "dependent")
    assert rates.status_reasons == ([] if version == 1 else weights.status_reasons)
    assert rates.high == weights.error_rate.high


def test_a_crowd_of_coins_on_one_outcome_is_contradicted_by_its_votes() -> None:
    """Each of nine experts is right in nine of ten questions whose outcome is 0, and guesses in the others."""
    rng, records = np.random.default_rng(9), []
    for number in range(600):
        votes = rng.random(9) < (0.5 if rng.random() < 0.5 else 0.1)
        records.append(round_of(f"q{number}", {f"e{i}": float(v) for i, v in enumerate(votes)}, final=True))

    _, effects = folded(log_of(records), stage(method_version=2))

    rates = msgspec.convert(newest(effects.outputs, topics.ERROR_RATES)["f"], ErrorRates)
    assert rates.trust == "ok"
    assert rates.status == "contradicted"
    assert "whose outcome is 1" in rates.status_reasons[0]
    assert rates.low <= 0.25 <= rates.high  # the mean of .00 and .50
