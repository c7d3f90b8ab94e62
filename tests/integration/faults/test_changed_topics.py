"""Topics that change while a worker runs: it is told within a minute, and the way back that is named leads back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.service import Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]


@pytest.fixture
def made(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    with service(kafka, tmp_path, shape=Shape(2, 1), feeds={"econ": {}}) as started:
        started.set_up().workers["w1"].wait_ready()
        yield started


def reason(made: Service) -> str:
    """Why the worker is not ready; empty if it is. It lives in either case."""
    assert made.workers["w1"].http("/healthz/live")[0] == 200, made.logs()
    status, told = made.workers["w1"].http("/healthz/ready")
    return "" if status == 200 else str(json.loads(told)["reason"])


def told(made: Service, text: str) -> str:
    wait_until(lambda: text in reason(made), 90, lambda: f"{reason(made)}\n{made.logs()}")
    return reason(made)


def asked(made: Service, name: str, day: int) -> None:
    made.send([question(name, "econ", 24.0 * day), *crowd(name, 6, 24.0 * day - 1)])
    made.tick(milliseconds(24.0 * day + 1))
    made.settle()


@pytest.mark.induces("partitions added to forecast-events under a running worker")
def test_added_partitions_are_told_and_the_way_back_that_is_named_loses_nothing_that_was_folded(made: Service) -> None:
    forecasts = made.topic(topics.FORECAST_EVENTS)
    asked(made, "before", 1)
    with made.kafka.admin() as admin:
        admin.create_partitions({forecasts: 4})

    message = told(made, f"{forecasts} has 4 partitions, not 2")
    assert f"delete {forecasts}" in message
    assert "on_recreated: keep" in message
    assert "topics_changed" in made.workers["w1"].said()

    assert made.workers["w1"].terminate() == 0
    refused = made.start()
    assert refused.process.wait(60) == 78
    assert f"{forecasts} has 4 partitions, not 2" in refused.said()
    made.recreate(forecasts)
    made.start(STREAM_PEER_ON_RECREATED="keep").wait_ready()
    asked(made, "after", 2)
    assert set(made.last(topics.PEER_LOSSES, "econ")) == {"before", "after"}
    assert made.weights("econ")["questions"] == 2


@pytest.mark.induces("settings of feed-log changed and weights deleted under a running worker")
def test_changed_settings_and_a_deleted_topic_are_told_and_topics_apply_mends_them_while_it_runs(made: Service) -> None:
    feed_log, weights = made.topic(topics.FEED_LOG), made.topic(topics.WEIGHTS)
    breaks: dict[str, Callable[[], object]] = {
        f"{feed_log} has retention.ms=1000000": lambda: altered(made, feed_log),
        f"{weights} is missing": lambda: made.kafka.delete(weights),
    }
    for day, (text, broken) in enumerate(breaks.items(), 1):
        asked(made, f"question-{day}", day)
        broken()
        assert "run `" in told(made, text)
        made.run("topics", "apply")
        wait_until(lambda: reason(made) == "", 90, made.logs)
    asked(made, "last", 3)
    assert made.weights("econ")["questions"] == 3


def altered(made: Service, topic: str) -> None:
    with made.kafka.admin() as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000000"})])
