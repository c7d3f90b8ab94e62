import re

import pytest

from stream_peer.events import topics
from stream_peer.kafka.client.admin import KafkaAdmin, Plan
from stream_peer.kafka.client.topic_plan import Finding, wanted_topics
from stream_peer.settings.process import Settings
from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]
MISSING = Finding("weights", "missing", "is missing (16 partitions, compact)")
MORE = Finding("feed-log", "partitions", "8 partitions, not 16", "partitions.feed_log")


def found(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    monkeypatch.setattr(KafkaAdmin, "_plan", lambda *_: Plan(wanted_topics(Settings()), list(findings), {}))
    monkeypatch.setattr(KafkaAdmin, "_ends", lambda *_: {})
    monkeypatch.setattr(KafkaAdmin, "_has_state", lambda _: True)
    monkeypatch.setattr(KafkaAdmin, "_would_forget", lambda *_: False)


def plan(capsys: Capture, stage: str) -> str:
    return run(capsys, "topics", "plan", "--offline", "--stage", stage).out


def test_the_plan_without_a_broker_prints_topics_and_rights(capsys: Capture) -> None:
    ended = run(capsys, "topics", "plan", "--offline", "--prefix", "acme-", "--user", "peer")

    assert ended.code == 0
    assert all(topic.name in ended.out for topic in wanted_topics(Settings(prefix="acme-")))
    assert "kafka-acls.sh" in ended.out
    assert "--command-config admin.properties --add --allow-principal User:peer" in ended.out


def test_the_plan_names_the_file_by_which_kafkas_own_tool_logs_in(capsys: Capture) -> None:
    ended = run(capsys, "topics", "plan", "--offline", "--command-config", "my admin.properties")

    commands = [line for line in ended.out.splitlines() if line.startswith("kafka-acls.sh")]
    assert all("--command-config 'my admin.properties'" in command for command in commands)


def test_the_plan_of_a_stage_has_the_rights_of_that_stage(capsys: Capture) -> None:
    (worker,) = re.findall(r"# A worker \(--stage question\)(.*?)\n#", plan(capsys, "question"), re.DOTALL)

    assert "--group stream-peer-question" in worker
    assert "mixed-forecasts" not in worker


def test_the_plan_says_what_apply_would_do(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found(monkeypatch, MISSING)

    out = run(capsys, "topics", "plan", "--prefix", "acme-").out

    assert "weights is missing" in out
    assert "`stream-peer topics apply --prefix acme-` mends" in out


def test_topics_as_planned_are_said_to_be(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found(monkeypatch)

    assert "as planned" in run(capsys, "topics", "plan").out
    assert run(capsys, "topics", "check") == (
        0,
        f"All {len(topics.ALL) + 2} topics are as planned.\n",
        "",
    )  # and two changelogs
    assert run(capsys, "topics", "apply") == (0, "Nothing to do: all topics are as planned.\n", "")


def test_missing_topics_are_listed_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found(monkeypatch, MISSING, MORE)

    ended = run(capsys, "topics", "check", "--bootstrap", "kafka:1")

    assert ended.code == 78
    assert "run `stream-peer topics apply --bootstrap kafka:1`" in ended.err
    assert "\n  weights is missing (16 partitions, compact)" in ended.err
    assert "\n  feed-log has 8 partitions, not 16" in ended.err


def test_partitions_alone_cannot_be_mended_by_a_command(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found(monkeypatch, MORE)

    for command in ("check", "apply"):
        ended = run(capsys, "topics", command)
        assert ended.code == 78
        assert "cannot change once there is state" in ended.err
        assert "has 8 partitions, not 16" in ended.err


def test_the_embedded_broker_needs_no_set_up(capsys: Capture) -> None:
    assert "nothing to do" in run(capsys, "topics", "apply", "--broker", "embedded").out
