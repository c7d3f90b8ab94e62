"""Changelogs, or all topics, recreated under a stopped service; and other starts in the middle of a log."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.recreated import (
    CONTROLS,
    DAY,
    FEED,
    FEED_LOG,
    FEEDS,
    FEEDS_STATE,
    FORECASTS,
    QUESTIONS,
    SHAPE,
    before,
    first_half,
    goes_on,
    known,
    newer,
    recreate,
    recreated_and_refused,
    revisions,
    second_half,
    stopped,
    told,
    told_after,
    untouched_end,
)
from tests.integration.support.service import APPLY, Service, Shape, Stage, service
from tests.integration.support.waiting import wait_until

pytestmark = [
    pytest.mark.real_kafka,
    pytest.mark.case("C29"),
    pytest.mark.induces("topics deleted and recreated while the service is stopped"),
]


@pytest.fixture(scope="module")
def untouched() -> dict[str, Any]:
    return untouched_end()


@pytest.fixture
def made(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    yield from stopped(kafka, tmp_path)


@pytest.mark.parametrize("choice", [pytest.param("keep", marks=pytest.mark.faults), "rebuild"])
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
    said = {topic: len(made.read(topic)) for topic in topics.KEYED_BY_QUESTION}
    recreated_and_refused(made, FEEDS_STATE)

    goes_on(made, "rebuild")
    made.settle()

    assert {topic: len(made.read(topic)) for topic in topics.KEYED_BY_QUESTION} == said
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


@pytest.mark.faults
@pytest.mark.induces("2 topics recreated while the service is stopped, then 1 of 2 workers killed")
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
@pytest.mark.induces("1 kill -9 before the first record")
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
@pytest.mark.induces("a changelog that ends in a marker of a transaction")
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
@pytest.mark.induces("an upgrade of one of two workers, a kill -9, the upgrade again")
def test_former_and_present_workers_run_side_by_side_and_nothing_is_lost_or_counted_twice(
    kafka: KafkaClient, tmp_path: Path, untouched: dict[str, Any]
) -> None:
    with service(kafka, tmp_path, shape=SHAPE, feeds=FEEDS) as deployment:
        deployment.run("topics", "apply")
        deployment.start("former", "is_the_former_release")
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
