"""Deployments whose topics are deleted and recreated while they are stopped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, crowd, milliseconds, question, resolution
from tests.integration.support.lives import renamed, replayed
from tests.integration.support.service import Service, Shape, service
from tests.order_free import COMPARED

FEED = "econ"
SHAPE = Shape(2, 2)
DAY = 24
FEEDS = {FEED: {"vote_rule": "half", "guard": "off"}}
FORECASTS, CONTROLS, FEED_LOG = topics.FORECAST_EVENTS, topics.CONTROL_EVENTS, topics.FEED_LOG
QUESTIONS, FEEDS_STATE = "question-changelog", "feed-changelog"


def before() -> Iterator[Event]:
    """Six questions that close on the first day, three of them resolved, and two that stay open, half answered."""
    for number in range(6):
        yield question(f"q{number}", FEED, DAY)
        yield from crowd(f"q{number}", 5, number)
    yield from (resolution(f"q{number}", number % 2, DAY + 2, feed=FEED) for number in range(3))
    for number in (6, 7):
        yield question(f"q{number}", FEED, 5 * DAY)
        yield from crowd(f"q{number}", 3, number)


def first_half() -> Iterator[Event]:
    """The other halves of the open ones, and two new ones."""
    for number in (6, 7):
        yield from crowd(f"q{number}", 3, 2 * DAY, first=3, feed=FEED)
    for number in (8, 9):
        yield question(f"q{number}", FEED, 3 * DAY)
        yield from crowd(f"q{number}", 5, 2 * DAY)


def second_half() -> Iterator[Event]:
    """Two more new ones, and outcomes of some that were there before and after."""
    for number in (10, 11):
        yield question(f"q{number}", FEED, 5 * DAY)
        yield from crowd(f"q{number}", 5, 4 * DAY)
    yield from (resolution(f"q{number}", 1, 6 * DAY, feed=FEED) for number in (1, 3, 6, 8))


def told(made: Service, events: Iterator[Event], hours: float) -> None:
    """Everything is sent and processed, and so is the hour."""
    made.send(events)
    made.settle()
    made.tick(milliseconds(hours))
    made.settle()


def told_before(made: Service) -> Service:
    """A deployment that was told the events from before, and is stopped."""
    made.set_up()
    told(made, before(), 1.5 * DAY)
    assert made.workers["w1"].terminate() == 0, made.logs()
    return made


def told_after(made: Service, **environment: str) -> None:
    """The rest, with a restart halfway."""
    told(made, first_half(), 3.5 * DAY)
    assert made.workers["w1"].terminate() == 0, made.logs()
    made.start("w1", **environment)
    told(made, second_half(), 7 * DAY)


def known(made: Service) -> dict[str, Any]:
    """All that is order-free of the last records of the feed."""
    return {topic: renamed(topic, made.last(topic, FEED), FEED) for topic in COMPARED}


def revisions(made: Service) -> dict[tuple[str, str], list[int]]:
    """Revisions of each key, in the order of the topic."""
    found: dict[tuple[str, str], list[int]] = {}
    for topic in COMPARED:
        for message in made.read(topic):
            key = topic, (message.key or b"").decode()
            found.setdefault(key, []).append(json.loads(message.value or b"{}")["revision"])
    return found


def physical(made: Service, name: str) -> str:
    """The name that Kafka knows."""
    changelogs = {QUESTIONS: made.settings.changelog("question"), FEEDS_STATE: made.settings.changelog("feed")}
    return changelogs.get(name) or made.topic(name)


def recreate(made: Service, *names: str) -> None:
    """Delete topics of a stopped deployment, and create them again."""
    made.recreate(*(physical(made, name) for name in names))


def recreated_and_refused(made: Service, name: str) -> None:
    """Delete a topic, create it again, and start a worker without a choice: it stops and names the choices."""
    recreate(made, name)
    worker = made.start()
    code = worker.process.wait(60)
    assert code == 78, worker.said()
    (line,) = [line for line in worker.said().splitlines() if "was deleted and recreated" in line]
    for part in (physical(made, name), "on_recreated: keep ", "rebuild ", "stop (in force)"):
        assert part in line


def goes_on(made: Service, choice: str) -> None:
    """A worker with this choice is ready, and whichever came first to the topics has logged what it found."""
    made.start(STREAM_PEER_ON_RECREATED=choice).wait_ready()
    logs = [worker.said() for worker in made.workers.values()]
    assert any("topic_recreated" in log for log in logs), logs


def untouched_end() -> dict[str, Any]:
    """What is known in the end where no topic was recreated."""
    return replayed([*before(), *first_half(), *second_half()], FEED)


def stopped(kafka: KafkaClient, directory: Path) -> Iterator[Service]:
    """A deployment that was told the events from before, and is stopped."""
    with service(kafka, directory, shape=SHAPE, feeds=FEEDS) as deployment:
        yield told_before(deployment)


def newer(events: Iterator[Event]) -> Iterator[Event]:
    """As a producer of the next release sends them: with fields that nobody knows yet."""
    return ({**event, "schema": 1, "priority": {"of": "next"}} for event in events)
