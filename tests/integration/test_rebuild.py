"""Settings that change what a feed's numbers mean, applied to a live feed: its log is folded anew, on real Kafka.

The worker waits for the test in the middle of what it does (see ``altered_worker``), so that nothing here is a race.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from stream_peer.events import topics
from stream_peer.events.feed_log import BlockNamed, read_feed_log
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.changelog import Recovered
from stream_peer.log.driver import fold, pump
from stream_peer.log.stage import LogRecord
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, crowd, forecast, milliseconds, question
from tests.integration.support.gates import GATED, Gates
from tests.integration.support.recount import Recount
from tests.integration.support.service import APPLY, SECRET, Service, Shape, Worker, service
from tests.integration.support.waiting import wait_until
from tests.order_free import order_free

pytestmark = pytest.mark.real_kafka

FEED, TWIN, BYSTANDER = "subject", "twin", "bystander"
QUESTIONS = 800
EXPERTS = 5
FEEDS = 2
CLOSED = 48
FROM_THE_START = {"vote_rule": "half", "guard": "off", "min_experts": 4}
ALL_VOTE = {"history": True, "guard": "off"}
"""The crowd of this test is one that an alarm names: held together, it would be too few voters."""


def events_of(feed: str, name: str, count: int, hours: float) -> Iterator[Event]:
    """Questions of a feed, each with forecasts of a crowd that is the same for equal names."""
    for number in range(count):
        question_id = f"{feed}-{name}-{number}"
        yield question(question_id, feed, hours + CLOSED / 2, opens_at=None)
        for expert, event in enumerate(crowd(f"{name}-{number}", EXPERTS, hours), 1):
            probability = event["probability"] + expert * expert / 100_000  # no mean of four is 1/2: no coin decides
            yield {**event, "question_id": question_id, "feed": feed, "probability": probability}


class Rebuilding(NamedTuple):
    """A deployment whose worker has gates."""

    service: Service
    gates: Gates

    def start(self) -> Worker:
        """Start the worker, or start it again."""
        return self.service.start(altered=GATED, GATES=str(self.gates.directory))

    def apply(self, feed: str, **changed: Any) -> None:
        """Apply other settings of a feed."""
        content = yaml.safe_load(self.service._file.read_text())
        content["feeds"] = {**content["feeds"], feed: {**content["feeds"].get(feed, {}), **changed}}
        self.service._file.write_text(yaml.safe_dump(content))
        self.service.run(*APPLY)

    def finish(self) -> None:
        """Until everything is processed, and the state of it durable."""
        self.service.settle()


@pytest.fixture(scope="module")
def deployed(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rebuilding]:
    """A feed with rounds under the built-in settings, a twin that has other ones from the start, and a bystander."""
    directory = tmp_path_factory.mktemp("rebuilds")
    feeds: Mapping[str, Any] = {FEED: {"vote_rule": "half", "guard": "off"}, TWIN: FROM_THE_START}
    with service(kafka, directory / "service", shape=Shape(1, FEEDS), defaults=ALL_VOTE, feeds=feeds) as made:
        made.set_up()
        for feed in (FEED, TWIN):
            made.send(events_of(feed, "old", QUESTIONS, 0))
        made.settle()
        made.tick(milliseconds(CLOSED))
        made.settle()
        assert made.workers["w1"].terminate() == 0
        yield Rebuilding(made, Gates(directory / "gates"))


def published(service: Service) -> dict[str, list[tuple[Any, Any, int]]]:
    """What was said of the feed, by topic: key, part and revision of each record, in order."""
    found = {}
    for logical in (topics.WEIGHTS, topics.ERROR_RATES, topics.PEER_LOSSES, topics.REFERENCE_ANSWERS):
        values = service.outputs(logical, FEED)
        found[logical] = [(v.get("question"), v.get("part"), v["revision"]) for v in values]
    return found


def log_of(service: Service, partition: int) -> list[LogRecord]:
    """A partition of the feed-log."""
    messages = service.read(topics.FEED_LOG)
    return [
        LogRecord(m.offset, m.timestamp or 0, m.key, m.value, m.headers) for m in messages if m.partition == partition
    ]


def state_of(service: Service, partition: int) -> Recovered:
    """What the changelog says of a partition."""
    return service.kafka.states(service.settings.changelog("feed"))[partition].recovered()


def folded(service: Service, log: list[LogRecord], partition: int) -> FeedStage:
    """The stage after a log, driven in the plainest way."""
    stage = FeedStage(topic=service.topic(topics.FEED_LOG), partition=partition, secret=SECRET.encode())
    for record in log:
        pump(fold(stage, record), lambda _: log)
    return stage


def assert_exact(service: Service) -> None:
    """The durable state is, byte for byte, that of a stage that nothing ever happened to."""
    for partition in range(FEEDS):
        log = log_of(service, partition)
        snapshot = folded(service, log, partition).snapshot()
        stored = state_of(service, partition)
        assert stored.applied == log[-1].offset
        assert stored.head == snapshot.head
        assert stored.entries == {key: value for key, value in snapshot.entries.items() if value is not None}


def settings_offset(service: Service) -> int:
    """Where the newest settings stand in the feed's partition."""
    return max(record.offset for record in log_of(service, partition_of(FEED, FEEDS)) if record.key == b"settings")


def test_the_bystander_lies_in_another_partition() -> None:
    assert partition_of(FEED, FEEDS) != partition_of(BYSTANDER, FEEDS)


def test_a_feed_whose_settings_change_ends_where_one_is_that_had_them_from_the_start(deployed: Rebuilding) -> None:
    made, gates = deployed.service, deployed.gates
    worker = deployed.start().wait_ready()
    before = published(made)
    gates.close("rebuild")

    deployed.apply(FEED, **FROM_THE_START)
    gates.wait_reached("rebuild", made)
    ready, live = worker.http("/healthz/ready"), worker.http("/healthz/live")
    (progress,) = [sample.value for sample in made.samples("stream_peer_rebuild_done_ratio")]
    remaining = made.metric("stream_peer_rebuild_remaining_records", stage="feed")
    meanwhile = published(made)
    made.send(events_of(BYSTANDER, "while it lasts", 3, 100))
    made.send(events_of(FEED, "late", 3, 100))
    made.send(events_of(TWIN, "late", 3, 100))
    made.tick(milliseconds(100 + CLOSED))
    wait_until(lambda: made.last(topics.WEIGHTS, BYSTANDER), 60, lambda: f"a bystander waited\n{made.logs()}")
    gates.open("rebuild")
    worker.wait_ready()
    deployed.finish()

    assert ready[0] == 503
    assert f"rebuilds {made.topic(topics.FEED_LOG)}-{partition_of(FEED, FEEDS)}" in ready[1]
    assert live[0] == 200
    assert 0.0 < progress < 1.0
    assert remaining > 0
    assert meanwhile == before
    assert list(made.samples("stream_peer_rebuild_done_ratio")) == []
    assert made.metric("stream_peer_rebuilds_total", stage="feed") == 1
    weights, twin = made.weights(FEED), made.weights(TWIN)
    assert weights["questions"] == QUESTIONS + 3
    assert {**order_free(topics.WEIGHTS, weights, mixes=False), "feed": ""} == {
        **order_free(topics.WEIGHTS, twin, mixes=False),
        "feed": "",
    }
    changed_at = settings_offset(made)
    for logical, records in published(made).items():
        new = records[len(before[logical]) :]
        assert records[: len(before[logical])] == before[logical]
        assert all(revision >= changed_at for _, _, revision in new), logical
    assert_exact(made)
    assert worker.terminate() == 0


@pytest.mark.slow
@pytest.mark.parametrize("place", ["rebuild", "snapshot"])
@pytest.mark.parametrize("end", [Worker.kill, Worker.terminate], ids=["kill", "terminate"])
def test_a_worker_that_ends_in_the_middle_leaves_the_rest_to_the_next_one(
    deployed: Rebuilding, place: str, end: Callable[[Worker], int]
) -> None:
    made, gates = deployed.service, deployed.gates
    worker = deployed.start().wait_ready()
    partition = partition_of(FEED, FEEDS)
    content = yaml.safe_load(made._file.read_text())
    before = state_of(made, partition)
    gates.close(place)

    deployed.apply(FEED, min_experts=7 - content["feeds"][FEED].get("min_experts", 3))
    gates.wait_reached(place, made)
    code = end(worker)
    after = state_of(made, partition)
    gates.open(place)
    deployed.start().wait_ready()
    deployed.finish()

    assert code == (0 if end is Worker.terminate else -9)
    assert after == before
    assert made.weights(FEED)["settings"] == json.loads(made.read(topics.CONTROL_EVENTS)[-1].value or b"")["hash"]
    assert_exact(made)
    assert made.workers["w1"].terminate() == 0


def with_copies(questions: int) -> Iterator[Event]:
    """Experts who are mostly right, and four copies of one who often is not."""
    rng = np.random.default_rng(4)
    for number in range(questions):
        yield question(f"q{number}", FEED, CLOSED / 2, opens_at=None)
        is_yes, (is_right, copied) = rng.random() < 0.5, (rng.random(5) > 0.15, rng.random() > 0.4)
        for expert, right in enumerate([*is_right.tolist(), *4 * [copied]]):
            probability = round(0.5 + (0.4 if right == is_yes else -0.4) * rng.uniform(0.8, 1.0), 3)
            yield {**forecast(f"q{number}", f"e{expert}", probability, 0.0), "feed": FEED}


def test_after_a_kill_in_the_rebuild_of_a_feed_that_named_copies_all_that_was_said_follows_from_the_log(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    gates = Gates(tmp_path / "gates")
    with service(kafka, tmp_path / "service", shape=Shape(1, 1), defaults={"history": True}) as made:
        made.run("topics", "apply")
        deployed = Rebuilding(made, gates)
        worker = deployed.start()
        made.run(*APPLY)
        made.wait_configured()
        gates.close("connect")

        made.send(with_copies(60))
        made.tick(milliseconds(CLOSED))
        gates.wait_reached("connect", made)
        worker.kill()
        gates.open("connect")
        worker = deployed.start().wait_ready()
        deployed.finish()

        assert made.metric("stream_peer_rebuilds_total", stage="feed") >= 1
        assert worker.terminate() == 0
        events = (read_feed_log(message.value) for message in made.read(topics.FEED_LOG))
        (named,) = {event.src: event for event in events if isinstance(event, BlockNamed)}.values()
        assert [block.experts for block in named.blocks] == [["e5", "e6", "e7", "e8"]]
        Recount(made).check()
