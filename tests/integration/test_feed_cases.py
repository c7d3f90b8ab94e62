"""Feeds beside each other, begun anew, ended, under other settings; a worker ends halfway, on real Kafka."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.settings.feed.document import load_document, with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from tests.integration.support.events import Event, at, forecast
from tests.integration.support.lives import (
    DAY,
    Published,
    crowds,
    finish,
    gauges,
    kill,
    last_values,
    life,
    outcomes,
    renamed,
    replayed,
    state,
    stop,
    without,
)
from tests.integration.support.service import SECRET, Service

pytestmark = pytest.mark.real_kafka

Entry = tuple[str, bytes | None, bytes | None]
"""Topic, key and value of an output."""


def alone(service: Service, feed: str, settings: Mapping[str, Any] | None = None) -> list[Entry]:
    """Every output that a feed's partition of the feed-log gives if all records of other feeds are taken out of it.

    With ``settings`` the feed has these from the start, whatever was applied.
    """
    home = partition_of(feed.encode(), service.shape.feeds)
    book = None if settings is None else load_document(with_method({"feeds": {feed: settings}}, NEWEST_METHOD))
    stage = FeedStage(topic=service.topic(topics.FEED_LOG), partition=home, secret=SECRET.encode(), settings=book)
    effects = Effects()
    keys = {feed.encode()} if settings else {feed.encode(), b"settings"}
    for m in service.read(topics.FEED_LOG):
        if m.partition == home and m.key in keys:
            stage.step(LogRecord(m.offset, m.timestamp or 0, m.key, m.value, m.headers), effects)
            stage.publish(effects)
    return [(output.topic, output.key, output.value) for output in effects.outputs]


def whatever(feed: str, start: float) -> list[Event]:
    """All that a feed can go through, with the experts of a ``life``."""
    fates: dict[int, object] = {0: 1, 1: 0, 2: None, 3: "open", 4: "MKT"}
    return [
        *life(feed, start, 4, range(1, 5)),
        *crowds(f"{feed}x", start, range(5)),
        *outcomes(feed, start + 3.5 * DAY, fates),
        *(forecast(f"{feed}-q{number}", f"e{number}", None, start + 3 * DAY) for number in range(6)),
        *(forecast(f"{feed}-q{number}", "e1", 7.5, start + 3 * DAY) for number in range(3)),
        {"type": "question", "question_id": f"{feed}-q7", "feed": f"{feed}x", "at": at(start + 3 * DAY)},
        *outcomes(feed, start + 3.6 * DAY, {0: 0, 1: 1, 2: "yes", 5: "no"}),
    ]


def controls(feed: str, start: float) -> list[Event]:
    """All that experts of a feed, and the feed, can be told."""
    told = {"type": "expert", "feed": feed, "at": at(start)}
    return [
        {**told, "expert_id": "e0", "excluded": True},
        {**told, "expert_id": "e1", "team": "t"},
        {**told, "expert_id": "e2", "team": "t"},
        {**told, "expert_id": "e3", "forget": True},
        {"type": "feed", "feed": feed, "reset": True},
        {"type": "feed", "feed": f"{feed}x", "delete": True},
    ]


@pytest.mark.case("C09")
def test_nothing_that_happens_in_a_feed_is_seen_in_another_with_the_same_experts(lived: Service, start: float) -> None:
    feed, other = "c09", "c09private"
    resolved = {number: number % 2 for number in range(3)}
    events = [*life(feed, start, 7, range(1, 8)), *outcomes(feed, start + 8 * DAY, resolved)]
    begins = [event for event in events if event["at"] <= at(start + 4 * DAY)]
    lived.send(begins)
    finish(lived, start + 4.1 * DAY)
    before, shown = Published(lived), gauges(lived, feed)

    lived.send(whatever(other, start))
    lived.settle()
    kill(lived)
    lived.send(controls(other, start), topics.CONTROL_EVENTS)
    lived.settle()
    lived.send(crowds(other, start + DAY, range(20, 25)))
    finish(lived, start + 4.2 * DAY)
    lived.workers["w1"].wait_ready()
    after = Published(lived)
    assert {topic: set(records) for topic, records in after.raw(f"{feed}-").items()} == {
        topic: set(records) for topic, records in before.raw(f"{feed}-").items()
    }
    assert after.last(feed) == before.last(feed)
    assert gauges(lived, feed) == shown

    for number, event in enumerate(event for event in events if event not in begins):
        lived.send([event, forecast(f"{other}-q{number % 8}", f"e{number % 6}", 0.5, start + 4.5 * DAY)])
    finish(lived, start + 9 * DAY)
    published = Published(lived)
    assert published.order_free(feed) == replayed(events, feed, round_every="1d")
    by_question = {(topic, *record) for topic, records in published.raw(f"{feed}-").items() for record in records}
    by_feed = {(topic, *record) for topic, records in published.raw(feed).items() for record in records}
    assert by_question | {one for one in by_feed if one[1] == feed.encode()} <= set(alone(lived, feed))
    assert not published.contradictions(feed)


def test_a_setting_of_reading_counts_from_its_place_on(lived: Service, start: float) -> None:
    feed, other = "reading", "readingother"
    for name in (feed, other):
        lived.send(crowds(name, start, range(8)))
    finish(lived, start + 2 * DAY)
    before = Published(lived)

    priors = {"prior_mean": 0.94, "prior_peer": 0.02, "prior_truth_slow": 0.02, "prior_truth_fast": 0.02}
    lived.apply({feed: {"mixer": priors}})
    lived.settle()
    kill(lived)
    for name in (feed, other):
        lived.send(crowds(name, start + 3 * DAY, range(8, 12)))
    finish(lived, start + 5 * DAY)

    after = Published(lived)
    was, is_now, unchanged = before.weights(feed), after.weights(feed), after.weights(other)
    assert was["mixer"] == before.weights(other)["mixer"]
    assert is_now["mixer"]["mean"] > 0.9 > unchanged["mixer"]["mean"]
    ours, theirs = after.order_free(feed), after.order_free(other)
    for topic in (*topics.KEYED_BY_QUESTION, topics.ERROR_RATES):
        assert ours[topic] == theirs[topic]
    for topic in topics.KEYED_BY_QUESTION:  # what was said stays said
        assert {key: after.last(feed)[topic][key] for key in before.last(feed)[topic]} == before.last(feed)[topic]
    assert not after.contradictions(feed)


def test_a_setting_of_meaning_gives_the_feed_that_always_had_it(lived: Service, start: float) -> None:
    feed, other = "meaning", "meaningother"
    meant = {"loss": "log", "min_experts": 5}
    lived.apply({other: meant})
    for name in (feed, other):
        lived.send([*crowds(name, start, range(8)), *outcomes(name, start + 1.5 * DAY, {0: 1, 1: 0})])
    finish(lived, start + 2 * DAY)
    before = Published(lived)
    assert before.order_free(feed) != before.order_free(other)

    lived.apply({feed: meant})
    kill(lived)
    lived.settle()
    lived.workers["w1"].wait_ready()
    settled = Published(lived)
    assert settled.order_free(feed)[topics.WEIGHTS] == settled.order_free(other)[topics.WEIGHTS]
    for name in (feed, other):
        lived.send([*crowds(name, start + 3 * DAY, range(8, 12)), *outcomes(name, start + 4.5 * DAY, {2: 1, 8: 0})])
    finish(lived, start + 5 * DAY)
    stop(lived)
    lived.settle()

    after = Published(lived)
    assert after.order_free(feed) == after.order_free(other)
    # Bit for bit, what depends on the order of the log included, it is the feed that its log gives under them.
    anew = [
        json.loads(value or b"{}")
        for topic, _, value in alone(lived, feed, {"vote_rule": "half", "guard": "off", **meant})
    ]
    last = [record for record in anew if "certificate" in record][-1]
    assert without(after.weights(feed), "settings") == without(last, "settings")
    assert after.weights(feed)["settings"] != before.weights(feed)["settings"]
    # No revision of old is said again with another content.
    assert not after.contradictions(feed)
    old = {(topic, key, value) for topic, records in before.raw(feed).items() for key, value in records}
    assert old <= {(topic, key, value) for topic, records in after.raw(feed).items() for key, value in records}


def test_a_feed_that_was_reset_learns_anew_and_its_revisions_go_on(lived: Service, start: float) -> None:
    feed, other = "resetting", "unlearned"
    lived.send([*crowds(feed, start, range(8)), *outcomes(feed, start + 1.5 * DAY, {0: 1, 1: 0})])
    finish(lived, start + 2 * DAY)
    before = Published(lived)

    lived.send([{"type": "feed", "feed": feed, "reset": True}], topics.CONTROL_EVENTS)
    lived.settle()
    kill(lived)
    lived.settle()
    empty = lived.weights(feed)
    for name in (feed, other):
        lived.send([*crowds(name, start + 3 * DAY, range(20, 26)), *outcomes(name, start + 4.5 * DAY, {20: 1})])
    finish(lived, start + 5 * DAY)

    assert (empty["questions"], empty["resolved"], empty["experts"]) == (0, 0, [])
    assert empty["revision"] > before.weights(feed)["revision"]
    after = Published(lived)
    for topic in topics.KEYED_BY_FEED:
        assert after.order_free(feed)[topic] == after.order_free(other)[topic]
    later = {key: record for key, record in after.answers(feed).items() if key not in before.answers(feed)}
    assert renamed(topics.REFERENCE_ANSWERS, later, feed) == after.order_free(other)[topics.REFERENCE_ANSWERS]
    assert not after.contradictions(feed)


def test_a_deleted_feed_leaves_nothing_and_its_name_begins_anew(lived: Service, start: float) -> None:
    feed, other = "deleted", "fresh"
    lived.send([*crowds(feed, start, range(8)), *outcomes(feed, start + 1.5 * DAY, {0: 1, 1: 0})])
    lived.send(crowds(feed, start + 20 * DAY, range(8, 10)))  # still open
    finish(lived, start + 2 * DAY)
    assert gauges(lived, feed)

    lived.send([{"type": "feed", "feed": feed, "delete": True}], topics.CONTROL_EVENTS)
    lived.settle()
    kill(lived)
    lived.settle()
    lived.workers["w1"].wait_ready()
    assert not gauges(lived, feed)
    assert not {
        key for topic in topics.OUTPUTS for key in last_values(lived, lived.topic(topic)) if feed.encode() in key
    }
    for stage in ("question", "feed"):
        assert not [key for key, value in state(lived, stage).items() if b"deleted-q" in key + value]

    for name in (feed, other):
        lived.send([*crowds(name, start + 3 * DAY, range(20, 26)), *outcomes(name, start + 4.5 * DAY, {20: 1})])
    finish(lived, start + 25 * DAY)
    after = Published(lived)
    for topic in topics.KEYED_BY_FEED:
        assert after.order_free(feed)[topic] == after.order_free(other)[topic]
    assert gauges(lived, feed)
    assert not after.contradictions(feed)
