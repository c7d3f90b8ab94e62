"""Input topics deleted and recreated under a stopped service: each topic, each choice, with a restart halfway."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import at
from tests.integration.support.recreated import (
    CONTROLS,
    DAY,
    FEED,
    FEED_LOG,
    FORECASTS,
    before,
    goes_on,
    known,
    recreate,
    recreated_and_refused,
    revisions,
    stopped,
    told,
    told_after,
    untouched_end,
)
from tests.integration.support.service import APPLY, Service

pytestmark = [
    pytest.mark.real_kafka,
    pytest.mark.case("C29"),
    pytest.mark.induces("1 input topic deleted and recreated while the service is stopped"),
]

CHOICES = ["keep", pytest.param("rebuild", marks=pytest.mark.faults)]


def before_settings(made: Service) -> str:
    """Hash of the settings in the first weights."""
    return str(made.outputs(topics.WEIGHTS, FEED)[0]["settings"])


@pytest.fixture(scope="module")
def untouched() -> dict[str, Any]:
    return untouched_end()


@pytest.fixture
def made(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    yield from stopped(kafka, tmp_path)


@pytest.mark.induces("forecast-events recreated, then 2 kills -9 between entries and head")
@pytest.mark.parametrize("choice", CHOICES)
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


@pytest.mark.faults
def test_a_recreated_feed_log_can_begin_without_what_was_known(made: Service) -> None:
    highest = max(found[-1] for found in revisions(made).values())
    recreate(made, FEED_LOG)

    goes_on(made, "rebuild")
    told_after(made)

    weights = made.weights(FEED)
    assert (weights["questions"], weights["resolved"]) == (6, 2)  # those that closed since
    assert weights["revision"] > highest
    assert all(found == sorted(found) for found in revisions(made).values())


@pytest.mark.parametrize("choice", CHOICES)
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


@pytest.mark.induces("control-events recreated with as many events as were read before, the group's offset kept")
def test_of_recreated_control_events_the_first_are_heard_though_the_group_had_read_as_many(made: Service) -> None:
    place = TopicPartition(made.topic(CONTROLS), 0)
    with made.kafka.consumer(group_id=made.settings.app_id("feed")) as group:
        committed = group.committed(place, metadata=True)
        recreate(made, CONTROLS)
        group.assign([place])
        group.commit({place: committed})  # as a worker does that has not noticed yet
    members = [f"e{number}" for number in range(committed.offset)]
    event = {"type": "expert", "feed": FEED, "team": "lab", "at": at(2 * DAY)}
    made.send([{**event, "expert_id": name} for name in members], CONTROLS)

    goes_on(made, "keep")
    made.run(*APPLY)  # an event that every partition hears: the choice is not asked for any more
    told_after(made)

    teams = {expert["id"]: expert["team"] for expert in made.weights(FEED)["experts"]}
    assert [name for name, team in teams.items() if team == "lab"] == members != []
    assert made.committed("feed", CONTROLS) == {0: committed.offset + 1}
