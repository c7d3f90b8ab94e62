"""A hundred thousand records that claim to be the service's own change nothing of what it says of good questions."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import Round, RoundWithdrawn, decode_feed_log
from stream_peer.events.rejections import Reason
from stream_peer.settings.feed.document import with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.tools.replay.files import FileLine
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import Event, at, encoded, forecast, milliseconds, question, resolution
from tests.integration.support.hostile import OTHER_FEED, Hostile, Target
from tests.integration.support.lives import kill
from tests.integration.support.service import SECRET, Service, Shape, service
from tests.order_free import COMPARED, order_free

pytestmark = [pytest.mark.real_kafka, pytest.mark.slow]

HOSTILE = 100_000
QUESTIONS = 200
CHUNKS = 4
FEED = "good"
EXPERTS = [f"e{number}" for number in range(8)]
DAY = 24
SHAPE = Shape(4, 2)
DEFAULTS = {
    "history": True,
    "vote_rule": "half",
    "guard": "off",
    "round_every": "3d",
    "history_for": "30y",
    "ledger_for": "50y",
}
"""Whoever may send forecasts may move the clock up to now; what is good lies in the past, and must not end by that."""
FEEDS = {OTHER_FEED: {"round_every": None}}
PATIENT = {"session": "40s", "rebalance_timeout": "48s"}
"""A busy machine fails nobody, and whoever is killed comes back as the same member of its groups."""
AFTER_ALL = milliseconds(60 * DAY)
REFUSED = {Reason.UNEXPECTED_TYPE, Reason.NOT_JSON, Reason.EMPTY, Reason.UNKNOWN_TYPE, Reason.KEY_NOT_UTF8}

Said = dict[tuple[str, str], Mapping[str, Any]]
Rounds = dict[tuple[str, int], tuple[Any, ...]]


def good() -> list[Event]:
    """Two hundred questions of eight experts, in the order of time; outcomes of every third."""
    rng = random.Random(12)
    events: list[tuple[float, Event]] = []
    for number in range(QUESTIONS):
        name, opens = f"good-{number}", rng.uniform(0, 20 * DAY)
        closes = opens + rng.uniform(DAY, 12 * DAY)
        events.append((opens, question(name, FEED, closes, opens_at=at(opens), at=at(opens))))
        for expert in EXPERTS:
            for _ in range(rng.choice([1, 1, 2])):
                hours = rng.uniform(opens, closes)
                events.append((hours, forecast(name, expert, round(rng.random(), 3), hours, feed=FEED)))
        if number % 3 == 0:
            events.append((closes + 1, resolution(name, number % 2, closes + 1, feed=FEED)))
    return [event for _, event in sorted(events, key=lambda one: one[0])]


def sent_astray(made: Service) -> None:
    """Events at the wrong partitions, so that there are forwarded ones, signed, which can be copied."""
    events = [forecast(f"other-{number}", "e1", 0.5, 1, feed=OTHER_FEED) for number in range(40)]
    values = enumerate(encoded(events))
    made.produce(topics.FORECAST_EVENTS, [Message(b"k", value, number % SHAPE.questions) for number, value in values])
    made.settle()


def said_of(records: Iterable[tuple[str, bytes | None, bytes | None]]) -> tuple[Said, Rounds]:
    """What is order-free of the last record of each key of the good feed, and the rounds that stand."""
    last: Said = {}
    rounds: Rounds = {}
    for topic, key, value in records:
        if topic == topics.FEED_LOG:
            _note(rounds, value or b"")
        elif topic in COMPARED and (record := json.loads(value or b"{}")).get("feed") == FEED:
            last[topic, (key or b"").decode()] = order_free(topic, record, mixes=False)
    return last, rounds


def _note(rounds: Rounds, value: bytes) -> None:
    record = decode_feed_log(value)
    if record.feed != FEED:
        return
    if isinstance(record, Round):
        content = record.final, record.weight, tuple(record.experts), tuple(record.probabilities)
        rounds[record.question_id, record.boundary] = content
    elif isinstance(record, RoundWithdrawn):
        rounds.pop((record.question_id, record.boundary), None)


def without_attack(events: list[Event]) -> tuple[Said, Rounds]:
    """What a replay of the good events alone says."""
    records: list[tuple[str, bytes | None, bytes | None]] = []
    lines = [FileLine(f"line {number}", value) for number, value in enumerate(encoded(events), 1)]
    replay(
        [lines],
        ReplayOptions(document=with_method({"defaults": DEFAULTS}, NEWEST_METHOD), secret=SECRET.encode()),
        write=lambda output: records.append((output.topic, output.key, output.value)),
    )
    return said_of(records)


def attacked(made: Service, events: list[Event], hostile: Hostile) -> None:
    """Good and hostile records in turn; the worker is killed while half of them wait."""
    size = -(-len(events) // CHUNKS)
    for number in range(CHUNKS):
        part = events[number * size : (number + 1) * size]
        forged = [*hostile.records(HOSTILE // CHUNKS)]
        values = zip(part, encoded(part), strict=True)
        sent = [Message(str(event["question_id"]).encode(), value) for event, value in values]
        made.kafka.produce_many(made.topic(topics.FORECAST_EVENTS), interleaved(forged, sent))
        if number == CHUNKS // 2:
            kill(made)


def interleaved(many: list[Message], few: list[Message]) -> Iterator[Message]:
    step = len(many) // len(few)
    for number, one in enumerate(few):
        yield from many[number * step : (number + 1) * step]
        yield one
    yield from many[len(few) * step :]


def test_a_hundred_thousand_forged_records_change_nothing_of_good_questions(kafka: KafkaClient, tmp_path: Path) -> None:
    events = good()
    expected, rounds = without_attack(events)
    with service(kafka, tmp_path, shape=SHAPE, defaults=DEFAULTS, feeds=FEEDS, **PATIENT) as made:
        made.set_up(STREAM_PEER_INSTANCE="w1")
        topic, controls = made.topic(topics.FORECAST_EVENTS), made.topic(topics.CONTROL_EVENTS)
        generations = kafka.generation(topic), kafka.generation(controls)
        asked = [f"good-{number}" for number in range(QUESTIONS)]
        target = Target(SHAPE.questions, generations, FEED, asked, EXPERTS)
        sent_astray(made)

        attacked(made, events, Hostile(target, made.read(topics.FORECAST_EVENTS)))
        made.settle(deadline=180)
        made.tick(AFTER_ALL)
        made.settle(deadline=60)
        names = (*COMPARED, topics.FEED_LOG)
        read = kafka.read_together([made.topic(name) for name in names], 60)
        said, stand = said_of(
            (name, m.key, m.value) for name in (*COMPARED, topics.FEED_LOG) for m in read[made.topic(name)]
        )

        assert said.keys() == expected.keys()
        assert said == expected
        assert stand == rounds
        assert len({name for name, _ in stand}) == QUESTIONS
        _check_what_is_said_of_the_attack(made)
        _check_that_controls_still_count(made)


def _check_what_is_said_of_the_attack(made: Service) -> None:
    letters = made.dead_letters().values()
    assert {letter.reason for letter in letters} <= {str(reason) for reason in REFUSED}
    for kind in ("event", "control", "tick"):
        assert made.metric("stream_peer_unsigned_records_total", kind=kind) > 1_000
    lines = made.workers["w1"].said().count("unsigned-record")
    assert 1 <= lines <= SHAPE.questions


def _check_that_controls_still_count(made: Service) -> None:
    """No forged source hides the genuine ones that come later."""
    made.run("expert", OTHER_FEED, "e1", "--forget", "--yes")
    made.settle()
    made.send([forecast("other-1", "e1", 0.5, 2, feed=OTHER_FEED)])
    made.settle()
    assert str(Reason.FORGOTTEN) in {letter.reason for letter in made.dead_letters().values()}
