"""Brokers that are away while a worker is busy: it waits `broker_patience`, lives, is not ready, and goes on."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from stream_peer.events import topics
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.gates import GATED, Gates
from tests.integration.support.kafka_broker import KafkaBroker
from tests.integration.support.service import APPLY, Service, Shape, service
from tests.integration.support.waiting import wait_until
from tests.order_free import order_free

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]

QUESTIONS, EXPERTS = 120, 30
FORMER_DEADLINES = 25.0
"""Seconds after which a write, work that stands still and a session of ten seconds used to end the worker."""


def load(run: Service, feed: str, closes: float) -> None:
    for number in range(QUESTIONS):
        name = f"{feed}-{number}"
        run.send([question(name, feed, closes), *crowd(name, EXPERTS, closes - 1, feed=feed)])


def outage(run: Service) -> float:
    """For how many seconds the worker says that it has waited for brokers; 0: it does not."""
    status, told = run.workers["w1"].http("/healthz/ready")
    reason = json.loads(told).get("reason", "") if status == 503 else ""
    assert run.workers["w1"].http("/healthz/live")[0] == 200, run.logs()
    return float(reason.split()[-2]) if "for" in reason and reason.endswith(" s") else 0.0


@pytest.mark.induces("a broker killed, then one frozen, under load, for longer than a session")
def test_a_busy_worker_waits_for_its_brokers_as_long_as_patience_says_and_then_goes_on(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], tmp_path: Path
) -> None:
    broker = own_kafka({})
    client = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
    with service(client, tmp_path, shape=Shape(2, 1), broker_patience="120s") as run:
        worker = run.set_up().workers["w1"].wait_ready()
        breaks: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "killed": (broker.kill, broker.start),
            "frozen": (broker.pause, broker.resume),
        }
        for day, (feed, (away, back)) in enumerate(breaks.items(), 1):
            load(run, feed, 24.0 * day)
            away()
            wait_until(lambda: outage(run) > FORMER_DEADLINES, 90, run.logs)
            back()
            worker.wait_ready()
            run.reconnect()
            run.settle()
            run.tick(milliseconds(24.0 * day + 1))
            run.settle()
            assert len(run.last(topics.PEER_LOSSES, feed)) == QUESTIONS
        assert not worker.has_ended


@pytest.mark.induces("a broker killed before a rebuild connects to it")
def test_a_rebuild_that_begins_while_its_broker_is_away_waits_for_it_and_ends_where_it_should(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], tmp_path: Path
) -> None:
    broker = own_kafka({})
    client, gates = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS)), Gates(tmp_path / "gates")
    feeds: dict[str, dict[str, object]] = {
        "econ": {"vote_rule": "half", "guard": "off"},
        "twin": {"vote_rule": "half", "guard": "off", "min_experts": 4},
    }
    with service(client, tmp_path, shape=Shape(2, 1), broker_patience="60s", feeds=feeds) as run:
        run.run("topics", "apply")
        worker = run.start(altered=GATED, GATES=str(gates.directory))
        run.run(*APPLY)
        run.wait_configured()
        for feed, name in (("econ", "ab"), ("twin", "ba")):  # of two names with the same letters crowds say the same
            run.send([question(name, feed, 24.0), *crowd(name, 5, 23.0, feed=feed)])
        run.settle()
        run.tick(milliseconds(25))
        run.settle()
        gates.close("connect")
        run.apply({"econ": feeds["twin"]})
        gates.wait_reached("connect", run)
        broker.kill()
        gates.open("connect")
        wait_until(lambda: outage(run) > 0, 60, run.logs)
        broker.start()
        worker.wait_ready()
        run.reconnect()
        run.settle()
        econ, twin = run.weights("econ"), run.weights("twin")

    assert "rebuild_ends" in worker.said()
    assert {**order_free(topics.WEIGHTS, econ, mixes=False), "feed": ""} == {
        **order_free(topics.WEIGHTS, twin, mixes=False),
        "feed": "",
    }
