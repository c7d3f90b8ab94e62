"""All outcomes of real forecasts told, taken back, and a tenth of the questions annulled, on Kafka.

The histories that it must equal, those without the outcomes and without the annulled questions, come from replays;
that these say what Kafka says is the business of ``test_order_free``.
"""

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stream_peer.events import topics
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.log.stage import Output
from stream_peer.settings.feed.document import with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.tools.replay.file_events import FileEvent, last_event_time, merged_by_time
from stream_peer.tools.replay.files import FileLine, read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.lives import kill, stop
from tests.integration.support.service import SECRET, Service, Shape, service
from tests.order_free import COMPARED, order_free

pytestmark = [pytest.mark.real_kafka, pytest.mark.slow, pytest.mark.data]

ORDER_FREE = {"vote_rule": "half", "method_version": 1}
"""With ``auto`` the rule in force depends on what came first."""
PATIENT = {"session": "45s", "rebalance_timeout": "60s", "snapshot_every": {"seconds": "2s"}}
"""As a worker has them that no test hurries."""
DAY: Milliseconds = 86_400_000

Outputs = dict[tuple[str, str], dict[str, Any]]


class Histories(NamedTuple):
    """Everything in the files, by time, and when the last of it happened."""

    events: list[FileEvent]
    ended: Milliseconds

    @property
    def resolved(self) -> list[str]:
        """Questions whose outcome is told."""
        return sorted({e.question_id for e in self.events if e.kind == "resolution" and e.question_id is not None})

    def untold(self, leaving_out: Iterable[str] = ()) -> list[FileLine]:
        """What would be in the files if nobody had told any outcome, and without some questions."""
        gone = set(leaving_out)
        told = (e for e in self.events if e.kind != "resolution" and e.question_id not in gone)
        return [FileLine(event.place, event.payload) for event in told]

    def verdicts(self, questions: Iterable[str], outcome: str | None, days: int) -> Iterator[Message]:
        """One resolution each, so many days after all."""
        said = {"type": "resolution", "outcome": outcome, "at": to_iso(self.ended + days * DAY)}
        return (Message(q.encode(), json.dumps({**said, "question_id": q}).encode()) for q in questions)


@pytest.fixture(scope="module")
def histories(data_directory: Path) -> Histories:
    """All files, as one platform would have sent them."""
    horizon = 3650 * DAY
    events, _ = merged_by_time([read_lines(file) for file in sorted(data_directory.glob("*.jsonl*"))], horizon)
    return Histories(events, last_event_time(events, horizon))


def replayed(lines: Iterable[FileLine]) -> Outputs:
    """What is order-free of the last record of each key."""
    last: dict[tuple[str, str], bytes] = {}

    def keep(output: Output) -> None:
        if output.topic in COMPARED:
            last[output.topic, (output.key or b"").decode()] = output.value or b""

    replay(
        [lines],
        ReplayOptions(document=with_method({"defaults": ORDER_FREE}, NEWEST_METHOD), secret=SECRET.encode()),
        write=keep,
    )
    return {place: dict(order_free(place[0], json.loads(value), mixes=False)) for place, value in last.items()}


def said(served: Service) -> Outputs:
    """What is order-free of the last record of each key on Kafka."""
    read = served.kafka.read_together([served.topic(topic) for topic in COMPARED], deadline=120)
    last = {
        (topic, (message.key or b"").decode()): message.value or b""
        for topic in COMPARED
        for message in read[served.topic(topic)]
    }
    return {place: dict(order_free(place[0], json.loads(value), mixes=False)) for place, value in last.items()}


def pour(served: Service, messages: Iterable[Message]) -> None:
    """Produce very many messages."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": served.kafka.bootstrap, "partitioner": "murmur2_random", "linger.ms": 20})
    topic = served.topic(topics.FORECAST_EVENTS)
    for number, message in enumerate(messages):
        producer.produce(topic, message.value, message.key)
        if number % 10_000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def differences(one: Outputs, other: Outputs) -> list[tuple[str, str]]:
    """The first places at which they differ."""
    return sorted(place for place in one.keys() | other.keys() if one.get(place) != other.get(place))[:10]


def finish(served: Service, now: Milliseconds) -> None:
    served.settle(deadline=180)
    served.tick(now)
    served.settle(deadline=180)


@pytest.mark.case("C02")
@pytest.mark.case("C03")
def test_outcomes_of_real_questions_that_are_taken_back_leave_no_trace_and_annulled_ones_were_never_there(
    histories: Histories, kafka: KafkaClient, tmp_path: Path
) -> None:
    resolved = histories.resolved
    annulled = random.Random(10).sample(resolved, len(resolved) // 10)
    messages = [Message((e.question_id or "").encode(), e.payload) for e in histories.events]
    half = len(messages) // 2
    defaults = {"history": True, **ORDER_FREE}
    with service(kafka, tmp_path, shape=Shape(4, 4), defaults=defaults, **PATIENT) as served:
        served.set_up(STREAM_PEER_INSTANCE="w1")
        pour(served, messages[:half])
        kill(served)
        pour(served, messages[half:])
        without_outcomes = replayed(histories.untold())
        finish(served, histories.ended + DAY)
        weights = {message.key: json.loads(message.value or b"{}") for message in served.read(topics.WEIGHTS)}
        assert sum(record["resolved"] for record in weights.values()) > 0.9 * len(resolved)

        pour(served, histories.verdicts(resolved, "open", days=2))
        without_questions = replayed(histories.untold(annulled))
        finish(served, histories.ended + 3 * DAY)
        retracted = said(served)
        assert not differences(retracted, without_outcomes)

        stop(served)
        pour(served, histories.verdicts(annulled, None, days=4))
        finish(served, histories.ended + 5 * DAY)
        kept = {(topic, key): record for (topic, key), record in said(served).items() if key not in set(annulled)}
    assert not differences(kept, without_questions)
