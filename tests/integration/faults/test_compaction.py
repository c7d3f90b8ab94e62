"""Changelogs that brokers compact all the time, while workers are killed: what is left of them is enough."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.kafka_broker import COMPACT_SOON, KafkaBroker
from tests.integration.support.load import Load
from tests.integration.support.recount import Recount
from tests.integration.support.service import APPLY, Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka, pytest.mark.faults]

AT_ONCE = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "segment.ms": "400",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "100",
}
UNCHECKED = "tests.integration.support.unchecked_worker"


def left(made: Service) -> float:
    """Of all records that were written to the changelogs, the share that is still there."""
    topics = [made.settings.changelog(stage) for stage in ("question", "feed")]
    written = sum(end for topic in topics for end in made.kafka.end_offsets(topic).values())
    return sum(len(made.kafka.read_all(topic)) for topic in topics) / written


def start(made: Service, name: str) -> None:
    made.start(name, UNCHECKED, STREAM_PEER_INSTANCE=name)


@pytest.mark.induces("changelogs compacted under way, 6 kills -9 of two workers")
def test_from_changelogs_that_are_compacted_under_way_killed_workers_go_on_exactly(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], tmp_path: Path, found: Callable[[str], None]
) -> None:
    client, choose = KafkaClient(RunningBroker(own_kafka(COMPACT_SOON).bootstrap, Rung.JARS)), random.Random(35)
    with service(client, tmp_path, shape=Shape(2, 1), session="20s", rebalance_timeout="20s") as made:
        made.run("topics", "apply")
        with client.admin() as admin:
            for stage in ("question", "feed"):
                topic = made.settings.changelog(stage)
                admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, AT_ONCE)])
        for name in "ab":
            start(made, name)
        made.run(*APPLY)
        made.wait_configured()
        with Load(made, seed=35, rate=200) as load:
            for name in "ababab":
                made.workers[name].wait_ready()
                at = load.sent + choose.randint(100, 500)
                wait_until(lambda at=at: load.sent > at, 30, "the load stands still")  # type: ignore[misc]
                made.workers[name].kill()
                start(made, name)
        made.settle(90)

        share = left(made)
        assert share < 0.7
        recount = Recount(made)
        recount.check()
        assert recount.repeats > 0  # else nobody died at work
        found(
            f"{load.sent} events, none lost, none doubled, none different; {recount.repeats} repeats, byte-equal; "
            f"{share:.0%} of the state records left"
        )
