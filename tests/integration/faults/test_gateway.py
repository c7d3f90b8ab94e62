"""A gateway whose brokers are away says so, and goes on when they are back."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from stream_peer.events import topics
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import at, question
from tests.integration.support.gateway import Platform, post_once, producer_files, start_gateway
from tests.integration.support.kafka_broker import KafkaBroker
from tests.integration.support.service import Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]


@pytest.mark.induces("a broker killed, then one frozen, under a gateway")
def test_posts_are_refused_while_brokers_are_away_and_accepted_afterwards(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], tmp_path: Path
) -> None:
    broker = own_kafka({})
    client = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
    with service(client, tmp_path, shape=Shape(2, 1), producers_file=producer_files(tmp_path)) as run:
        run.run("topics", "apply")
        gateway = start_gateway(run).wait_ready()
        for name, away, back in (("killed", broker.kill, broker.start), ("frozen", broker.pause, broker.resume)):
            event = question(name, "econ", 24, at=at(0))
            away()
            status, headers, _ = post_once(gateway, json.dumps(event), f"{name}-0")
            assert (status, int(headers["Retry-After"]) > 0) == (503, True), gateway.said()
            wait_until(lambda: gateway.http("/healthz/ready")[0] == 503, 30, gateway.said)
            assert gateway.http("/healthz/live")[0] == 200
            back()
            gateway.wait_ready()
            platform = Platform(lambda: gateway)
            platform.post([event], name)
            assert platform.acknowledged == 1
        assert gateway.terminate() == 0, gateway.said()
        run.reconnect()
        keys = [message.key for message in run.read(topics.FORECAST_EVENTS)]
        assert {b"killed", b"frozen"} <= set(keys)
