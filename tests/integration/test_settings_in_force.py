"""Settings that are applied before, or at the same time as, the events that need them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import decode_feed_log
from stream_peer.events.times import Milliseconds
from tests.integration.support.client import KafkaClient
from tests.integration.support.service import Service, Shape, service
from tests.unit.questions.question_log import DAY, T0, Partition, Told, book, stage, tick

pytestmark = pytest.mark.real_kafka

FEED = "weather"


@pytest.fixture(scope="module")
def events(repository: Path) -> list[dict[str, Any]]:
    """Nine months old: only a historical feed uses their forecasts."""
    lines = (repository / "examples" / "questions.jsonl").read_text().splitlines()
    return [msgspec.json.decode(line) for line in lines]


@pytest.fixture
def bare(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    """Topics, and neither a worker nor settings."""
    shape = Shape(questions=3, feeds=1)
    with service(kafka, tmp_path, shape=shape, defaults={}, feeds={FEED: {"history": True}}) as deployment:
        deployment.run("topics", "apply")
        yield deployment


END: Milliseconds = T0 + 100 * DAY


def expected(events: list[dict[str, Any]]) -> dict[Any, Any]:
    """The rounds of a historical feed."""
    historical = Partition(stage(book(history=True)))
    historical.send(*map(msgspec.json.encode, events), tick(END), now=END)
    return historical.told.rounds


def rounds(deployment: Service) -> dict[Any, Any]:
    """The rounds that stand."""
    return Told([decode_feed_log(message.value or b"") for message in deployment.read(topics.FEED_LOG)]).rounds


def finish(deployment: Service, events: list[dict[str, Any]]) -> None:
    deployment.wait_committed(len(events))
    deployment.tick(END)
    deployment.settle()


def test_events_that_wait_behind_the_first_settings_are_all_used(bare: Service, events: list[dict[str, Any]]) -> None:
    stored = bare.command("settings", "apply", "--patience", "1s")
    bare.send(events)

    bare.start().wait_ready()
    finish(bare, events)

    assert stored.returncode == 69
    assert "are stored, not in force: no worker has handed them on to 4 of 4 partitions within 1 s" in stored.stderr
    assert rounds(bare) == expected(events) != {}


def test_events_that_are_sent_as_soon_as_settings_are_applied_are_used_at_once(
    bare: Service, events: list[dict[str, Any]]
) -> None:
    bare.start().wait_ready()

    said = bare.run("settings", "apply")
    bare.send(events)
    finish(bare, events)

    assert said.startswith("Applied feed settings ")
    assert bare.metric("stream_peer_noted_total", what="late") == 0
    assert rounds(bare) == expected(events)


def test_a_back_fill_from_before_the_first_settings_is_used(bare: Service, events: list[dict[str, Any]]) -> None:
    bare.send(events)
    bare.start().wait_ready()
    bare.wait_committed(len(events))
    late = bare.metric("stream_peer_noted_total", what="late")

    bare.run("settings", "apply")
    finish(bare, events)

    forecasts = sum(event["type"] == "forecast" for event in events)
    assert late == bare.metric("stream_peer_noted_total", what="dated-anew") == forecasts
    assert rounds(bare) == expected(events)


def test_settings_that_come_later_count_for_what_was_sent_after_they_were_stored(
    bare: Service, events: list[dict[str, Any]]
) -> None:
    bare.start().wait_ready()
    bare.change({FEED: {"history": False}})
    bare.run("settings", "apply")
    bare.workers["w1"].terminate()

    bare.change({FEED: {"history": True}})
    bare.run("settings", "apply", "--no-wait")
    bare.send(events)
    bare.start().wait_ready()
    finish(bare, events)

    assert rounds(bare) == expected(events)
