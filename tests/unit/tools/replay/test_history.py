from itertools import pairwise, permutations

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import TrustState
from stream_peer.tools.replay.history import MOMENTS, ReplayHistory, rounded
from tests.unit.tools.report.sample_history import FEED, add, losses, mixed, weights


def test_the_highest_revision_of_a_key_is_kept_whatever_comes_last() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q", 5, 0.7, 0.6, 1))
    add(history, topics.MIXED_FORECASTS, mixed("q", 3, 0.2, 0.6, None))
    add(history, topics.PEER_LOSSES, losses("q", 5, {"a": 0.9}, 1))
    add(history, topics.PEER_LOSSES, losses("q", 3, {"b": 0.1}, 1))

    feed = history.feeds[FEED]

    assert feed.forecasts["q"].mix == 0.7
    assert [expert.id for expert in feed.losses["q"].experts] == ["a"]


def test_parts_of_one_revision_are_joined_and_repeats_change_nothing() -> None:
    history = ReplayHistory()
    for shares in ({"a": 0.5}, {"b": 0.5}, {"a": 0.5}, {"b": 0.5}):
        add(history, topics.WEIGHTS, weights(7, shares))

    newest = history.feeds[FEED].weights

    assert newest is not None
    assert [expert.id for expert in newest.experts] == ["a", "b"]


def test_long_histories_are_thinned_but_keep_their_first_and_last_moment() -> None:
    history = ReplayHistory()
    for revision in range(1, 2001):
        add(history, topics.WEIGHTS, weights(revision, {"a": 1.0}, questions=float(revision)))

    moments = history.feeds[FEED].moments

    assert len(moments) <= MOMENTS
    assert (moments[0].revision, moments[-1].revision) == (1, 2000)
    assert max(b.revision - a.revision for a, b in pairwise(moments)) <= 32


def test_scores_are_mean_squared_losses_on_revealed_outcomes_only() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q1", 1, 0.8, 0.6, 1))
    add(history, topics.MIXED_FORECASTS, mixed("q2", 2, 0.4, 0.5, 0))
    add(history, topics.MIXED_FORECASTS, mixed("q3", 3, 0.4, 0.5, None))

    scores = history.feeds[FEED].scores()

    assert scores is not None
    assert scores.questions == 2
    assert scores.mix == pytest.approx((0.04 + 0.16) / 2)
    assert scores.mean == pytest.approx((0.16 + 0.25) / 2)
    assert scores.best is None


def test_the_best_expert_answered_at_least_half_of_the_questions() -> None:
    history = ReplayHistory()
    for number in range(4):
        add(history, topics.MIXED_FORECASTS, mixed(f"q{number}", number + 1, 0.6, 0.5, 1))
        told = {"steady": 0.7, "poor": 0.2} | ({"rare": 1.0} if number == 0 else {})
        add(history, topics.PEER_LOSSES, losses(f"q{number}", number + 1, told, 1))

    scores = history.feeds[FEED].scores()

    assert scores is not None
    assert scores.best is not None
    assert scores.best.expert_id == "steady"
    assert scores.best.loss == pytest.approx(0.09)
    assert scores.best.mix_there == pytest.approx(0.16)


def test_the_best_expert_is_best_on_questions_that_others_answered_too() -> None:
    history = ReplayHistory()
    for number in range(9):
        told = {"steady": 0.7, "other": 0.2} if number < 3 else {"other": 1.0}
        mean = sum(told.values()) / len(told)
        add(history, topics.MIXED_FORECASTS, mixed(f"q{number}", number + 1, 0.6, mean, 1))
        add(history, topics.PEER_LOSSES, losses(f"q{number}", number + 1, told, 1))

    scores = history.feeds[FEED].scores()

    assert scores is not None
    assert scores.questions == 9
    assert scores.best is not None
    assert (scores.best.expert_id, scores.best.questions) == ("steady", 3)


@pytest.mark.parametrize("order", list(permutations(range(6), 6))[::37])
def test_whatever_order_topics_are_read_in_the_scored_round_has_its_experts(order: tuple[int, ...]) -> None:
    """Published first under revision 4; 7 is a correction, 2 a round before the close."""
    first = mixed("q", 4, 0.6, 0.5, None)
    early = msgspec.structs.replace(losses("q", 2, {"a": 0.1}, 1), final=False, boundary="2026-02-28T12:00:00Z")
    records = [
        (topics.PEER_LOSSES, early),
        (topics.PEER_LOSSES, losses("q", 4, {"a": 0.6, "b": 0.5}, 1)),
        (topics.PEER_LOSSES, losses("q", 7, {"a": 0.9, "b": 0.5}, 1)),
        (topics.MIXED_FORECASTS, msgspec.structs.replace(first, revision=2, scored=None)),
        (topics.MIXED_FORECASTS, first),
        (topics.MIXED_FORECASTS, mixed("q", 7, 0.9, 0.5, 1, None, first.scored)),
    ]
    history = ReplayHistory()
    for place in order:
        add(history, *records[place])

    (one,) = history.feeds[FEED].resolved()

    assert (one.forecast.mix, one.said) == (0.6, {"a": 0.6, "b": 0.5})


def test_an_outcome_before_the_close_scores_the_last_round_until_then() -> None:
    history = ReplayHistory()
    for revision, day in enumerate((26, 27), start=1):
        boundary = f"2026-02-{day}T12:00:00Z"
        for changes in ({}, {"state": "annulled"}):
            record = losses("q", revision, {"a": day / 100, "b": 0.5}, 1)
            more = msgspec.structs.replace(record, final=False, boundary=boundary, **changes)
            add(history, topics.PEER_LOSSES, more)
    scored = mixed("q", 2, 0.4, 0.5, None).scored
    assert scored is not None
    scored = msgspec.structs.replace(scored, boundary="2026-02-27T12:00:00Z")
    add(history, topics.PEER_LOSSES, losses("q", 3, {"a": 0.9, "b": 0.5}, 1))
    add(history, topics.MIXED_FORECASTS, mixed("q", 3, 0.9, 0.5, 1, None, scored))

    (one,) = history.feeds[FEED].resolved()

    assert one.said == {"a": 0.27, "b": 0.5}


def test_a_scored_round_whose_record_is_gone_says_nothing_of_experts() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q", 7, 0.9, 0.5, 1, None, mixed("q", 4, 0.6, 0.5, None).scored))
    add(history, topics.PEER_LOSSES, losses("q", 7, {"a": 0.9}, 1))

    (one,) = history.feeds[FEED].resolved()

    assert (one.said, one.is_shared) == ({}, True)


def test_an_erased_expert_is_in_no_score() -> None:
    history = ReplayHistory()
    first = mixed("q", 4, 0.6, 0.5, 1)
    add(history, topics.MIXED_FORECASTS, first)
    add(history, topics.PEER_LOSSES, losses("q", 4, {"a": 0.6, "b": 0.5, "erased": 1.0}, 1))
    add(history, topics.PEER_LOSSES, losses("q", 7, {"a": 0.6, "b": 0.5}, 1))

    (one,) = history.feeds[FEED].resolved()

    assert set(one.said) == {"a", "b"}


def test_an_expert_left_alone_by_erasures_is_still_compared_with_the_mean_of_all() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q", 4, 0.6, 0.5, 1))
    add(history, topics.PEER_LOSSES, losses("q", 4, {"a": 0.6, "erased": 0.4}, 1))
    add(history, topics.PEER_LOSSES, losses("q", 7, {"a": 0.6}, 1))

    (one,) = history.feeds[FEED].resolved()

    assert (one.said, one.is_shared) == ({"a": 0.6}, True)


def test_before_the_first_outcome_there_are_no_scores() -> None:
    history = ReplayHistory()
    add(history, topics.MIXED_FORECASTS, mixed("q1", 1, 0.8, 0.6, None))
    assert history.feeds[FEED].scores() is None


def test_dead_letters_keep_their_reason_and_message_and_every_topic_is_counted() -> None:
    history = ReplayHistory()
    history.add(topics.DEAD_LETTERS, b"{", [("stream-peer-reason", b"not-json")])
    history.add(topics.WEIGHTS, None)

    assert [letter.reason for letter in history.dead_letters] == ["not-json"]
    assert history.records == {topics.DEAD_LETTERS: 1, topics.WEIGHTS: 1}


def test_sums_of_questions_are_shown_with_one_decimal_at_most() -> None:
    assert [rounded(amount) for amount in (2483.0, 206.333, 16.9167, 1_234_567.0)] == [
        "2,483",
        "206.3",
        "16.9",
        "1,234,567",
    ]


def test_every_change_of_trust_is_kept_with_its_first_reasons_however_long_the_history() -> None:
    history = ReplayHistory()
    for revision in range(1, 1000):
        status: TrustState = "dependent" if revision % 500 > 250 else "ok"
        reasons = [] if status == "ok" else [f"z = {revision}"]
        record = weights(revision, {"a": 1.0}, questions=float(revision), trust=(status, reasons))
        add(history, topics.WEIGHTS, record)

    changes = history.feeds[FEED].trust

    assert [(change.revision, change.status) for change in changes] == [
        (1, "ok"),
        (251, "dependent"),
        (500, "ok"),
        (751, "dependent"),
    ]
    assert changes[1].reasons == ("z = 251",)


def test_news_are_questions_and_outcomes_and_never_stand_still_or_turn_back() -> None:
    """A late outcome moves on, and so does a feed that forgets as much as it learns, or is reset."""
    history = ReplayHistory()
    for revision, (questions, resolved) in enumerate([(1, 0), (2, 0), (2, 2), (2, 2), (0, 0), (1, 0)], start=1):
        record = weights(revision, {"a": 1.0}, questions=float(questions))
        add(history, topics.WEIGHTS, msgspec.structs.replace(record, resolved=float(resolved)))

    assert history.feeds[FEED].news == [1.0, 2.0, 4.0, 5.0, 6.0, 7.0]


def test_moments_and_their_news_are_thinned_together() -> None:
    history = ReplayHistory()
    for revision in range(1, 2001):
        add(history, topics.WEIGHTS, weights(revision, {"a": 1.0}, questions=float(revision)))

    feed = history.feeds[FEED]

    assert [1.5 * moment.revision for moment in feed.moments] == feed.news
