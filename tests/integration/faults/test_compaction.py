"""Changelogs that brokers compact all the time, or empty: what is left of them is enough, or is missed at the start."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from stream_peer.events import topics
from tests.integration.support.brokers import Rung, RunningBroker, own_broker
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.kafka_broker import COMPACT_SOON
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
UNCHECKED = "takes_any_topics"


@pytest.fixture(scope="module")
def compacting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClient]:
    with own_broker(tmp_path_factory.mktemp("compacting") / "kafka", config=COMPACT_SOON) as broker:
        yield KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))


def changelogs(made: Service) -> list[str]:
    return [made.settings.changelog("question"), made.settings.changelog("feed")]


def alter(made: Service, configs: Mapping[str, str]) -> None:
    """Change the settings of both changelogs."""
    with made.kafka.admin() as admin:
        for topic in changelogs(made):
            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))])


def left(made: Service) -> float:
    """Of all records that were written to the changelogs, the share that is still there."""
    written = sum(end for topic in changelogs(made) for end in made.kafka.end_offsets(topic).values())
    return sum(len(made.kafka.read_all(topic)) for topic in changelogs(made)) / written


def start(made: Service, name: str) -> None:
    made.start(name, UNCHECKED, STREAM_PEER_INSTANCE=name)


@pytest.mark.induces("changelogs compacted under way, 6 kills -9 of two workers")
def test_from_changelogs_that_are_compacted_under_way_killed_workers_go_on_exactly(
    compacting: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    choose = random.Random(35)
    with service(compacting, tmp_path, shape=Shape(2, 1), session="20s", rebalance_timeout="20s") as made:
        made.run("topics", "apply")
        alter(made, AT_ONCE)
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


ENDS_NOWHERE = b"0/nothing"
READY_SECONDS = 30.0


def asked(made: Service, day: int) -> None:
    """A question opens, is forecast and closes."""
    made.send([question(f"q{day}", "econ", 24.0 * day), *crowd(f"q{day}", 6, 24.0 * day - 1)])
    made.settle()
    made.tick(milliseconds(24.0 * day + 1))
    made.settle()


def cut_at_the_end(made: Service) -> None:
    """The last records of both changelogs are compacted away; behind them is an aborted transaction."""
    alter(made, AT_ONCE)
    for topic in changelogs(made):
        end = made.kafka.end_offsets(topic)
        made.kafka.produce(topic, [Message(ENDS_NOWHERE, None, partition) for partition in end])

        def is_gone(topic: str = topic, last: Mapping[int, int] = end) -> bool:
            made.kafka.abort(topic, [Message(ENDS_NOWHERE, b"", partition) for partition in last])  # it rolls segments
            return all(message.offset != last[message.partition or 0] for message in made.kafka.read_all(topic))

        wait_until(is_gone, 60, f"the last record of {topic} was never compacted away", every=0.5)


def emptied(made: Service) -> None:
    """Retention deletes all of both changelogs."""
    alter(made, {"cleanup.policy": "delete", "retention.ms": "1"})
    for topic in changelogs(made):
        wait_until(lambda topic=topic: not made.kafka.read_all(topic), 60, f"{topic} was never emptied", every=0.5)  # type: ignore[misc]
    alter(made, {"cleanup.policy": "compact"})


@pytest.mark.case("C32")
@pytest.mark.induces("changelogs that are empty, end in offsets without records, or were emptied")
def test_a_changelog_that_is_empty_or_lost_its_last_offsets_holds_nobody_up_and_an_emptied_one_is_missed(
    compacting: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    with service(compacting, tmp_path, shape=Shape(2, 1)) as made:
        made.run("topics", "apply")
        made.start().wait_ready(READY_SECONDS)
        made.run(*APPLY)
        made.wait_configured()
        asked(made, 1)
        made.workers["w1"].terminate()
        cut_at_the_end(made)
        made.start("w1", UNCHECKED).wait_ready(READY_SECONDS)
        asked(made, 2)
        made.workers["w1"].terminate()
        emptied(made)

        refused = made.start("w1", UNCHECKED)
        assert refused.process.wait(60) == 78
        assert "holds no state, though its group has read" in refused.said()
        made.start("w1", UNCHECKED, STREAM_PEER_ON_RECREATED="keep").wait_ready(READY_SECONDS)
        asked(made, 3)

        assert set(made.last(topics.PEER_LOSSES, "econ")) == {"q1", "q2", "q3"}
        assert made.weights("econ")["questions"] == 3
        found("ready within 30 s, or 78 and the reason; 3 of 3 questions count")
