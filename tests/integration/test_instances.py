"""Workers with an ``instance``, by which the group knows them again."""

from pathlib import Path

import pytest

from tests.integration.support.client import KafkaClient
from tests.integration.support.service import Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka


def test_of_two_workers_with_one_instance_the_older_ends_and_names_the_setting(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    with service(kafka, tmp_path / "served", shape=Shape(questions=1, feeds=1)) as made:
        made.run("topics", "apply")
        older = made.start("older", STREAM_PEER_INSTANCE="worker-0").wait_ready()
        newer = made.start("newer", STREAM_PEER_INSTANCE="worker-0")
        wait_until(lambda: older.has_ended, 60, made.logs)
        newer.wait_ready()

        assert older.process.returncode == 78
        assert "with the same instance, 'worker-0', and brokers keep the newer one; give each" in older.said()
        assert "Traceback" not in older.said()
