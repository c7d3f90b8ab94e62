"""Cases from real users, end to end on real Kafka. Each test uses feeds, questions and days of its own."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError
from msgspec.structs import replace

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, decode_feed_log
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import (
    Event,
    at,
    crowd,
    encoded,
    forecast,
    moment,
    question,
    resolution,
)
from tests.integration.support.lives import finish, renamed
from tests.integration.support.service import Service, Shape, service
from tests.order_free import COMPARED

pytestmark = pytest.mark.real_kafka

DAY = 24


def spelled(service: Service, feed: str, outcomes: Mapping[str, Any], start: float) -> None:
    """One question a spelling, each with a crowd, closed and scored."""
    for question_id in outcomes:
        service.send([question(question_id, feed, start + DAY), *crowd(question_id, 5, start)])
    finish(service, start + 2 * DAY)


def letters_of(service: Service, feed: str) -> dict[str, Any]:
    """Dead letters of a feed's questions (named after it) by question."""
    found = service.dead_letters().values()
    keys = {(letter.message.key or b"").decode(errors="replace"): letter for letter in found}
    return {key: letter for key, letter in keys.items() if key.startswith(feed)}


def published(service: Service, feed: str) -> list[bytes | None]:
    """All bytes of a feed on the topics that say whom to listen to."""
    both = (topics.WEIGHTS, topics.ERROR_RATES)
    return [message.value for topic in both for message in service.read(topic) if message.key == feed.encode()]


@pytest.mark.case("C04")
def test_an_outcome_between_yes_and_no_is_never_thresholded(served: Service) -> None:
    feed, start = "c04", 1 * DAY
    outcomes = dict(zip((f"{feed}-q{n}" for n in range(6)), (0.49, 0.51, "50-50", "MKT", 2, -1), strict=True))
    spelled(served, feed, outcomes, start)
    before = published(served, feed)
    counted = served.metric("stream_peer_dead_letters_total", reason=Reason.OUTCOME_UNKNOWN)

    served.send(resolution(question_id, outcome, start + 3 * DAY) for question_id, outcome in outcomes.items())
    served.settle()

    letters = letters_of(served, feed)
    assert {key: letter.reason for key, letter in letters.items()} == dict.fromkeys(outcomes, Reason.OUTCOME_UNKNOWN)
    assert all(repr(outcome) in letters[key].text for key, outcome in outcomes.items())
    assert served.metric("stream_peer_dead_letters_total", reason=Reason.OUTCOME_UNKNOWN) == counted + len(outcomes)
    assert published(served, feed) == before
    states = {key: answer["state"] for key, answer in served.last(topics.REFERENCE_ANSWERS, feed).items()}
    assert states == dict.fromkeys(outcomes, "scored")


@pytest.mark.case("C05")
def test_an_outcome_is_understood_however_it_is_spelled(served: Service) -> None:
    feed, start = "c05", 4 * DAY
    yes = ("yes", "YES", "Yes ", True, 1, "1", " true", "TRUE")
    no = ("no", "NO", "No", False, 0, "0", "false ", "False")
    strange = ("y", "oui", "nope", "", "10", "01")
    outcomes = {f"{feed}-q{n}": outcome for n, outcome in enumerate((*yes, *no, *strange))}
    spelled(served, feed, outcomes, start)

    served.send(resolution(question_id, outcome, start + 3 * DAY) for question_id, outcome in outcomes.items())
    served.settle()

    answers = served.last(topics.REFERENCE_ANSWERS, feed)
    assert [answers[key]["outcome"] for key in outcomes] == [1] * len(yes) + [0] * len(no) + [None] * len(strange)
    letters = letters_of(served, feed)
    assert sorted(letters) == sorted(key for key, outcome in outcomes.items() if outcome in strange)
    assert all(repr(outcomes[key]) in letter.text for key, letter in letters.items())
    assert served.weights(feed)["resolved"] == len(yes) + len(no)


def spring_and_autumn() -> Iterator[Event]:
    """Naive times around hours that New York's clocks skip or repeat, and the same moments spelled with an offset."""
    nights = {"spring": "2025-03-09T{:02}:30:00", "autumn": "2025-11-02T{:02}:30:00"}
    for name, night in nights.items():
        ends = {"opens_at": night.format(0), "closes_at": night.format(6)}
        yield {"type": "question", "question_id": f"q-{name}", "feed": "zones", **ends}
        for hour in range(1, 6):
            stated = {"type": "forecast", "question_id": f"q-{name}", "at": night.format(hour)}
            yield {**stated, "expert_id": f"naive{hour}", "probability": hour / 10}
            yield {**stated, "expert_id": f"offset{hour}", "probability": hour / 8, "at": f"{stated['at']}+05:30"}
    yield {"type": "question", "question_id": "q-last", "feed": "zones", "closes_at": "2025-12-01T00:00:00"}


def told(service: Service) -> Iterator[FeedLogRecord]:
    """The records of its feed-log, without what tells its topics from others."""
    for message in service.read(topics.FEED_LOG):
        record = decode_feed_log(message.value or b"")
        yield replace(record, src=replace(record.src, generation=0))


@pytest.mark.case("C12")
def test_the_time_zone_of_the_machine_changes_nothing(kafka: KafkaClient, tmp_path: Path) -> None:
    zones = ("UTC", "America/New_York", "Asia/Kolkata")
    with ExitStack() as stack:
        services = [
            stack.enter_context(
                service(kafka, tmp_path / zone, shape=Shape(1, 1), feeds={"zones": {"round_every": "2h"}})
            )
            for zone in zones
        ]
        with ThreadPoolExecutor(len(zones)) as pool:
            list(pool.map(lambda made, zone: made.set_up(TZ=zone), services, zones))
        for made in services:
            made.send(spring_and_autumn())
            finish(made, 8000)
        logs = [list(told(made)) for made in services]
        weights = [{**made.weights("zones"), "at": ""} for made in services]
        answers = [made.last(topics.REFERENCE_ANSWERS, "zones") for made in services]

    assert logs[0] == logs[1] == logs[2]
    assert weights[0] == weights[1] == weights[2]
    assert [answer["q-spring"]["boundary"] for answer in answers] == ["2025-03-09T06:30:00Z"] * 3
    assert answers[0]["q-spring"]["experts"] == answers[0]["q-autumn"]["experts"] == 10


@pytest.mark.case("C13")
def test_one_event_from_the_far_future_changes_nothing_for_others(served: Service) -> None:
    feed, start = "c13", 300 * DAY
    by_partition = {partition_of(f"{feed}-q{n}", 4): f"{feed}-q{n}" for n in range(40)}
    questions = [by_partition[partition] for partition in range(4)]
    for question_id in questions:
        served.send([question(question_id, feed, start + DAY), *crowd(question_id, 4, start)])
    served.settle()

    years = 365 * DAY
    for partition in range(4):
        stray = next(f"{feed}-far{n}" for n in range(40) if partition_of(f"{feed}-far{n}", 4) == partition)
        served.send([forecast(stray, "e1", 0.5, start + 74 * years, feed=feed)])  # 2099: refused
        served.send([forecast(stray, "e1", 0.5, start + 5 * years, feed=feed)])  # credible, but ahead of its record
    served.settle()
    assert not served.outputs(topics.REFERENCE_ANSWERS, feed)

    for question_id in questions:
        served.send(crowd(question_id, 3, start + 12, first=10))
    finish(served, start + 2 * DAY)

    answers = served.last(topics.REFERENCE_ANSWERS, feed)
    assert {key: answer["experts"] for key, answer in answers.items()} == dict.fromkeys(questions, 7)
    assert {answer["boundary"] for answer in answers.values()} == {at(start + DAY)}
    refused = [letter for key, letter in letters_of(served, feed).items() if letter.reason == Reason.TIME_RANGE]
    assert len(refused) == 4


def largest_garbage(service: Service) -> bytes:
    """Ten megabytes, if the broker may be told to take them, else as much as it takes."""
    resource = ConfigResource(
        ConfigResourceType.TOPIC, service.topic(topics.FORECAST_EVENTS), {"max.message.bytes": "11000000"}
    )
    try:
        with service.kafka.admin() as admin:
            admin.alter_configs([resource])
    except KafkaError:
        return b"\x00garbage" * 125_000
    return b"\x00garbage" * 1_250_000


@pytest.mark.case("C23")
def test_the_good_message_behind_a_poison_pill_counts(served: Service) -> None:
    feed, start = "c23", 10 * DAY
    question_id = f"{feed}-q1"
    good = json.dumps(forecast(question_id, "e-cut", 0.5, start)).encode()
    pills = {
        "bad JSON": b'{"type": "forecast", "question_id": c23}',
        "wrong type": json.dumps({**forecast(question_id, "", 0.5, start), "expert_id": 7}).encode(),
        "truncated": good[: len(good) // 2],
        "garbage": largest_garbage(served),
        "empty": b"",
    }
    reasons = [Reason.NOT_JSON, Reason.WRONG_TYPE, Reason.NOT_JSON, Reason.TOO_LARGE, Reason.EMPTY]
    counted = served.metric("stream_peer_dead_letters_total")
    served.send([question(question_id, feed, start + DAY)])
    key, home = question_id.encode(), partition_of(question_id, 4)

    places = []
    for number, pill in enumerate(pills.values()):
        next_good = json.dumps(forecast(question_id, f"e{number}", 0.3, start + 1)).encode()
        places += served.produce(topics.FORECAST_EVENTS, [Message(key, pill, home), Message(key, next_good, home)])[:1]
    finish(served, start + 2 * DAY)

    letters, topic = served.dead_letters(), served.topic(topics.FORECAST_EVENTS)
    found = [letters[topic, partition, offset] for partition, offset in places]
    assert [letter.reason for letter in found] == reasons
    assert [letter.message.value for letter in found] == [pill[:65_536] for pill in pills.values()]
    assert served.metric("stream_peer_dead_letters_total") == counted + len(pills)
    assert served.last(topics.REFERENCE_ANSWERS, feed)[question_id]["experts"] == len(pills)


@pytest.mark.case("C24")
def test_no_key_keeps_the_service_from_starting_again(served: Service) -> None:
    feed, start = "c24", 20 * DAY
    question_id = f"{feed}-q1"
    home = partition_of(question_id, 4)
    values = list(encoded(forecast(question_id, f"e{n}", 0.2 + n / 10, start, feed=feed) for n in range(4)))
    long_key = b"k" * 8192
    (bad_place, *_) = served.produce(
        topics.FORECAST_EVENTS,
        [
            Message(b"\x00\xff\x85", values[0], home),
            Message(long_key, values[1], home),
            Message(long_key, values[2], (home + 1) % 4),  # is sent on to its home, with its key
            Message(None, values[3], home),
        ],
    )
    served.send([question(question_id, feed, start + DAY)])
    served.settle()

    served.restart().wait_ready()
    served.send(crowd(question_id, 2, start + 1, first=10))
    finish(served, start + 2 * DAY)

    letter = served.dead_letters()[(served.topic(topics.FORECAST_EVENTS), *bad_place)]
    assert (letter.reason, letter.message.key, letter.message.value) == (
        Reason.KEY_NOT_UTF8,
        b"\x00\xff\x85",
        values[0],
    )
    assert served.last(topics.REFERENCE_ANSWERS, feed)[question_id]["experts"] == 3 + 2


def test_a_feed_under_the_preset_paper_goes_on_after_a_restart_and_follows_from_its_log(served: Service) -> None:
    feed, start = "paper", 100 * DAY
    for half in range(2):
        for number in range(8 * half, 8 * half + 8):
            question_id, opens = f"paper-q{number}", start + number * DAY
            served.send(
                [
                    question(question_id, feed, opens + DAY),
                    *probabilities(number, question_id, range(6), opens),
                    resolution(question_id, number % 2, opens + 2 * DAY, feed=feed),
                ]
            )
        finish(served, start + (8 * half + 12) * DAY)
        served.restart().wait_ready()

    weights = served.weights(feed)
    assert (weights["questions"], weights["resolved"]) == (16, 16)
    assert len({expert["select"] for expert in weights["experts"]}) == 6
    assert [expert["mix"] for expert in weights["experts"]] == [expert["select"] for expert in weights["experts"]]
    assert weights["certificate"] is None
    served.run("replay", "--from-log", feed)


@pytest.mark.case("C25")
def test_two_partitioners_give_what_one_gives(served: Service) -> None:
    from confluent_kafka import Producer

    start = 30 * DAY
    produced: list[Any] = []
    crc32 = Producer({"bootstrap.servers": served.kafka.bootstrap, "partitioner": "consistent_random"})
    for feed, crowds in (("c25one", 2), ("c25two", 1)):
        for number in range(12):
            question_id = f"{feed}-q{number}"
            served.send(
                [
                    question(question_id, feed, start + DAY),
                    *probabilities(number, question_id, range(3 * crowds), start),
                ]
            )
    for number in range(12):
        for event in probabilities(number, f"c25two-q{number}", range(3, 6), start):
            key = event["question_id"]
            crc32.produce(
                served.topic(topics.FORECAST_EVENTS),
                json.dumps(event).encode(),
                key,
                on_delivery=lambda _error, sent: produced.append((sent.key().decode(), sent.partition())),
            )
    crc32.flush(30)
    finish(served, start + 2 * DAY)

    assert len(produced) == 36
    assert sum(partition != partition_of(key, 4) for key, partition in produced) >= 12
    for topic in COMPARED:
        one, two = (renamed(topic, served.last(topic, feed), feed) for feed in ("c25one", "c25two"))
        assert one == two
    answers = served.last(topics.REFERENCE_ANSWERS, "c25two")
    assert {key: answer["experts"] for key, answer in answers.items()} == {f"c25two-q{n}": 6 for n in range(12)}


def probabilities(number: int, question_id: str, experts: range, start: float) -> Iterator[Event]:
    """Forecasts that depend on the number of the question and the expert, not on the question's name."""
    for expert in experts:
        yield forecast(question_id, f"e{expert}", (31 * number + 17 * expert) % 89 / 100 + 0.05, start + expert / 10)


@pytest.mark.case("C27")
def test_a_question_with_twenty_thousand_experts_works(served: Service) -> None:
    feed, start, experts = "c27", 40 * DAY, 20_000
    question_id = f"{feed}-q1"
    stated = {"type": "forecasts", "question_id": question_id, "at": moment(start).isoformat()}
    said = {f"expert-{number:05}": number % 1000 / 1000 for number in range(experts)}
    names = sorted(said)
    served.send([question(question_id, feed, start + DAY)])
    served.send(
        {**stated, "forecasts": {name: said[name] for name in names[first : first + 1000]}}
        for first in range(0, experts, 1000)
    )
    finish(served, start + 2 * DAY)

    answer = served.last(topics.REFERENCE_ANSWERS, feed)[question_id]
    assert (answer["experts"], answer["state"]) == (experts, "scored")
    losses = served.last(topics.PEER_LOSSES, feed)
    assert {one["id"]: one["probability"] for part in losses.values() for one in part["experts"]} == said
    weights = served.outputs(topics.WEIGHTS, feed)
    newest = [part for part in weights if part["revision"] == weights[-1]["revision"]]
    assert {part["part"] for part in newest} == set(range(newest[0]["parts"]))
    assert sum(one["mix"] for part in newest for one in part["experts"]) == pytest.approx(1.0, abs=1e-6)
    internal = [topics.FEED_LOG, *topics.OUTPUTS]
    changelogs = [served.settings.changelog("question"), served.settings.changelog("feed")]
    everything = [served.topic(name) for name in internal] + changelogs
    assert max(len(m.value or b"") for name in everything for m in served.kafka.read_all(name)) < 1_000_000
    served.restart().wait_ready()


@pytest.mark.case("C28")
def test_a_source_with_more_partitions_is_refused_in_one_sentence(kafka: KafkaClient, tmp_path: Path) -> None:
    with service(kafka, tmp_path) as deployment:
        deployment.run("topics", "apply")
        source = deployment.topic(topics.FORECAST_EVENTS)
        with kafka.admin() as admin:
            admin.create_partitions({source: 6})

        refused = deployment.command("worker")

    assert refused.returncode == 78
    (line,) = [line for line in refused.stderr.splitlines() if line.startswith("stream-peer: ")]
    for part in (source, "6 partitions", "not 4", "partitions.forecast_events", "`stream-peer topics apply"):
        assert part in line, refused.stderr
