"""Workers that start far behind: they read all the while, and keep their partitions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stream_peer.settings.process import Settings
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import encoded, forecast, question
from tests.integration.support.service import Service, Shape, service

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka, pytest.mark.faults]

BACKLOG, QUESTIONS = 100_000, 200
SESSION = Settings().session
LIMIT = SESSION / 2
"""Seconds without a poll after which a worker would lose its partitions."""


def rebalances(made: Service) -> dict[str, float]:
    """By worker."""
    return {name: made.metric("stream_peer_rebalances_total", name) for name in made.workers}


def gaps(made: Service, name: str) -> tuple[float, float]:
    """How many gaps between polls a worker has measured, and how many of them were not longer than five seconds."""
    samples = [sample for sample in made.all_samples(name) if sample.name.startswith("stream_peer_poll_gap_seconds")]
    short = [sample.value for sample in samples if sample.labels.get("le") == "5.0"]
    return sum(sample.value for sample in samples if sample.name.endswith("_count")), sum(short)


@pytest.mark.case("C36")
@pytest.mark.induces("2 workers start on a backlog of 100,000 events")
def test_two_workers_that_catch_up_rebalance_once_at_most_and_never_stop_to_poll(
    kafka: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    with service(kafka, tmp_path, shape=Shape(4, 2), session=f"{SESSION:g}s") as made:
        assert made.set_up().workers.pop("w1").terminate() == 0
        names = [f"q{number}" for number in range(QUESTIONS)]
        asked = [question(name, "econ", 48.0) for name in names]
        told = [
            forecast(names[n % QUESTIONS], f"e{n // QUESTIONS % 50}", (n % 97 + 1) / 99, 1 + n / BACKLOG)
            for n in range(BACKLOG - QUESTIONS)
        ]
        keys = (event["question_id"].encode() for event in [*asked, *told])
        backlog = map(Message, keys, encoded([*asked, *told]))
        kafka.produce_many(made.topic("forecast-events"), backlog)

        for name in "ab":
            made.start(name)
        for worker in made.workers.values():
            worker.wait_ready(120)
        joined = rebalances(made)
        made.settle(300)

        after = rebalances(made)
        assert all(after[name] - joined[name] <= 1 for name in made.workers), (joined, after)
        assert LIMIT / 3 > 5.0
        for name in made.workers:
            measured, short = gaps(made, name)
            assert measured == short > 0
        found(f"{sum(after.values()) - sum(joined.values()):g} rebalances after both had joined; no poll after 5 s")
