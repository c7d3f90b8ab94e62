"""Cases from real users about asking a group of workers by HTTP, on real Kafka."""

import http.client
import json
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from tests.integration.support.client import KafkaClient
from tests.integration.support.lives import DAY, Published, crowds, finish, outcomes, replayed
from tests.integration.support.service import Service, Shape, Worker, service
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

SHAPE = Shape(questions=6, feeds=3)
WORKERS = ("w1", "w2", "w3")
NUMBERS = range(12)


class Told(NamedTuple):
    """An answer, and where it came from or points to."""

    status: int
    body: bytes
    location: str = ""


def ask(url: str) -> Told:
    """Ask once; a redirect is an answer."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
    try:
        connection.request("GET", url.partition(place.netloc)[2])
        answer = connection.getresponse()
        return Told(answer.status, answer.read(), answer.headers.get("Location", ""))
    finally:
        connection.close()


def address(worker: Worker) -> str:
    return f"http://127.0.0.1:{worker.port}"


def feeds_of_all_partitions() -> list[str]:
    """Names of feeds, one for each partition of the feed-log and one more."""
    names = [f"c35{letter}" for letter in "abcdefghijklmnop"]
    first = {partition_of(name, SHAPE.feeds): name for name in reversed(names)}
    return sorted({*first.values(), names[-1]})


def answers_of(worker: Worker, paths: Iterable[str]) -> dict[str, Told]:
    return {path: ask(address(worker) + path) for path in paths}


def settled_answers(made: Service, paths: list[str], newest: Mapping[str, int]) -> dict[str, dict[str, Told]]:
    """Answers of all workers, once each has read the newest weights."""

    def answers() -> dict[str, dict[str, Told]] | None:
        found = {name: answers_of(worker, paths) for name, worker in made.workers.items() if not worker.has_ended}
        lists = [json.loads(told["/feeds"].body) for told in found.values() if told["/feeds"].status == 200]
        known = [{feed["feed"]: feed["revision"] for feed in listed["feeds"]} for listed in lists]
        return found if known == [dict(newest)] * len(found) else None

    found = wait_until(answers, 30, lambda: f"they never read the newest weights\n{made.logs()}", every=0.3)
    assert found is not None
    return found


def check_feeds(made: Service, feeds: list[str]) -> None:
    """Every worker answers alike for every feed, as it was published."""
    published = Published(made)
    newest = {feed: published.weights(feed)["revision"] for feed in feeds}
    paths = ["/feeds", *(f"/feeds/{feed}" for feed in feeds), *(f"/feeds/{feed}/experts/e3" for feed in feeds)]
    found = list(settled_answers(made, paths, newest).values())
    assert all(told == found[0] for told in found)
    for feed in feeds:
        told = json.loads(found[0][f"/feeds/{feed}"].body)
        assert told["weights"] == published.weights(feed)
        assert told["error_rates"] == published.last(feed)[topics.ERROR_RATES][feed]


def told_by_all(workers: Mapping[str, Worker], path: str) -> dict[str, Told]:
    """What each worker answers, once one does: while a partition goes from one to another, none answers for it."""

    def answers() -> dict[str, Told] | None:
        told = {name: ask(address(worker) + path) for name, worker in workers.items()}
        return told if any(answer.status == 200 for answer in told.values()) else None

    return wait_until(answers, 60, lambda: f"no worker answers for {path}")


def question_answers(
    made: Service, questions: Iterable[tuple[str, str]]
) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """The answer to each question, the same from every worker, directly or redirected; and who owns which feed."""
    answers, owners = {}, set()
    workers = {name: worker for name, worker in made.workers.items() if not worker.has_ended}
    for feed, question in questions:
        path = f"/feeds/{feed}/questions/{question}"
        told = told_by_all(workers, path)
        (owner,) = [name for name, answer in told.items() if answer.status == 200]
        owners.add((feed, owner))
        for answer in told.values():
            if answer.status != 200:
                assert (answer.status, answer.location) == (307, f"{address(workers[owner])}{path}?redirected=yes")
                assert ask(answer.location) == told[owner]
        answers[question] = json.loads(told[owner].body)
    return answers, owners


@pytest.mark.case("C35")
def test_any_of_three_workers_answers_for_all_partitions_as_a_single_one_would(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    feeds, start = feeds_of_all_partitions(), -1000.0 * DAY
    questions = [(feed, f"{feed}-q{number}") for feed in feeds for number in NUMBERS]
    events = {feed: [*crowds(feed, start, NUMBERS)] for feed in feeds}
    truth = {feed: [*outcomes(feed, start + 2 * DAY, {0: 1, 1: 0, 2: 1})] for feed in feeds}
    assert {partition_of(question, SHAPE.questions) for _, question in questions} == set(range(SHAPE.questions))
    with service(
        kafka, tmp_path / "three", shape=SHAPE, defaults={"history": True, "vote_rule": "half", "guard": "off"}
    ) as made:
        made.set_up("w1")
        for name in WORKERS[1:]:
            made.start(name)
        for name in WORKERS:
            made.workers[name].wait_ready()
        for feed in feeds:
            made.send([*events[feed], *truth[feed]])
        finish(made, start + 3 * DAY)

        check_feeds(made, feeds)
        of_three, owners = question_answers(made, questions)
        assert len(owners) == len(feeds)
        assert len({owner for _, owner in owners}) > 1

        for name in WORKERS[1:]:
            made.workers[name].send(signal.SIGTERM)
        assert [made.workers[name].process.wait(30) for name in WORKERS[1:]] == [0, 0]
        made.workers["w1"].wait_ready()
        check_feeds(made, feeds)
        of_one, _ = question_answers(made, questions)
        assert of_one == of_three
        check_by_replay(made, feeds, events, truth, of_one)

        made.start("w2", STREAM_PEER_STAGE="question").wait_ready()
        assert question_answers(made, questions[:3]) == (
            {key: of_one[key] for _, key in questions[:3]},
            {(feeds[0], "w1")},
        )


def check_by_replay(
    made: Service, feeds: list[str], events: Mapping[str, Any], truth: Mapping[str, Any], answers: Mapping[str, Any]
) -> None:
    """All of it equals what one process makes of the events; every question of every partition counts."""
    published = Published(made)
    for feed in feeds:
        assert published.weights(feed)["questions"] == len(NUMBERS)
        assert published.order_free(feed) == replayed([*events[feed], *truth[feed]], feed)
        for number in NUMBERS:
            question = f"{feed}-q{number}"
            told, said = answers[question]["reference_answer"], published.answers(feed)[question]
            for name in ("reference_answer", "outcome", "votes", "yes", "state", "boundary"):
                assert told[name] == said[name]
