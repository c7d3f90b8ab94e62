"""A worker whose log cannot be written: it works as any other."""

from pathlib import Path

import pytest

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.service import APPLY, Shape, service

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]


@pytest.mark.induces("a log file that may not grow")
def test_a_worker_that_cannot_write_its_log_starts_works_and_ends_with_0(kafka: KafkaClient, tmp_path: Path) -> None:
    with service(kafka, tmp_path, shape=Shape(1, 1), feeds={"econ": {}}) as made:
        made.run("topics", "apply")
        worker = made.start(altered="cannot_write_files").wait_ready()
        made.run(*APPLY)
        made.send([question("q", "econ", 24.0), *crowd("q", 6, 23.0)])
        made.tick(milliseconds(25.0))
        made.settle()

        assert set(made.last(topics.PEER_LOSSES, "econ")) == {"q"}
        assert worker.said() == ""
        assert worker.terminate() == 0
