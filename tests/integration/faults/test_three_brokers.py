"""Three brokers. One is killed or frozen under load: with the settings as shipped no worker ends. Two are dead."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

import pytest

from stream_peer.events import topics
from stream_peer.settings.process import Settings
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.kafka_broker import KafkaBroker, KafkaCluster, prepare
from tests.integration.support.kafka_jars import fetch_jars
from tests.integration.support.load import Load
from tests.integration.support.recount import Recount
from tests.integration.support.service import Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka, pytest.mark.faults]

DEADLINES = ("session", "rebalance_timeout", "shutdown_deadline", "broker_patience")
AS_SHIPPED = {name: getattr(Settings(), name) for name in DEADLINES}
FREEZE = 10.0
SENTENCE = re.compile(r"stream-peer: Brokers were awaited for 30 s: The brokers at .* do not answer")


class Place(NamedTuple):
    """Who leads a partition, and who has all of it."""

    leader: int
    replicas: set[int]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    jars = fetch_jars(os.environ)
    prepare(jars)
    with KafkaCluster(jars, tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def made(cluster: KafkaCluster, tmp_path: Path) -> Iterator[Service]:
    client = KafkaClient(RunningBroker(cluster.bootstrap, Rung.JARS))
    with service(client, tmp_path, shape=Shape(2, 2), replication=3, **AS_SHIPPED) as started:
        started.set_up("a", STREAM_PEER_INSTANCE="a")
        started.start("b", STREAM_PEER_INSTANCE="b").wait_ready()
        yield started


def place(made: Service, topic: str) -> Place:
    """Of the topic's first partition, as any broker says that answers."""
    from confluent_kafka.admin import AdminClient

    asking = AdminClient({"bootstrap.servers": made.kafka.bootstrap, "log_level": 0})
    found = asking.list_topics(topic, timeout=30).topics[topic].partitions[0]
    return Place(found.leader, set(found.isrs))


def progress(made: Service) -> float:
    """Records that the two workers processed."""
    return sum(made.metric("stream_peer_records_total", name) for name in made.workers)


def goes_on(made: Service, topic: str, without: int) -> None:
    """Until another broker leads the topic, and 500 more records are processed."""
    wait_until(lambda: place(made, topic).leader not in {without, -1}, 60, f"nobody leads {topic}", every=0.5)
    before = progress(made)
    wait_until(lambda: progress(made) > before + 500, 90, made.logs)


def whole(made: Service, topic: str) -> None:
    wait_until(lambda: len(place(made, topic).replicas) == 3, 90, f"{topic} never had three replicas", every=0.5)


def checked(made: Service, load: Load, workers: Mapping[str, Any], found: Callable[[str], None]) -> None:
    """No worker ended, and all that was said follows from the log."""
    made.reconnect()
    made.settle(90)
    assert [name for name, worker in workers.items() if worker.has_ended or made.workers[name] is not worker] == []
    recount = Recount(made)
    recount.check()
    found(f"no worker ended; {load.sent} events, none lost, none doubled, none different; {recount.repeats} repeats")


@pytest.mark.induces("3 brokers: the leaders of the input and of both changelogs killed one after the other")
def test_when_leaders_of_inputs_and_changelogs_are_killed_no_worker_ends_and_nothing_is_lost(
    cluster: KafkaCluster, made: Service, found: Callable[[str], None]
) -> None:
    workers = dict(made.workers)
    led = [made.topic(topics.FORECAST_EVENTS), *(made.settings.changelog(stage) for stage in ("question", "feed"))]
    with Load(made, seed=3, rate=200) as load:
        for topic in led:
            whole(made, topic)
            leader = place(made, topic).leader
            cluster.nodes[leader].kill()
            goes_on(made, topic, without=leader)
            cluster.nodes[leader].start()
        for topic in led:
            whole(made, topic)
    checked(made, load, workers, found)


@pytest.mark.induces("3 brokers: the leader of the feed-log frozen for 10 s")
def test_when_a_leader_is_frozen_no_worker_ends_and_nothing_is_lost(
    cluster: KafkaCluster, made: Service, found: Callable[[str], None]
) -> None:
    workers, topic = dict(made.workers), made.topic(topics.FEED_LOG)
    with Load(made, seed=4, rate=200) as load:
        leader = place(made, topic).leader
        cluster.nodes[leader].pause()
        sleep(FREEZE)  # the length of the freeze is the test's input
        cluster.nodes[leader].resume()
        goes_on(made, topic, without=0)
        whole(made, topic)
    checked(made, load, workers, found)


@pytest.mark.induces("3 brokers: 2 dead when a worker starts, for longer than its patience, then for less")
def test_a_worker_that_starts_with_two_of_three_brokers_dead_waits_as_long_as_its_patience_says(
    cluster: KafkaCluster, made: Service, found: Callable[[str], None]
) -> None:
    for name in list(made.workers):
        assert made.workers.pop(name).terminate() == 0
    dead = list(cluster.nodes.values())[1:]
    for node in dead:
        node.kill()
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(made.command, "worker", STREAM_PEER_BROKER_PATIENCE="30s")
        waiting = made.start("waits", STREAM_PEER_BROKER_PATIENCE="300s")
        refused = ended.result()
        assert not waiting.has_ended, waiting.said()
        list(pool.map(KafkaBroker.start, dead))
    waiting.wait_ready(120)

    assert refused.returncode == 69
    assert SENTENCE.search(refused.stderr), refused.stderr
    assert not {"worker_starts", "Traceback"} & set(refused.stderr.split())
    found("69 within the patience; the other worker goes on when brokers are back")
