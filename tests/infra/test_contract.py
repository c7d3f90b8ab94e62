"""The contract says what is on the topics: the official parser reads it, messages and outputs agree with it."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator

from docs.generator.message_schemas import FEED_LOG, INCOMING, OUTPUTS, unused_words
from docs.generator.message_schemas import MESSAGES as MESSAGE_KINDS
from stream_peer.events import topics
from stream_peer.events.feed_log import encode_feed_log, read_feed_log
from stream_peer.events.incoming import decode
from stream_peer.events.outputs import encode_output
from stream_peer.kafka.client.topic_plan import ActualTopic, compare, wanted_topics
from stream_peer.settings.process import Settings
from tests.infra.support.tools import NODE, ROOT, node_modules, program, run, said
from tests.unit.cli.support import run as stream_peer

CONTRACT = ROOT / "docs" / "reference" / "asyncapi.yaml"
SCHEMAS = ROOT / "stream_peer" / "events" / "schemas"
MESSAGES = ROOT / "examples" / "messages"
ERROR = 0
"""Of the parser's severities the worst."""


@cache
def contract() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(CONTRACT.read_text(encoding="utf-8"))
    return document


def parsed(document: dict[str, Any]) -> dict[str, Any]:
    node_modules()
    result = run(program("node", "nodejs"), str(NODE / "asyncapi.mjs"), stdin=json.dumps(document))
    assert result.returncode == 0, said(result)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def errors(found: dict[str, Any]) -> list[str]:
    return [f"{each['path']}: {each['message']}" for each in found["diagnostics"] if each["severity"] == ERROR]


def lines() -> Iterator[tuple[str, str]]:
    for file in sorted(MESSAGES.glob("*.v1.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield file.name.removesuffix(".v1.jsonl"), line


def again(name: str, line: str) -> bytes | None:
    """Decode a message as the service or a reader does, and encode it; None for what only platforms write."""
    if name in INCOMING:
        assert type(decode(line.encode())) is INCOMING[name]
        return None
    if name in FEED_LOG:
        record = read_feed_log(line.encode())
        assert type(record) is FEED_LOG[name]
        return encode_feed_log(record)
    return encode_output(msgspec.json.decode(line, type=OUTPUTS[name]))


def test_the_official_parser_understands_it() -> None:
    found = parsed(contract())

    assert errors(found) == []
    assert found["understood"]["channels"] == sorted(topics.ALL)
    assert set(found["understood"]["messages"]) == {*MESSAGE_KINDS, "gone", "dead-letter"}
    assert ["receiveForecastEvents", "receive"] in found["understood"]["operations"]
    assert ["sendWeights", "send"] in found["understood"]["operations"]


FAULTS: list[tuple[str, object, str]] = [
    ("operations.sendWeights.action", "sendd", "action"),
    ("channels.weights.bindings.kafka.partitions", 0, "partitions"),
    ("channels.weights.messages.weights.$ref", "#/components/messages/nothing", "nothing"),
]


@pytest.mark.parametrize(("path", "value", "noticed"), FAULTS, ids=["action", "binding", "reference"])
def test_the_official_parser_would_find_a_fault(path: str, value: object, noticed: str) -> None:
    wrong = copy.deepcopy(contract())
    *parents, last = path.split(".")
    place = wrong
    for name in parents:
        place = place[name]
    assert last in place
    place[last] = value

    assert noticed in "\n".join(errors(parsed(wrong)))


def test_each_message_has_a_schema_an_example_and_a_word_about_each_field() -> None:
    named = set(MESSAGE_KINDS)

    assert {file.name for file in SCHEMAS.glob("*")} == {f"{name}.v1.json" for name in named}
    assert {name for name, _ in lines()} == named
    assert unused_words() == set()


@pytest.mark.parametrize(("name", "line"), list(lines()))
def test_golden_messages_of_version_1_are_read_and_written_as_ever(name: str, line: str) -> None:
    encoded = again(name, line)

    schema = json.loads((SCHEMAS / f"{name}.v1.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(json.loads(line))
    assert encoded is None or encoded.decode() == line


def test_each_example_of_the_contract_is_valid_by_the_contract() -> None:
    components = {"components": contract()["components"]}
    checked = 0
    for name, message in contract()["components"]["messages"].items():
        for example in message.get("examples", []):
            Draft7Validator({**components, **message["payload"]}).validate(example["payload"])
            Draft7Validator(message.get("headers", True)).validate(example.get("headers", {}))
            if name in MESSAGE_KINDS:
                again(name, json.dumps(example["payload"]))
            checked += 1

    assert checked == len(list(lines())) + 1  # a dead letter is made, not kept


def test_what_a_replay_writes_is_valid_by_the_schemas(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    events = [str(ROOT / "examples" / f"{name}.jsonl") for name in ("questions", "life-of-a-question")]
    ended = stream_peer(capsys, "replay", *events, "--shadow", "eager:mixer.peer_rate=48", "--out", str(tmp_path))
    assert ended.code == 0

    validators = {file.name: Draft202012Validator(json.loads(file.read_text())) for file in SCHEMAS.glob("*.json")}
    faults, checked = [], 0
    for topic in (topics.FEED_LOG, *OUTPUTS):
        for line in (tmp_path / f"{topic}.jsonl").read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            name = f"{topic}.{value['type']}" if topic == topics.FEED_LOG else topic
            faults += [f"{name}: {fault.message}" for fault in validators[f"{name}.v1.json"].iter_errors(value)]
            checked += 1

    assert faults == []
    assert checked > 500


def test_a_topic_made_as_the_contract_says_is_as_planned() -> None:
    made = {}
    for channel in contract()["channels"].values():
        kafka = channel["bindings"]["kafka"]
        configs = {key: str(value) for key, value in kafka["topicConfiguration"].items() if key != "cleanup.policy"}
        configs["cleanup.policy"] = ",".join(kafka["topicConfiguration"]["cleanup.policy"])
        made[channel["address"].replace("{prefix}", "acme-")] = ActualTopic(kafka["partitions"], configs)

    settings = Settings(prefix="acme-")
    wanted = [topic for topic in wanted_topics(settings) if "changelog" not in topic.name]

    assert compare(wanted, made) == []
    assert set(made) == {topic.name for topic in wanted}
