"""The commands as a user runs them, in processes of their own, on a real broker."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET

from stream_peer.events import topics
from stream_peer.events.incoming import ExpertControl, FeedControl, SettingsControl, decode
from stream_peer.events.partitioning import partition_of
from stream_peer.log.producers import PRODUCER_HEADER, producer_mac
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.settings.process import Partitions, Settings
from stream_peer.tools.demo.brokers import free_ports
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.service import SIGNING_KEY

pytestmark = pytest.mark.real_kafka

SMALL = {"forecast_events": 2, "control_events": 2, "feed_log": 2, "dead_letters": 1}


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_PEER_")}
    return subprocess.run(
        [sys.executable, "-m", "stream_peer", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**clean, "STREAM_PEER_HTTP__PORT": str(free_ports(1)[0]), **environment},
    )


def settings_of(prefix: str) -> Settings:
    return Settings(prefix=prefix, partitions=Partitions(**SMALL))


@pytest.fixture
def file(tmp_path: Path, kafka_bootstrap: str, topic_prefix: str) -> Path:
    signing_key = tmp_path / "signing-key"
    signing_key.write_bytes(SIGNING_KEY)
    content = {
        "bootstrap": kafka_bootstrap,
        "prefix": topic_prefix,
        "signing_key_file": str(signing_key),
        "partitions": SMALL,
        "broker_patience": "20s",
        "defaults": {"round_every": "1d"},
        "feeds": {"econ": {"quorum": 5}},
    }
    written = tmp_path / "settings.yaml"
    written.write_text(json.dumps(content))
    return written


def test_topics_are_checked_made_and_found_as_planned(file: Path, topic_prefix: str, kafka: KafkaClient) -> None:
    before = command("topics", "check", "-c", str(file))
    made = command("topics", "apply", "-c", str(file))
    after = command("topics", "check", "-c", str(file))
    again = command("topics", "apply", "-c", str(file))

    assert before.returncode == 78
    assert before.stderr.count("is missing") == len(topics.ALL) + 2  # and two changelogs
    assert f"run `stream-peer topics apply --config {file}`" in before.stderr
    assert (made.returncode, made.stdout.count(": made")) == (0, len(topics.ALL) + 2)
    assert (after.returncode, again.returncode) == (0, 0), after.stderr + again.stderr
    assert "Nothing to do" in again.stdout
    names = {*map(settings_of(topic_prefix).topic, topics.ALL)}
    assert names < {name for name in kafka.topics() if name.startswith(topic_prefix)}


def test_other_partition_counts_are_named_with_both_counts_and_left_alone(
    file: Path, topic_prefix: str, kafka: KafkaClient
) -> None:
    kafka.create_topics({topic_prefix + topics.FORECAST_EVENTS: 6}, {"message.timestamp.type": "LogAppendTime"})

    made = command("topics", "apply", "-c", str(file))
    checked = command("topics", "check", "-c", str(file))

    assert made.returncode == checked.returncode == 78
    expected = f"{topic_prefix}forecast-events has 6 partitions, not 2 (partitions.forecast_events)"
    assert expected in made.stderr
    assert expected in checked.stderr


def test_a_wrong_policy_is_named_and_set(file: Path, topic_prefix: str, kafka: KafkaClient) -> None:
    forecasts, feed_log = topic_prefix + topics.FORECAST_EVENTS, topic_prefix + topics.FEED_LOG
    kafka.create_topics({forecasts: 2}, {"retention.ms": "3600000"})
    kafka.create_topics({feed_log: 2}, {"cleanup.policy": "compact"})

    before = command("topics", "check", "-c", str(file))
    made = command("topics", "apply", "-c", str(file))
    after = command("topics", "check", "-c", str(file))

    assert f"{forecasts} has message.timestamp.type=CreateTime, not LogAppendTime" in before.stderr
    assert f"{forecasts} has retention.ms=3600000, not ≥ 2592000000" in before.stderr
    assert f"{feed_log} has cleanup.policy=compact, not delete" in before.stderr
    assert (made.returncode, after.returncode) == (0, 0), made.stderr + after.stderr


def test_a_plan_changes_nothing(file: Path, topic_prefix: str, kafka: KafkaClient) -> None:
    planned = command("topics", "plan", "-c", str(file))

    assert planned.returncode == 0
    assert "is missing" in planned.stdout
    assert not [name for name in kafka.topics() if name.startswith(topic_prefix)]


def test_feed_settings_reach_control_events_once(file: Path, topic_prefix: str, kafka: KafkaClient) -> None:
    command("topics", "apply", "-c", str(file))

    applied = command("settings", "apply", "--no-wait", "-c", str(file))
    again = command("settings", "apply", "--no-wait", "-c", str(file))

    assert (applied.returncode, again.returncode) == (0, 0), applied.stderr + again.stderr
    assert "Nothing to do" in again.stdout
    (message,) = kafka.read_all(topic_prefix + topics.CONTROL_EVENTS)
    event = decode(message.value)
    assert isinstance(event, SettingsControl)
    assert message.key == b"settings"
    defaults = {"round_every": "1d", "method_version": NEWEST_METHOD}
    assert event.document == {"defaults": defaults, "feeds": {"econ": {"quorum": 5}}}
    assert event.hash in applied.stdout


def test_changed_feed_settings_are_applied_after_the_older_ones(
    file: Path, topic_prefix: str, kafka: KafkaClient
) -> None:
    command("topics", "apply", "-c", str(file))
    command("settings", "apply", "--no-wait", "-c", str(file))
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "defaults": {"round_every": "2d"}}))

    changed = command("settings", "apply", "--no-wait", "-c", str(file))

    assert ", after " in changed.stdout
    first, second = kafka.read_all(topic_prefix + topics.CONTROL_EVENTS)
    assert first.partition == second.partition
    assert b"2d" in (second.value or b"")


def test_settings_cannot_be_applied_where_there_are_no_topics(file: Path, topic_prefix: str) -> None:
    ended = command("settings", "apply", "--no-wait", "-c", str(file))

    assert ended.returncode == 78
    assert ended.stderr.startswith(f"stream-peer: There is no topic {topic_prefix}control-events, or we may not see it")


def test_controls_reach_the_feeds_partition_of_control_events_in_their_order(
    file: Path, topic_prefix: str, kafka: KafkaClient
) -> None:
    command("topics", "apply", "-c", str(file))

    ended = [
        command("expert", "econ", "ann", "--team", "lab", "--exclude", "-c", str(file)),
        command("expert", "econ", "ann", "--forget", "--yes", "-c", str(file)),
        command("reset", "econ", "--yes", "-c", str(file)),
        command("delete", "econ", "--yes", "-c", str(file)),
    ]

    assert [done.returncode for done in ended] == [0, 0, 0, 0], [done.stderr for done in ended]
    messages = kafka.read_all(topic_prefix + topics.CONTROL_EVENTS)
    team, forget, reset, delete = (decode(message.value) for message in messages)
    assert isinstance(team, ExpertControl)
    assert isinstance(forget, ExpertControl)
    assert (team.team, team.excluded, forget.team, forget.forget) == ("lab", True, UNSET, True)
    assert (reset, delete) == (FeedControl(feed="econ", reset=True), FeedControl(feed="econ", delete=True))
    assert {(message.key, message.partition) for message in messages} == {(b"econ", partition_of("econ", 2))}
    places = [f"(control-events {message.partition}, offset {message.offset})" for message in messages]
    assert all(place in done.stdout for place, done in zip(places, ended, strict=True))


UNREACHABLE = [["topics", "check"], ["worker"], ["tail", "econ", "--once"], ["settings", "apply"]]
UNREACHABLE += [["expert", "econ", "ann", "--exclude"]]


@pytest.mark.parametrize("arguments", UNREACHABLE, ids=" ".join)
def test_an_unreachable_broker_is_one_sentence_within_the_patience(file: Path, arguments: list[str]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    began = time.monotonic()

    ended = command(*arguments, "-c", str(file), "--bootstrap", f"127.0.0.1:{port}", "--broker-patience", "2s")

    assert ended.returncode == 69
    *before, last = ended.stderr.splitlines()
    assert last == f"stream-peer: No broker answered at 127.0.0.1:{port} within 2s: connection refused."
    (waits,) = before  # a worker in its log, all others in words
    assert "connection refused" in waits
    assert "2s" in waits or '"seconds": 2' in waits
    assert time.monotonic() - began < 60


def test_a_worker_without_topics_ends_with_the_list_and_the_command(file: Path, topic_prefix: str) -> None:
    ended = command("worker", "-c", str(file))

    assert ended.returncode == 78
    assert f"run `stream-peer topics apply --config {file}`" in ended.stderr
    assert f"{topic_prefix}forecast-events is missing (2 partitions, delete)" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_tail_once_prints_the_newest_weights(file: Path, topic_prefix: str, kafka: KafkaClient) -> None:
    from tests.feed_outputs import weights

    command("topics", "apply", "-c", str(file))
    for revision in (3, 5):
        kafka.produce(topic_prefix + topics.WEIGHTS, [Message(b"econ", msgspec.json.encode(weights(revision, "a")))])

    found = command("tail", "econ", "--once", "-c", str(file))
    other = command("tail", "sport", "--once", "-c", str(file))

    assert json.loads(found.stdout)["revision"] == 5
    assert other.returncode == 2
    assert "feeds that have some: econ" in other.stderr


def test_a_file_of_another_format_is_sent_as_events_in_order(
    file: Path, kafka: KafkaClient, repository: Path, topic_prefix: str, tmp_path: Path
) -> None:
    sample, events = repository / "examples" / "formats" / "metaculus", tmp_path / "events.jsonl"
    missing = command("import-file", "metaculus", str(sample), "--to-topic", STREAM_PEER_CONFIG=str(file))
    assert command("topics", "apply", STREAM_PEER_CONFIG=str(file)).returncode == 0

    sent = command(
        "import-file", "metaculus", str(sample), "--to-topic", "--to", str(events), STREAM_PEER_CONFIG=str(file)
    )

    assert missing.returncode == 78, missing.stderr
    assert sent.returncode == 0, sent.stderr
    assert f"548 events → {topic_prefix}forecast-events; if they lie in the past" in sent.stdout
    found = kafka.read_all(topic_prefix + topics.FORECAST_EVENTS)
    by_partition: dict[int, list[bytes]] = {}
    for record in found:
        assert record.partition == partition_of(record.key or b"", 2)
        by_partition.setdefault(record.partition, []).append(record.value or b"")
    expected: dict[int, list[bytes]] = {}
    for line in events.read_bytes().splitlines():
        expected.setdefault(partition_of(json.loads(line)["question_id"], 2), []).append(line)
    assert by_partition == expected

    (tmp_path / "house.key").write_text("a key of more than 16 bytes")
    (tmp_path / "producers.yaml").write_text("producers: {house: {key_file: house.key, may_ask: true}}")
    options = ("--to-topic", "--producer", "house", "--producers-file", str(tmp_path / "producers.yaml"))
    assert command("import-file", "metaculus", str(sample), *options, STREAM_PEER_CONFIG=str(file)).returncode == 0
    record = kafka.read_all(topic_prefix + topics.FORECAST_EVENTS)[-1]
    mac = producer_mac(b"a key of more than 16 bytes", topic_prefix + topics.FORECAST_EVENTS, record.key, record.value)
    assert dict(record.headers) == {PRODUCER_HEADER: f"house:{mac}".encode()}
