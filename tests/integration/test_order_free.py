"""Real forecasts, replayed from their file and served by Kafka in several shapes: what is order-free is equal."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import Output
from stream_peer.settings.feed.document import with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.integration.support.client import KafkaClient
from tests.integration.support.lives import LIVES
from tests.integration.support.service import SECRET, Shape, service
from tests.order_free import COMPARED, order_free

pytestmark = [pytest.mark.real_kafka, pytest.mark.slow]

AFTER_ALL: Milliseconds = 1_700_000_000_000
"""2023, when every poll was long over."""

ORDER_FREE = {"vote_rule": "half", "guard": "off"}
"""With ``auto`` the rule in force depends on what came first, with the guard who is held together."""

Outputs = dict[tuple[str, str], Mapping[str, Any]]


@pytest.fixture(scope="module")
def polls(data_directory: Path) -> Path:
    """Polls of American elections, 837 questions in several feeds."""
    return data_directory / "us_polls_general.jsonl.gz"


@pytest.fixture(scope="module")
def replayed(polls: Path) -> Outputs:
    """What is order-free of the last record of each key, of a replay of the file."""
    records: list[tuple[str, bytes | None, bytes | None]] = []

    def keep(output: Output) -> None:
        records.append((output.topic, output.key, output.value))

    replay(
        [read_lines(polls)],
        ReplayOptions(document=with_method({"defaults": ORDER_FREE}, NEWEST_METHOD), secret=SECRET.encode()),
        write=keep,
    )
    return last_order_free(records)


def last_order_free(records: Iterable[tuple[str, bytes | None, bytes | None]]) -> Outputs:
    last = {(topic, (key or b"").decode()): value for topic, key, value in records if topic in COMPARED}
    return {place: order_free(place[0], json.loads(value or b"{}"), mixes=False) for place, value in last.items()}


@pytest.mark.case("C14")
@pytest.mark.parametrize(("partitions", "workers"), [(1, 1), (1, 2), (4, 1), (4, 2)])
def test_the_service_says_of_real_polls_what_a_replay_says(
    partitions: int, workers: int, polls: Path, replayed: Outputs, kafka: KafkaClient, tmp_path: Path
) -> None:
    defaults = {"history": True, **ORDER_FREE}
    with service(kafka, tmp_path, shape=Shape(partitions, partitions), defaults=defaults, **LIVES) as served:
        served.set_up()
        for number in range(1, workers):
            served.start(f"w{number + 1}").wait_ready()
        with gzip.open(polls, "rt") as lines:
            served.send(json.loads(line) for line in lines)
        served.settle()
        served.tick(AFTER_ALL)
        served.settle()
        records = [(topic, m.key, m.value) for topic in COMPARED for m in served.read(topic)]

    said = last_order_free(records)
    assert said.keys() == replayed.keys()
    assert said == replayed
