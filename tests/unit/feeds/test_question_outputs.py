import pytest
from msgspec import to_builtins

from stream_peer.events import topics
from tests.feed_histories import START, Changelog, folded, log_of, newest, outcome, provisional, round_of

FEED = "f"
FORECASTS = {"a": 0.9, "b": 0.6, "c": 0.2, "d": 0.3, "e": 0.8}


def test_peer_losses_are_priced_on_the_unbiased_scale() -> None:
    _, effects = folded(log_of([round_of("q", FORECASTS)]))
    record = newest(effects.outputs, topics.PEER_LOSSES)["q"]

    zero, one = record["error_rate"]["zero"], record["error_rate"]["one"]
    for expert in record["experts"]:
        p, answer = expert["probability"], expert["reference_answer"]
        unit = (answer - p) ** 2 - zero * (1 - p) ** 2 - one * p**2
        assert expert["peer_loss"] == pytest.approx(unit / (1 - zero - one), abs=1e-11)


def test_the_latest_round_speaks_for_a_question() -> None:
    events = [
        round_of("q", FORECASTS, boundary=2),
        round_of("q", {"a": 0.1, "b": 0.2, "c": 0.3}, boundary=1),
    ]
    _, effects = folded(log_of(events))
    record = newest(effects.outputs, topics.MIXED_FORECASTS)["q"]

    assert record["rounds"] == 2
    assert record["boundary"] == "2023-11-15T00:13:20Z"
    assert START == 1_700_000_000_000
    assert record["mean"] == pytest.approx(0.56)
    assert record["median"] == 0.6
    assert record["revision"] == 1


def test_annulled_questions_have_no_outcome_loss() -> None:
    _, effects = folded(log_of([round_of("q", FORECASTS), outcome("q", "annulled")]))

    losses = newest(effects.outputs, topics.PEER_LOSSES)["q"]
    assert losses["state"] == "annulled"
    assert {expert["outcome_loss"] for expert in losses["experts"]} == {None}
    assert newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]["outcome"] == "annulled"


def test_the_records_of_a_question_are_what_was_published_of_the_question_last() -> None:
    stage, effects = folded(log_of([round_of("q", FORECASTS), outcome("q", 1)]))

    records = stage.question_records(FEED, "q")

    assert records is not None
    assert to_builtins(records.reference_answer) == newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]
    assert to_builtins(records.mixed_forecast) == newest(effects.outputs, topics.MIXED_FORECASTS)["q"]


def test_there_are_no_records_of_what_was_not_scored() -> None:
    stage, _ = folded(log_of([round_of("q", FORECASTS), outcome("known-outcome-only", 1)]))

    assert (stage.has_feed(FEED), stage.has_feed("another")) == (True, False)
    assert [stage.question_records(FEED, name) for name in ("never-heard-of", "known-outcome-only")] == [None, None]
    assert stage.question_records("another", "q") is None


def test_a_provisional_outcome_is_shown_until_there_is_another_and_teaches_nothing() -> None:
    rounds = [round_of("q", FORECASTS), round_of("r", FORECASTS)]
    shown, effects = folded(log_of([*rounds, provisional("q", 1)]))
    changelog = Changelog()
    changelog.take(shown)
    _, taken_back = folded(log_of([*rounds, provisional("q", 1), provisional("q", "open")]))
    _, resolved = folded(log_of([*rounds, provisional("q", 1), outcome("q", 0), provisional("q", 1)]))
    without, _ = folded(log_of(rounds))

    for topic in (topics.REFERENCE_ANSWERS, topics.MIXED_FORECASTS):
        record = newest(effects.outputs, topic)["q"]
        assert (record["provisional_outcome"], record["outcome"], record["state"]) == (1, None, "scored")
        assert record["revision"] == 2
        assert "provisional_outcome" not in newest(taken_back.outputs, topic)["q"]
        assert "provisional_outcome" not in newest(resolved.outputs, topic)["q"]
    assert {expert["outcome_loss"] for expert in newest(effects.outputs, topics.PEER_LOSSES)["q"]["experts"]} == {None}
    assert shown.feeds.feed(FEED).buckets.sums.equals(without.feeds.feed(FEED).buckets.sums)
    assert shown.agrees()
    records = changelog.restored().question_records(FEED, "q")
    assert records is not None
    assert records.mixed_forecast.provisional_outcome == 1


def test_a_provisional_outcome_of_a_question_without_rounds_says_nothing() -> None:
    stage, effects = folded(log_of([round_of("q", FORECASTS), provisional("unknown", 1)]))

    assert "unknown" not in stage.feeds.feed(FEED).ledger.entries
    assert "unknown" not in newest(effects.outputs, topics.MIXED_FORECASTS)
