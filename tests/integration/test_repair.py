"""A state from before signatures, poisoned by a forged header: a worker refuses it, and it is repaired."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.log.changelog import ChangelogReader, Writer
from stream_peer.log.stage import Snapshot
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import Event, crowd, encoded, milliseconds, question
from tests.integration.support.service import Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

FEED = "econ"
SHAPE = Shape(4, 2)
DAY = 24
FORGED = 9_000_000_000_000


def asked(numbers: range, closes: int) -> Iterator[Event]:
    for number in numbers:
        yield question(f"q{number}", FEED, closes)
        yield from crowd(f"q{number}", 5, closes - DAY)


def poison(made: Service) -> None:
    """Every partition's state becomes one that a release without signatures has folded from forged headers."""
    changelog = made.settings.changelog("question")
    folds = made.kafka.states(changelog)
    assert set(folds) == set(range(SHAPE.questions))
    made.kafka.produce(changelog, [_poisoned_head(partition, fold) for partition, fold in folds.items()])


def _poisoned_head(partition: int, fold: ChangelogReader) -> Message:
    head: dict[str, Any] = msgspec.msgpack.decode(fold.head or b"")
    del head["signed"]
    others = [other for other in range(SHAPE.questions) if other != partition]
    head["seen"] = [["control-events", 0, 0, FORGED, 0], *(["forecast-events", p, 0, FORGED, 0] for p in others)]
    snapshot = Snapshot({}, msgspec.msgpack.encode(head))
    row = Writer(fold, partition, fold.token or "", 0).head_row(snapshot, fold.applied)
    return Message(row.key, row.value, partition)


def sent_astray(made: Service, events: Iterator[Event]) -> None:
    """A producer whose client hashes keys otherwise: every event comes to a wrong partition, and is forwarded."""
    told = list(events)
    wrong = [(partition_of(event["question_id"], SHAPE.questions) + 1) % SHAPE.questions for event in told]
    made.produce(topics.FORECAST_EVENTS, [Message(b"k", *one) for one in zip(encoded(told), wrong, strict=True)])


def test_a_poisoned_state_is_refused_repaired_and_does_the_erasure_that_it_had_swallowed(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    with service(kafka, tmp_path, shape=SHAPE, defaults={"history": True, "vote_rule": "half", "guard": "off"}) as made:
        made.set_up()
        made.send(asked(range(8), 5 * DAY))
        made.settle()
        assert made.workers["w1"].terminate() == 0, made.logs()
        poison(made)
        made.run("expert", FEED, "e0", "--forget", "--yes")

        refused = made.start()
        assert refused.process.wait(60) == 78, refused.said()
        assert "`stream-peer repair" in refused.said()
        assert "Traceback" not in refused.said()

        said = made.run("repair", "--all")
        assert said.count("signatures count from offset") == SHAPE.questions
        assert "forgotten experts: 1" in said
        made.start().wait_ready()
        sent_astray(made, asked(range(8, 16), 5 * DAY))
        made.settle()
        made.tick(milliseconds(6 * DAY))
        made.settle()

        rounds = made.last(topics.PEER_LOSSES, FEED)
        assert rounds.keys() == {f"q{number}" for number in range(16)}
        for name, scored in rounds.items():
            assert {expert["id"] for expert in scored["experts"]} == {f"e{n}" for n in range(1, 5)}, name
        made.restart().wait_ready()
        assert made.metric("stream_peer_lag_records") == 0


def test_repair_names_what_it_cannot_do(kafka: KafkaClient, tmp_path: Path) -> None:
    with service(kafka, tmp_path, shape=SHAPE) as made:
        made.run("topics", "apply")

        ended: list[subprocess.CompletedProcess[str]] = [
            made.command("repair"),
            made.command("repair", "--all", "1"),
            made.command("repair", "4"),
            made.command("repair", "--all", STREAM_PEER_SIGNING_KEY_FILE=str(tmp_path / "none")),
        ]

        assert [done.returncode for done in ended] == [2, 2, 2, 78]
        assert "partitions 0 to 3, not 4" in ended[2].stderr
        assert all("Traceback" not in done.stderr for done in ended)
        wait_until(lambda: not made.read(topics.FORECAST_EVENTS), 5, "something was written")
