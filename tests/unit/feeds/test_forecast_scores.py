"""How forecasts did, and how often rounds were ties or had too few voters. Columns are told in ``test_evidence``."""

import pytest

from stream_peer.events.feed_log import Verdict
from stream_peer.feeds.columns import FEED
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.scored import low_evidence_share, read_scores, scored_kind, tie_share
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.sums import Sums
from stream_peer.feeds.views import FeedView
from tests.feed_histories import folded, log_of, outcome, round_of
from tests.unit.feeds.sample_facts import facts_of


def view_of(made: FeedStage) -> FeedView:
    return made.views()["f"]


def sums_of(entry: Entry) -> Sums:
    sums = Sums(4)
    sums.add(contribution(entry, Method()))
    return sums


def test_the_scored_forecast_alone_is_scored_and_an_even_number_of_forecasts_has_the_middle_as_its_median() -> None:
    entry = Entry(evidence=1)
    entry.put(facts_of([0.9, 0.6, 0.2], boundary=1))
    entry.put(facts_of([0.3, 0.8, 0.7, 0.9], boundary=2))
    assert read_scores(sums_of(entry).feed) == {}
    entry.first_final = entry.rounds[1]

    scores = read_scores(sums_of(entry).feed)

    assert scores["median"] == pytest.approx(0.25**2, abs=1e-10)
    assert scores["mean"] == pytest.approx(0.325**2, abs=1e-10)
    assert list(scores) == ["mix", "stretched", "mean", "median"]


def test_nothing_is_said_before_there_is_something_to_share() -> None:
    nothing = [0] * FEED.size
    assert (read_scores(nothing), tie_share(nothing), low_evidence_share(nothing)) == ({}, None, None)


def test_scores_are_means_over_resolved_questions_and_follow_a_corrected_outcome() -> None:
    said = {"a": 0.9, "b": 0.8, "c": 0.4}
    log = log_of([round_of("q1", said), round_of("q2", said), outcome("q1", 1), outcome("q2", 0), outcome("q2", 1)])

    before, _ = folded(log[:-1])
    after, _ = folded(log)

    assert view_of(before).brier["median"] == pytest.approx((0.2**2 + 0.8**2) / 2)
    assert view_of(after).brier["median"] == pytest.approx(0.2**2)


def test_ties_are_a_share_of_the_rounds_that_count_and_too_few_voters_one_of_all() -> None:
    even, odd, alone = {"a": 0.9, "b": 0.8, "c": 0.4, "d": 0.1}, {"a": 0.9, "b": 0.8, "c": 0.4}, {"a": 0.9}
    log = log_of([round_of("q1", even), round_of("q2", odd), round_of("q3", odd), round_of("q4", alone)])

    made, effects = folded(log)

    assert view_of(made).ties == pytest.approx(1 / 3)
    assert view_of(made).low_evidence == pytest.approx(1 / 4)
    assert effects.of_feeds == {("f", "scored"): 3, ("f", "low-evidence"): 1}


def test_outcomes_are_counted_by_feed_as_what_they_are() -> None:
    said = {"a": 0.9, "b": 0.8, "c": 0.4}
    told: list[Verdict] = [1, 1, 0, "open", 1, "annulled"]
    log = log_of([round_of("q1", said), *(outcome("q1", verdict) for verdict in told), outcome("q2", 1, feed="g")])

    _, effects = folded(log)

    kinds = {"revealed", "revised", "annulled"}
    counts = {key: count for key, count in effects.of_feeds.items() if key[1] in kinds}
    assert counts == {("f", "revealed"): 2, ("f", "revised"): 2, ("f", "annulled"): 1, ("g", "revealed"): 1}


def test_scored_forecasts_are_counted_with_the_outcome_when_it_is_revealed() -> None:
    low, high, unsure = (
        {"a": 0.15, "b": 0.15, "c": 0.15},
        {"a": 1.0, "b": 1.0, "c": 1.0},
        {"a": 0.5, "b": 0.55, "c": 0.6},
    )
    rounds = [round_of("low", low), round_of("high", high), round_of("unsure", unsure)]
    known = [outcome("low", 0), outcome("high", 1), outcome("unsure", 1), outcome("no round", 1)]
    later = [outcome("low", 1), outcome("high", "annulled")]

    _, effects = folded(log_of([*rounds, *known, *later]))

    counts = {kind: count for (_, kind), count in effects.of_feeds.items() if kind[0] in "01"}
    assert counts == {scored_kind("0.1-0.2", 0): 1, scored_kind("0.9-1.0", 1): 1, scored_kind("0.5-0.6", 1): 1}
