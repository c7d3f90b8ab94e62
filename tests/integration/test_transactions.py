"""A transactional producer on a real Kafka: what it aborts is never read, and what it keeps open is waited for."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import Event, at, crowd, forecast, milliseconds, now, question
from tests.integration.support.service import Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

PARTITIONS = 2
DAY = 24
CASE = Path(__file__).parent.parent / "cases2" / "aborted-transaction.jsonl"
WAITED = "stream_peer_waiting_for_transaction_seconds"
FETCH_BYTES = 262_144
"""Of a partition that a worker fetches at once."""


@pytest.fixture(scope="module")
def made(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A deployment whose producers use transactions. Use feeds and questions of your own."""
    defaults = {"history": True, "round_every": None, "grace": "1s", "min_experts": 2}
    live = {"live": {"history": False, "idle_after": "1s"}}
    directory = tmp_path_factory.mktemp("transactions")
    with service(kafka, directory, shape=Shape(PARTITIONS, 1), defaults=defaults, feeds=live) as started:
        yield started.set_up()


@pytest.fixture
def running(made: Service) -> Service:
    made.workers["w1"].wait_ready()
    return made


def messages(events: Iterable[Event]) -> list[Message]:
    """Events as a platform sends them."""
    return [
        Message(name.encode(), json.dumps(event).encode(), partition_of(name, PARTITIONS))
        for event in events
        for name in [event["question_id"]]
    ]


def named(feed: str, partition: int, which: int = 0) -> str:
    """The name of a question that lies in a partition."""
    names = (f"{feed}-q{number}" for number in range(100))
    return [name for name in names if partition_of(name, PARTITIONS) == partition][which]


def asked(name: str, feed: str, closes: float, **probabilities: float) -> list[Event]:
    """A question and its forecasts, an hour before the close."""
    forecasts = [forecast(name, expert, said, closes - 1, feed=feed) for expert, said in probabilities.items()]
    return [question(name, feed, closes), *forecasts]


def commit(kafka: KafkaClient, topic: str, events: Iterable[Event]) -> None:
    with kafka.transaction(f"commits on {topic}") as transaction:
        transaction.send(topic, messages(events))
        transaction.commit()


def rounds(run: Service, feed: str) -> dict[str, dict[str, float]]:
    """Of each question of a feed, who stands in its latest round with what."""
    return {
        name: {expert["id"]: expert["probability"] for expert in losses["experts"]}
        for name, losses in run.last(topics.PEER_LOSSES, feed).items()
    }


def closed(run: Service, feed: str, hours: float) -> dict[str, dict[str, float]]:
    """The rounds once everything is processed and everybody was told the hour."""
    run.settle()
    run.tick(milliseconds(hours))
    run.settle()
    return rounds(run, feed)


def waited(run: Service, topic: str, partition: int) -> float:
    return run.metric(WAITED, topic=topic, partition=str(partition))


def of_case(line: str, start: float) -> dict[str, Any]:
    """A line of the case, sent at an hour."""
    seconds = {"NOW+45s": 45, "NOW+1s": 1, "NOW": 0}
    for word, later in seconds.items():
        line = line.replace(f'"{word}"', f'"{at(start + later / 3600)}"')
    found: dict[str, Any] = json.loads(line)
    return found


def test_what_a_transaction_aborts_is_in_no_round(running: Service, kafka: KafkaClient) -> None:
    start, topic = 10 * DAY, running.topic(topics.FORECAST_EVENTS)

    for line in CASE.read_text().splitlines():
        sent = of_case(line, start)
        with kafka.transaction("of the case") as transaction:
            transaction.send(topic, messages(sent["events"]))
            if sent["end"] == "commit":
                transaction.commit()

    assert closed(running, "txn", start + 1) == {"txn-0": {"ann": 0.8, "bob": 0.7, "cy": 0.6}}
    assert running.last(topics.WEIGHTS, "txn")["txn"]["questions"] == 1


def test_a_question_is_scored_although_its_log_ends_in_aborted_records(running: Service, kafka: KafkaClient) -> None:
    name, topic, start = named("live", 0), running.topic(topics.FORECAST_EVENTS), now()
    voters = {"ann": 0.8, "bob": 0.7, "cy": 0.6}
    said = [forecast(name, expert, probability, start, feed="live") for expert, probability in voters.items()]

    commit(kafka, topic, [question(name, "live", start + 2 / 3600, opens_at=at(start - 1)), *said])
    kafka.abort(topic, messages([forecast(name, "ghost", 0.05, start, feed="live")]))

    wait_until(lambda: name in rounds(running, "live"), 60, running.logs)
    assert rounds(running, "live")[name] == voters


def test_a_whole_fetch_of_aborted_records_is_passed_over(running: Service, kafka: KafkaClient) -> None:
    feed, closes, topic = "fetch", 20 * DAY, running.topic(topics.FORECAST_EVENTS)
    first, second = named(feed, 0), named(feed, 0, 1)
    ghosts = [forecast(first, f"ghost{number}", 0.05, closes - 1, feed=feed, note="x" * 900) for number in range(900)]
    assert sum(len(m.value or b"") for m in messages(ghosts)) > 3 * FETCH_BYTES

    commit(kafka, topic, asked(first, feed, closes, ann=0.8, bob=0.7, cy=0.6))
    kafka.abort(topic, messages(ghosts))
    running.settle()  # the group's offset covers them, as that of a client does that commits its position
    tail = running.lag()
    commit(kafka, topic, asked(second, feed, closes, ann=0.4, bob=0.3, cy=0.2))

    expected = {first: {"ann": 0.8, "bob": 0.7, "cy": 0.6}, second: {"ann": 0.4, "bob": 0.3, "cy": 0.2}}
    assert closed(running, feed, closes + 1) == expected
    assert set(tail.values()) == {0}
    assert running.metric("stream_peer_lag_records") == 0
    assert running.metric("stream_peer_input_lost_records_total") == 0


def test_a_worker_that_comes_back_finds_its_place_inside_aborted_records(running: Service, kafka: KafkaClient) -> None:
    feed, closes, topic = "back", 30 * DAY, running.topic(topics.FORECAST_EVENTS)
    first, second = named(feed, 0), named(feed, 0, 1)
    commit(kafka, topic, asked(first, feed, closes, ann=0.8, bob=0.7, cy=0.6))
    kafka.abort(topic, messages([forecast(first, "ghost", 0.05, closes - 1, feed=feed)]))
    running.settle()

    running.restart().wait_ready()
    commit(kafka, topic, asked(second, feed, closes, ann=0.4, bob=0.3, cy=0.2))

    expected = {first: {"ann": 0.8, "bob": 0.7, "cy": 0.6}, second: {"ann": 0.4, "bob": 0.3, "cy": 0.2}}
    assert closed(running, feed, closes + 1) == expected


def test_a_transaction_that_stays_open_holds_up_its_partition_alone_and_ends_no_worker(
    running: Service, kafka: KafkaClient
) -> None:
    feed, closes, topic = "open", 40 * DAY, running.topic(topics.FORECAST_EVENTS)
    held, behind, free = named(feed, 0), named(feed, 0, 1), named(feed, 1)
    worker, longer = running.workers["w1"], 1.2 * running.settings.session

    with kafka.transaction("stays open") as transaction:
        transaction.send(topic, messages(asked(held, feed, closes, ann=0.8, bob=0.7, cy=0.6)))
        running.send([*asked(behind, feed, closes, ann=0.4, bob=0.3), *asked(free, feed, closes, ann=0.2, bob=0.3)])
        running.tick(milliseconds(closes + 1))
        wait_until(lambda: waited(running, topics.FORECAST_EVENTS, 0) > longer, 60, running.logs)
        alive, ready = worker.http("/healthz/live"), worker.http("/healthz/ready")
        meanwhile, elsewhere = rounds(running, feed), waited(running, topics.FORECAST_EVENTS, 1)
        transaction.commit()
    wait_until(lambda: waited(running, topics.FORECAST_EVENTS, 0) == 0, 60, running.logs)
    running.settle()

    assert meanwhile == {free: {"ann": 0.2, "bob": 0.3}}
    assert elsewhere == 0
    assert (alive[0], ready[0]) == (200, 200)
    for _, told in (alive, ready):
        assert f"{topic}-0 is waiting-for-transaction" in json.loads(told)["reason"]
    assert rounds(running, feed) == {
        held: {"ann": 0.8, "bob": 0.7, "cy": 0.6},
        behind: {"ann": 0.4, "bob": 0.3},
        free: {"ann": 0.2, "bob": 0.3},
    }
    assert not worker.has_ended
    assert worker.said().count("waiting_for_transaction") == worker.said().count("transaction_ended") == 1


def test_a_worker_that_starts_behind_an_open_transaction_is_ready_and_reads_on_when_it_ends(
    running: Service, kafka: KafkaClient
) -> None:
    feed, closes, topic = "start", 50 * DAY, running.topic(topics.FORECAST_EVENTS)
    first, second = named(feed, 0), named(feed, 0, 1)

    with kafka.transaction("open at a start") as transaction:
        commit(kafka, topic, asked(first, feed, closes, ann=0.8, bob=0.7))
        transaction.send(topic, messages([forecast(first, "ghost", 0.05, closes - 1, feed=feed)]))
        running.send(asked(second, feed, closes, ann=0.4, bob=0.3))
        running.restart().wait_ready()
        wait_until(lambda: waited(running, topics.FORECAST_EVENTS, 0) > 0, 60, running.logs)
        transaction.abort()

    expected = {first: {"ann": 0.8, "bob": 0.7}, second: {"ann": 0.4, "bob": 0.3}}
    assert closed(running, feed, closes + 1) == expected


def test_tools_read_logs_that_end_in_aborted_records_or_behind_an_open_transaction(
    running: Service, kafka: KafkaClient, tmp_path: Path
) -> None:
    feed, closes = "tools", 60 * DAY
    for number in range(4):
        running.send(list(crowd(f"{feed}-{number}", 4, closes - 5, feed=feed)))
        running.send([question(f"{feed}-{number}", feed, closes)])
    assert len(closed(running, feed, closes + 1)) == 4
    newest = running.weights(feed)
    never = json.dumps({**newest, "revision": newest["revision"] + 1_000}).encode()
    for logical in (topics.WEIGHTS, topics.FEED_LOG, topics.CONTROL_EVENTS):
        kafka.abort(running.topic(logical), [Message(feed.encode(), never, 0)])

    def told() -> list[Any]:
        return [
            json.loads(running.run("tail", feed, "--once"))["revision"],
            running.run("replay", "--from-log", feed),
            json.loads(running.run("explain", feed, "e1", "--json"))["until"]["weight"],
            running.run("export", feed, "--out", str(tmp_path / "feed.gz")).partition(" (")[0],  # its size varies
        ]

    behind_aborted = told()
    with kafka.transaction("tools wait for nobody") as transaction:
        for logical in (topics.WEIGHTS, topics.FEED_LOG, topics.CONTROL_EVENTS):
            transaction.send(running.topic(logical), [Message(feed.encode(), never, 0)])
        behind_open = told()

    revision, _, weight, _ = behind_aborted
    assert behind_open == behind_aborted
    assert revision == newest["revision"]
    assert weight == {expert["id"]: expert["mix"] for expert in newest["experts"]}["e1"]
