"""Topics deleted and recreated under a stopped service: for each topic and each choice, with a restart halfway."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, crowd, milliseconds, question, resolution
from tests.integration.support.service import APPLY, Service, Shape, Stage, service
from tests.integration.support.waiting import wait_until
from tests.order_free import order_free

pytestmark = [pytest.mark.real_kafka, pytest.mark.case("C29")]

FEED = "econ"
SHAPE = Shape(2, 2)
DAY = 24
FEEDS = {FEED: {"vote_rule": "half"}}
FORECASTS, CONTROLS, FEED_LOG = topics.FORECAST_EVENTS, topics.CONTROL_EVENTS, topics.FEED_LOG
QUESTIONS, FEEDS_STATE = "question-changelog", "feed-changelog"
QUESTION_OUTPUTS = (topics.REFERENCE_ANSWERS, topics.PEER_LOSSES, topics.MIXED_FORECASTS)


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


def told_after(made: Service, name: str = "w1", **environment: str) -> None:
    """The rest, with a restart halfway."""
    told(made, first_half(), 3.5 * DAY)
    assert made.workers[name].terminate() == 0, made.logs()
    made.start(name, **environment)
    told(made, second_half(), 7 * DAY)


def known(made: Service) -> dict[str, Any]:
    """All that is order-free of the last records of the feed."""
    found = {topic: made.last(topic, FEED) for topic in (*QUESTION_OUTPUTS, *topics.KEYED_BY_FEED)}
    return {topic: {key: order_free(record) for key, record in last.items()} for topic, last in found.items()}


def revisions(made: Service) -> dict[tuple[str, str], list[int]]:
    """Revisions of each key, in the order of the topic."""
    found: dict[tuple[str, str], list[int]] = {}
    for topic in (*QUESTION_OUTPUTS, *topics.KEYED_BY_FEED):
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
    """A worker with this choice is ready, and has logged what it found."""
    worker = made.start(STREAM_PEER_ON_RECREATED=choice).wait_ready()
    assert "topic_made_anew" in worker.said(), worker.said()


@pytest.fixture(scope="module")
def untouched(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What is known in the end where no topic was recreated."""
    with service(kafka, tmp_path_factory.mktemp("untouched"), shape=SHAPE, feeds=FEEDS) as made:
        told_before(made).start()
        told_after(made)
        yield known(made)


@pytest.fixture
def made(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    """A deployment that was told the events from before, and is stopped."""
    with service(kafka, tmp_path, shape=SHAPE, feeds=FEEDS) as deployment:
        yield told_before(deployment)


@pytest.mark.parametrize("choice", ["keep", "rebuild"])
def test_recreated_forecast_events_stop_the_service_until_a_choice_which_kills_on_the_way_do_not_spoil(
    made: Service, untouched: dict[str, Any], choice: str
) -> None:
    recreated_and_refused(made, FORECASTS)
    for number in (1, 2):
        dying = made.start(STREAM_PEER_ON_RECREATED=choice, STREAM_PEER_FAULT=f"between-entries-and-head:{number}")
        assert dying.process.wait(60) < 0, dying.said()

    goes_on(made, choice)
    if choice == "rebuild":  # the platform tells everything again
        told(made, before(), 1.5 * DAY)
    told_after(made)

    assert known(made) == untouched
    assert all(found == sorted(found) for found in revisions(made).values())
    assert not made.dead_letters()


def test_a_recreated_feed_log_goes_on_with_what_is_known_under_higher_revisions(
    made: Service, untouched: dict[str, Any]
) -> None:
    highest = max(found[-1] for found in revisions(made).values())
    recreated_and_refused(made, FEED_LOG)

    goes_on(made, "keep")
    told_after(made)

    assert known(made) == untouched
    assert made.weights(FEED)["revision"] > highest
    assert all(found == sorted(found) for found in revisions(made).values())


def test_a_recreated_feed_log_can_begin_without_what_was_known(made: Service) -> None:
    highest = max(found[-1] for found in revisions(made).values())
    recreate(made, FEED_LOG)

    goes_on(made, "rebuild")
    told_after(made)

    weights = made.weights(FEED)
    assert (weights["questions"], weights["resolved"]) == (6, 2)  # those that closed since
    assert weights["revision"] > highest
    assert all(found == sorted(found) for found in revisions(made).values())


@pytest.mark.parametrize("choice", ["keep", "rebuild"])
def test_recreated_control_events_are_heard(made: Service, untouched: dict[str, Any], choice: str) -> None:
    recreated_and_refused(made, CONTROLS)

    goes_on(made, choice)
    made.apply({FEED: {"publish_every": "500ms"}})
    made.settle()
    assert made.workers["w1"].terminate() == 0, made.logs()
    made.start()  # the choice is not asked for any more
    told_after(made)

    assert made.weights(FEED)["settings"] != before_settings(made)
    assert known(made) == untouched


def before_settings(made: Service) -> str:
    """Hash of the settings in the first weights."""
    return str(made.outputs(topics.WEIGHTS, FEED)[0]["settings"])


@pytest.mark.parametrize("choice", ["keep", "rebuild"])
def test_a_recreated_question_changelog_is_folded_from_what_forecast_events_hold(
    made: Service, untouched: dict[str, Any], choice: str
) -> None:
    recreated_and_refused(made, QUESTIONS)

    goes_on(made, choice)
    told_after(made)

    assert known(made) == untouched


def test_a_recreated_feed_changelog_is_folded_from_the_feed_log_and_nothing_is_said_again(
    made: Service, untouched: dict[str, Any]
) -> None:
    said = {topic: len(made.read(topic)) for topic in QUESTION_OUTPUTS}
    recreated_and_refused(made, FEEDS_STATE)

    goes_on(made, "rebuild")
    made.settle()

    assert {topic: len(made.read(topic)) for topic in QUESTION_OUTPUTS} == said
    assert sum(covered for covered in made.covered("feed").values()) > 0
    told_after(made)
    assert known(made) == untouched


def test_inputs_and_changelogs_recreated_together_lose_nothing_that_comes_afterwards(
    made: Service, untouched: dict[str, Any]
) -> None:
    recreate(made, FORECASTS, CONTROLS, QUESTIONS, FEEDS_STATE)

    goes_on(made, "rebuild")
    made.run(*APPLY)
    made.wait_configured()
    told(made, before(), 1.5 * DAY)
    told_after(made)

    assert known(made) == untouched


def test_two_workers_agree_on_recreated_topics(made: Service, untouched: dict[str, Any]) -> None:
    recreate(made, FORECASTS, FEED_LOG)

    made.start("w2", STREAM_PEER_ON_RECREATED="keep")
    goes_on(made, "keep")
    told(made, first_half(), 3.5 * DAY)
    made.workers.pop("w1").kill()
    told(made, second_half(), 7 * DAY)

    assert known(made) == untouched
    assert all(found == sorted(set(found)) for key, found in revisions(made).items() if key[0] in topics.KEYED_BY_FEED)


@pytest.mark.case("C30")
def test_a_first_start_at_the_end_says_what_it_leaves_out_and_decides_it_once(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    with service(kafka, tmp_path, shape=Shape(1, 1), feeds=FEEDS) as deployment:
        deployment.run("topics", "apply")
        deployment.send(question(f"old{number}", FEED, DAY) for number in range(5))
        first = deployment.start(STREAM_PEER_START="latest").wait_ready()
        wait_until(lambda: deployment.covered("question") == {0: 5}, 30.0, first.said)
        first.kill()  # before there was any record
        deployment.run("settings", "apply", "--no-wait")  # no worker runs
        second = deployment.start(STREAM_PEER_START="latest")
        deployment.wait_configured()
        deployment.settle()
        deployment.restart()
        deployment.send([question("new", FEED, DAY), *crowd("new", 3, 1)])
        deployment.settle()
        deployment.tick(milliseconds(2 * DAY))
        deployment.settle()

        (warning,) = [line for line in first.said().splitlines() if "input_skipped" in line]
        assert "[warning" in warning
        assert "records=5" in warning
        assert "input_skipped" not in second.said()
        assert list(deployment.last(topics.REFERENCE_ANSWERS, FEED)) == ["new"]


@pytest.mark.case("C32")
def test_a_changelog_that_ends_in_a_marker_of_a_transaction_holds_nobody_up(
    made: Service, untouched: dict[str, Any]
) -> None:
    stages: tuple[Stage, ...] = ("question", "feed")
    for stage in stages:
        changelog = made.settings.changelog(stage)
        made.kafka.transact(changelog, b"0/nothing", 2)

    made.start().wait_ready(30.0)
    told_after(made)

    assert known(made) == untouched


@pytest.mark.case("C26")
def test_former_and_present_workers_run_side_by_side_and_nothing_is_lost_or_counted_twice(
    kafka: KafkaClient, tmp_path: Path, untouched: dict[str, Any]
) -> None:
    former = "tests.integration.support.former_worker"
    with service(kafka, tmp_path, shape=SHAPE, feeds=FEEDS) as deployment:
        deployment.run("topics", "apply")
        deployment.start("former", former)
        deployment.run(*APPLY)
        deployment.wait_configured()
        told(deployment, before(), 1.5 * DAY)

        deployment.start("present").wait_ready()
        told(deployment, newer(first_half()), 3.5 * DAY)
        deployment.workers.pop("present").kill()  # taken back: the former release goes on with what it left
        told(deployment, second_half(), 4.5 * DAY)
        deployment.start("present").wait_ready()
        assert deployment.workers.pop("former").terminate() == 0, deployment.logs()
        deployment.tick(milliseconds(7 * DAY))
        deployment.settle()

        assert known(deployment) == untouched
        assert not deployment.dead_letters()
        deployment.send([{**question("q99", FEED, 9 * DAY), "schema": 2}])
        deployment.settle()
        assert [letter.reason for letter in deployment.dead_letters().values()] == [Reason.UNKNOWN_VERSION]


def newer(events: Iterator[Event]) -> Iterator[Event]:
    """As a producer of the next release sends them: with fields that nobody knows yet."""
    return ({**event, "schema": 1, "priority": {"of": "next"}} for event in events)
