"""Questions that move between feeds whose owners are frozen or killed: the feed that has them says their last word."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import QuestionMoved, decode_feed_log
from stream_peer.events.partitioning import partition_of
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question, resolution
from tests.integration.support.service import APPLY, Service, Shape, Worker, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka, pytest.mark.faults]

PATIENT = {"session": "60s", "rebalance_timeout": "60s"}
"""A freeze is shorter than half a session, and who is killed comes back before a session ends."""

STAGES = {"questions": "question", "feeds-0": "feed", "feeds-1": "feed"}
SHAPE = Shape(questions=2, feeds=2)
CLOSE = 24.0
LAST = (topics.REFERENCE_ANSWERS, topics.PEER_LOSSES, topics.MIXED_FORECASTS)


@pytest.fixture(scope="module")
def made(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One worker of questions, and two of feeds: each owns a partition of the feed-log. Use questions of your own."""
    with service(kafka, tmp_path_factory.mktemp("moves"), shape=SHAPE, **PATIENT) as started:
        started.run("topics", "apply")
        for name in STAGES:
            start(started, name)
        started.run(*APPLY)
        started.wait_configured()
        yield started


def start(made: Service, name: str) -> Worker:
    return made.start(name, STREAM_PEER_STAGE=STAGES[name], STREAM_PEER_INSTANCE=name)


def resolve(made: Service, names: Iterable[str]) -> None:
    """Questions of red are asked, forecast, closed and resolved."""
    made.send(
        event
        for name in names
        for event in (question(name, "red", CLOSE), *crowd(name, 5, 1.0), resolution(name, 1, CLOSE + 1))
    )
    made.settle()
    made.tick(milliseconds(2 * CLOSE))
    made.settle()


def move(made: Service, names: Iterable[str], feed: str) -> None:
    made.send(question(name, feed, CLOSE) for name in names)


def last(made: Service, names: Iterable[str]) -> set[tuple[str, str, str, str]]:
    """Topic, key, feed and state of the last record of each key; no feed and state for a tombstone."""
    wanted, found = set(names), {}
    for topic in LAST:
        for message in made.read(topic):
            key, value = (message.key or b"").decode(), json.loads(message.value or b"{}")
            if key in wanted:
                found[topic, key] = value.get("feed", ""), value.get("state", "")
    return {(*place, *said) for place, said in found.items()}


def resolved(names: Iterable[str], feed: str) -> set[tuple[str, str, str, str]]:
    return {(topic, name, feed, "resolved") for name in names for topic in LAST}


def wait_said(made: Service, names: Sequence[str], feed: str) -> None:
    """Until a feed says the last word of questions, with everything processed."""
    wait_until(lambda: last(made, names) == resolved(names, feed), 60, lambda: f"{last(made, names)}\n{made.logs()}")
    made.settle()
    assert last(made, names) == resolved(names, feed)


def owner(made: Service, feed: str) -> Worker:
    """The worker that folds a feed, once it and nobody else does."""
    labels = {"topic": topics.FEED_LOG, "partition": str(partition_of(feed, SHAPE.feeds))}

    def owns(name: str) -> bool:
        return any(labels.items() <= s.labels.items() for s in made.samples("stream_peer_lag_records", name))

    def found() -> list[Worker]:
        owners = [made.workers[name] for name, stage in STAGES.items() if stage == "feed" and owns(name)]
        return owners if len(owners) == 1 else []

    return wait_until(found, 60, made.logs)[0]


def folded(made: Service, feed: str, least: int) -> bool:
    """Whether the owner of a feed has processed all of its log, which holds so many records."""
    partition = partition_of(feed, SHAPE.feeds)
    end = made.kafka.end_offsets(made.topic(topics.FEED_LOG))[partition]
    return end >= least and made.committed("feed", topics.FEED_LOG)[partition] == end


@pytest.mark.induces("60 resolved questions move while the worker of their former feed is frozen; then it is deleted")
def test_of_questions_that_move_while_their_former_feed_is_frozen_the_new_feed_says_the_last_word(
    made: Service, found: Callable[[str], None]
) -> None:
    names = [f"frozen-{n}" for n in range(60)]
    resolve(made, names)
    assert last(made, names) == resolved(names, "red")
    red, green = owner(made, "red"), owner(made, "green")
    end = made.kafka.end_offsets(made.topic(topics.FEED_LOG))[partition_of("green", SHAPE.feeds)]

    with red.frozen():
        move(made, names, "green")
        wait_until(lambda: folded(made, "green", end + 2 * len(names)), 25, made.logs)
        meanwhile = last(made, names)
    wait_said(made, names, "green")

    assert red is not green
    assert meanwhile == resolved(names, "red")  # else the freeze came too late
    made.run("delete", "red", "--yes")
    made.settle()
    assert last(made, names) == resolved(names, "green")
    found(f"{len(LAST) * len(names)} last records, all of the new feed")


@pytest.mark.induces("6 moves of 8 questions to and fro, each of 3 workers killed twice")
def test_of_questions_that_move_to_and_fro_under_kills_the_last_feed_says_the_last_word(
    made: Service, found: Callable[[str], None]
) -> None:
    names = [f"killed-{n}" for n in range(8)]
    resolve(made, names)

    for _, feed, name in zip(range(6), cycle(("green", "red")), cycle(STAGES), strict=False):
        move(made, names, feed)
        made.workers[name].kill()
        start(made, name).wait_ready()
    move(made, names, "green")
    wait_said(made, names, "green")

    records = {m.value: decode_feed_log(m.value or b"") for m in made.read(topics.FEED_LOG)}
    moves = [
        (r.question_id, r.move) for r in records.values() if isinstance(r, QuestionMoved) and r.question_id in names
    ]
    assert sorted(moves) == [(name, number) for name in names for number in range(1, 8)]
    found(f"{len(LAST) * len(names)} last records, all of the last feed")
