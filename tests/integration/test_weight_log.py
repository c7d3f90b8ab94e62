"""Why a weight moved, from the feed's log in Kafka: the same as from the records themselves."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.log.driver import pump
from stream_peer.log.stage import LogRecord
from stream_peer.serve.explanation import Bound, ExplainFault, ExplainRequest, WeightExplanation
from stream_peer.settings.process import Partitions, Settings
from stream_peer.tools.explain.weight import ProbedFold, answer_request, explain_from_kafka, probe_for
from stream_peer.tools.explain.weight_timeline import WeightProbe
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.service import Service
from tests.integration.test_feed_log_reader import FEED, START, log_of, with_controls

PARTITION = partition_of(FEED, 4)


@pytest.fixture
def settings(kafka_bootstrap: str, topic_prefix: str) -> Settings:
    counts = Partitions(forecast_events=4, control_events=4, feed_log=4, dead_letters=4)
    made = Settings(bootstrap=kafka_bootstrap, prefix=topic_prefix, partitions=counts)
    KafkaAdmin(made).apply()
    return made


def write(kafka: KafkaClient, settings: Settings, values: Sequence[bytes]) -> list[LogRecord]:
    """Write a log, and have it as records."""
    records = [Message(FEED.encode(), value, PARTITION, START + n) for n, value in enumerate(values)]
    kafka.produce(settings.topic(topics.FEED_LOG), records)
    return [LogRecord(n, START + n, one.key, one.value) for n, one in enumerate(records)]


def folded(log: Sequence[LogRecord], probe: WeightProbe) -> WeightProbe:
    folding = ProbedFold(probe, PARTITION)
    for record in log:
        if probe.is_over(record):
            break
        pump(folding.fold(record), lambda up_to: log[: up_to + 1])
    probe.finish()
    return probe


def test_the_log_of_the_brokers_gives_the_explanation_of_its_records(kafka: KafkaClient, settings: Settings) -> None:
    log = write(kafka, settings, with_controls(list(log_of(24))))
    spans: list[tuple[Bound | None, Bound | None]] = [
        (None, None),
        (Bound(revision=5), Bound(revision=29)),
        (Bound(at=START + 3), Bound(at=START + 20)),
    ]
    seen: list[tuple[int, int]] = []

    for since, until in spans:
        request = ExplainRequest(FEED, "e2", since, until)
        found = explain_from_kafka(request, settings, b"", lambda done, of: seen.append((done, of)))

        assert isinstance(found, WeightExplanation)
        assert found == answer_request(request, folded(log, probe_for(request)))
    assert (len(log), len(log)) in seen


def test_a_feed_that_is_not_in_the_log_is_not_there(kafka: KafkaClient, settings: Settings) -> None:
    write(kafka, settings, list(log_of(3)))

    found = explain_from_kafka(ExplainRequest("elsewhere", "e2"), settings, b"")

    assert isinstance(found, ExplainFault)
    assert found.what == "feed"


def test_the_command_line_explains_it_without_a_worker(kafka: KafkaClient, settings: Settings) -> None:
    write(kafka, settings, list(log_of(12)))
    flags = ["--bootstrap", settings.bootstrap, "--prefix", settings.prefix]

    ended = subprocess.run(
        [sys.executable, "-m", "stream_peer", "explain", FEED, "e3", "--json", *flags],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("STREAM_PEER_")},
    )

    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert math.fsum(one["change"] for one in found["causes"]) == pytest.approx(found["difference"], abs=1e-9)


@pytest.mark.real_kafka
def test_a_worker_explains_the_same_over_http(served: Service) -> None:
    feed, start = "explained", 90 * 24
    for number in range(6):
        name = f"{feed}-q{number}"
        served.send([question(name, feed, start + 24), *crowd(name, 4, start)])
    served.settle()
    served.tick(milliseconds(start + 48))
    served.settle()

    status, text = served.workers["w1"].http(f"/feeds/{feed}/experts/e1/explain?questions=2")
    unknown, problem = served.workers["w1"].http(f"/feeds/{feed}/experts/nobody/explain")

    found = json.loads(text)
    newest = {expert["id"]: expert["mix"] for expert in served.weights(feed)["experts"]}
    assert (status, unknown) == (200, 404), text
    assert found["until"]["weight"] == newest["e1"]
    assert math.fsum(one["change"] for one in found["causes"]) == pytest.approx(found["difference"], abs=1e-9)
    assert "nobody" in json.loads(problem)["detail"]
