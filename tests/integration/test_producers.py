"""Two producers on real Kafka, and one of them tries to speak for the other's expert."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.log.producers import PRODUCER_HEADER, producer_mac
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import Event, forecast, milliseconds, question, resolution
from tests.integration.support.service import Service, service

pytestmark = pytest.mark.real_kafka

DAY = 24
KEYS = {"house": "the key of the house", "rival": "the key of a rival", "platform": "the key of the platform"}
RIGHTS: dict[str, dict[str, Any]] = {
    "house": {"experts": ["house-*"]},
    "rival": {"experts": ["rival-*"]},
    "platform": {"may_ask": True, "may_resolve": True},
}


@pytest.fixture(scope="module")
def guarded(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A deployment that knows three producers."""
    directory = tmp_path_factory.mktemp("guarded")
    with service(kafka, directory, producers_file=str(producers_file(directory))) as made:
        yield made.set_up()


def producers_file(directory: Path) -> Path:
    for name, key in KEYS.items():
        (directory / f"{name}.key").write_text(key)
    file = directory / "producers.yaml"
    rights = {name: {"key_file": f"{name}.key", **allowed} for name, allowed in RIGHTS.items()}
    file.write_text(yaml.safe_dump({"producers": rights}))
    return file


def signed(service: Service, name: str, event: Event, *, astray: bool = False) -> Message:
    """An event as its producer sends it; ``astray``: to another partition than its question's."""
    key, value = str(event["question_id"]).encode(), json.dumps(event).encode()
    mac = producer_mac(KEYS[name].encode(), service.topic(topics.FORECAST_EVENTS), key, value)
    home = partition_of(str(event["question_id"]), service.shape.questions)
    partition = (home + 1) % service.shape.questions if astray else home
    return Message(key, value, partition, headers=((PRODUCER_HEADER, f"{name}:{mac}".encode()),))


@pytest.mark.parametrize("astray", [False, True])
def test_a_producer_cannot_speak_for_an_expert_of_another(guarded: Service, *, astray: bool) -> None:
    feed = question_id = f"guarded-{'astray' if astray else 'home'}"
    said = [
        signed(guarded, "platform", {**question(question_id, feed, DAY), "at": forecast("q", "e", 0.5, 0)["at"]}),
        *(signed(guarded, "house", forecast(question_id, f"house-{n}", 0.8, 1), astray=astray) for n in range(2)),
        signed(guarded, "rival", forecast(question_id, "rival-1", 0.3, 1), astray=astray),
    ]
    foreign = [
        signed(guarded, "rival", forecast(question_id, "house-0", 0.01, 2), astray=astray),
        signed(guarded, "rival", resolution(question_id, 0, 3), astray=astray),
        signed(guarded, "house", forecast(question_id, "house-1", 0.5, 2), astray=astray)._replace(headers=()),
    ]

    guarded.produce(topics.FORECAST_EVENTS, [*said, *foreign])
    guarded.settle()
    guarded.tick(milliseconds(2 * DAY))
    guarded.settle()

    letters = [letter for letter in guarded.dead_letters().values() if letter.message.key == question_id.encode()]
    told = guarded.last(topics.PEER_LOSSES, feed)[question_id]
    assert sorted(letter.reason for letter in letters) == [
        Reason.PRODUCER_FORBIDDEN,
        Reason.PRODUCER_FORBIDDEN,
        Reason.PRODUCER_UNKNOWN,
    ]
    assert {each["id"]: each["probability"] for each in told["experts"]} == {
        "house-0": 0.8,
        "house-1": 0.8,
        "rival-1": 0.3,
    }
    assert guarded.metric("stream_peer_dead_letters_total", reason=Reason.PRODUCER_FORBIDDEN) >= 2
