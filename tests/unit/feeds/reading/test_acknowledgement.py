"""An operator acknowledges a feed's state of trust by a setting; it holds until the state changes."""

from collections.abc import Iterator, Mapping

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from tests.feed_histories import Changelog, folded, log_of, round_of, settings

FEW, MANY = {"a": 0.9, "b": 0.2}, {name: 0.9 if name < "d" else 0.2 for name in "abcdefgh"}
ACKNOWLEDGED = {"defaults": {"trust": {"acknowledged": "low-evidence"}}}


def rounds(count: int, forecasts: Mapping[str, float], prefix: str) -> Iterator[FeedLogRecord]:
    return (round_of(f"{prefix}{number}", forecasts) for number in range(count))


def known(feed_stage: FeedStage) -> tuple[str, bool]:
    view = feed_stage.views()["f"]
    return view.weights.status, view.acknowledged


def test_it_holds_while_the_feed_is_in_that_state_and_ends_with_it() -> None:
    log = log_of([*rounds(3, FEW, "few"), settings(ACKNOWLEDGED), *rounds(2, FEW, "more"), *rounds(9, MANY, "many")])

    before, _ = folded(log[:3])
    said, _ = folded(log[:6])
    after, _ = folded(log)

    assert known(before) == ("low-evidence", False)
    assert known(said) == ("low-evidence", True)
    assert known(after) == ("warming-up", False)


def test_it_does_not_come_back_with_the_state() -> None:
    log = log_of(
        [*rounds(3, FEW, "few"), settings(ACKNOWLEDGED), *rounds(9, MANY, "many"), *rounds(90, {"a": 0.9}, "alone")]
    )

    found, _ = folded(log)

    assert known(found) == ("low-evidence", False)


def test_it_is_ended_by_settings_without_it() -> None:
    log = log_of([*rounds(3, FEW, "few"), settings(ACKNOWLEDGED), settings({"defaults": {"guard": "off"}})])

    found, _ = folded(log)

    assert known(found) == ("low-evidence", False)


def test_it_survives_a_restart() -> None:
    log = log_of([*rounds(3, FEW, "few"), settings(ACKNOWLEDGED)])
    before, _ = folded(log)
    changelog = Changelog()

    changelog.take(before)

    assert known(changelog.restored()) == ("low-evidence", True)
