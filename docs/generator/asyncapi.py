"""The contract as an AsyncAPI 3 document, and the table of topics: from the classes that decode and the topic plan.

What the document shows as examples are the messages in ``examples/messages``, which
tests decode: one file a message and major version, never changed once released.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from docs.generator.message_schemas import FEED_LOG, INCOMING, OUTPUTS, components
from docs.generator.tables import table
from stream_peer import __version__
from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.cloudevents import cloudevent_headers
from stream_peer.events.incoming import decode
from stream_peer.events.outputs import output_headers
from stream_peer.events.rejections import Reason
from stream_peer.kafka.client.topic_plan import FOREVER, Policy, WantedTopic, wanted_topics
from stream_peer.log.dead_letters import REASON_HEADER, dead_letter
from stream_peer.log.producers import PRODUCER_HEADER
from stream_peer.log.signatures import MAC_HEADER
from stream_peer.log.sources import SOURCE_HEADER
from stream_peer.log.stage import LogRecord
from stream_peer.settings.process import Settings

CONTRACT = "docs/reference/asyncapi.yaml"
TOPIC_TABLE = "docs/generated/topics.md"
MESSAGE_FILES = "examples/messages"
DAY = 86_400_000
BINDING = "0.5.0"
"""Version of AsyncAPI's Kafka bindings."""


_QUESTION_KEY = {"type": "string", "description": "the question's id", "minLength": 1, "maxLength": 256}
_FEED_KEY = {"type": "string", "description": "name of the feed"}
_PART_KEY = "; a record in parts has /part behind it"
_ANY_KEY = {"description": "as it came"}
_TEXT = {"type": "string"}

ABOUT = """\
What platforms write to stream_peer, what it writes itself, and what subscribers read. Send and receive are said from
the service's side: it receives what you write. Keys are hashed by murmur2, as the Java client does.

Within a major version only optional fields are added: ignore fields that you do not know."""
CHANNELS = {
    topics.FORECAST_EVENTS: ("What platforms say about questions: forecasts and outcomes", "question id"),
    topics.CONTROL_EVENTS: ("What operators say about feeds and experts; written by commands of stream-peer", "feed"),
    topics.FEED_LOG: ("The service's own log, kept for ever: all that follows is computed from it", "feed"),
    topics.WEIGHTS: ("The newest weights of each feed: only the last record of a key counts", "feed"),
    topics.ERROR_RATES: ("How often a feed's reference answers are wrong", "feed"),
    topics.REFERENCE_ANSWERS: ("The experts' stand-in for the outcome of a question", "question id"),
    topics.PEER_LOSSES: ("How each expert did on a question", "question id"),
    topics.MIXED_FORECASTS: ("The crowd's forecast of a question", "question id"),
    topics.MIXED_GROUPS: ("The crowd's forecasts of options or thresholds, made coherent", "group id"),
    topics.DEAD_LETTERS: ("What could not be used, untouched, with the reason in headers", "as it came"),
}
GROUPS = {topics.FORECAST_EVENTS: "question", topics.CONTROL_EVENTS: "feed", topics.FEED_LOG: "feed"}
"""End of the name of the consumer group that reads a topic; the outputs are read without one."""
REFUSAL = {
    "exception": "class of the error",
    "message": "what is wrong, with the value at fault",
    "topic": "that it stood in",
    "partition": "that it stood in",
    "offset": "at which it stood",
    "stream-peer-reason": "why it was refused, one of a closed set",
}
_FORECAST_EVENTS = topics.MESSAGES[topics.FORECAST_EVENTS]
OPERATIONS = (
    (
        "receive",
        topics.FORECAST_EVENTS,
        _FORECAST_EVENTS,
        "What you write, and what it told itself",
    ),
    (
        "send",
        topics.FORECAST_EVENTS,
        _FORECAST_EVENTS,
        "Ticks, controls for all, events gone astray",
    ),
    ("receive", topics.CONTROL_EVENTS, topics.CONTROLS, "Controls are checked, and handed on to feed-log"),
    ("send", topics.CONTROL_EVENTS, topics.CONTROLS, "The commands expert, reset, delete, import and settings apply"),
    ("send", topics.FEED_LOG, tuple(FEED_LOG), "Rounds, outcomes and controls, in the order in which they count"),
    ("receive", topics.FEED_LOG, tuple(FEED_LOG), "The one input of the feed stage"),
    *(("send", topic, (topic, "gone"), CHANNELS[topic][0]) for topic in OUTPUTS),
    ("receive", topics.WEIGHTS, (topics.WEIGHTS, "gone"), "Any worker answers for any feed"),
    ("send", topics.DEAD_LETTERS, ("dead-letter",), CHANNELS[topics.DEAD_LETTERS][0]),
)


def files(root: Path) -> dict[str, str]:
    """The contract and the table of topics: path in the repository and content."""
    written = yaml.dump(document(root), Dumper=_Blocks, sort_keys=False, width=120, allow_unicode=True)
    return {CONTRACT: f"# Made by docs/generate.py.\n{written}", TOPIC_TABLE: topic_table()}


def document(root: Path) -> dict[str, Any]:
    """The contract, as plain data."""
    return {
        "asyncapi": "3.0.0",
        "id": "urn:stream-peer",
        "info": {
            "title": "stream_peer",
            "version": __version__,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": _servers(),
        "channels": {name: _channel(name, wanted) for name, wanted in _plan().items() if name in CHANNELS},
        "operations": {_operation_name(*operation): _operation(*operation) for operation in OPERATIONS},
        "components": {
            "messages": _messages(root),
            "schemas": _schemas(),
            "parameters": {"prefix": {"description": "the setting `prefix`, put before every topic", "default": ""}},
            "securitySchemes": {name: {"type": name} for name in ("scramSha512", "scramSha256", "plain", "X509")},
        },
    }


def topic_table() -> str:
    """All topics with keys, partitions and settings, as the topic plan makes and demands them."""
    rows = []
    for name, wanted in _plan().items():
        key = CHANNELS[name][1] if name in CHANNELS else "of the state"
        follows = "" if wanted.count_from.startswith("partitions.") else f", {wanted.count_from}"
        settings = ", ".join(_setting(key, policy) for key, policy in wanted.policies.items())
        rows.append((f"`{name}`", key, f"{wanted.partitions}{follows}", settings))
    return table(("topic", "key", "partitions", "settings"), rows)


def _setting(key: str, policy: Policy) -> str:
    days = f" ({int(policy.value) // DAY} d)" if key.endswith(".ms") and policy.value != str(FOREVER) else ""
    others = {"equal": "", "at-least": " or more", "free": " or what you like"}[policy.rule]
    return f"`{key}={policy.value}`{days}{others}"


def _plan() -> dict[str, WantedTopic]:
    """The plan of a deployment without a prefix."""
    return {wanted.name: wanted for wanted in wanted_topics(Settings())}


def _servers() -> dict[str, Any]:
    bootstrap = {"bootstrap": {"description": "host:port of a broker, the setting `bootstrap`"}}
    schemes = [{"$ref": f"#/components/securitySchemes/{name}"} for name in ("scramSha512", "scramSha256", "plain")]
    mutual = {"$ref": "#/components/securitySchemes/X509"}
    return {
        "plaintext": {"host": "{bootstrap}", "protocol": "kafka", "variables": bootstrap},
        "secure": {
            "host": "{bootstrap}",
            "protocol": "kafka-secure",
            "description": "TLS, with one of these",
            "variables": bootstrap,
            "security": [*schemes, mutual],
        },
    }


def _channel(name: str, wanted: WantedTopic) -> dict[str, Any]:
    carried = dict.fromkeys(message for _, topic, found, _ in OPERATIONS if topic == name for message in found)
    return {
        "address": "{prefix}" + name,
        "title": name,
        "summary": CHANNELS[name][0],
        "description": f"Key: {CHANNELS[name][1]}. Partitions: {wanted.partitions} ({wanted.count_from}).",
        "messages": {message: {"$ref": f"#/components/messages/{message}"} for message in carried},
        "parameters": {"prefix": {"$ref": "#/components/parameters/prefix"}},
        "bindings": {"kafka": _channel_binding(name, wanted)},
    }


def _channel_binding(name: str, wanted: WantedTopic) -> dict[str, Any]:
    configuration: dict[str, Any] = {key: _typed(policy.value) for key, policy in wanted.policies.items()}
    configuration["cleanup.policy"] = [configuration["cleanup.policy"]]
    return {
        "topic": name,
        "partitions": wanted.partitions,
        "replicas": Settings().replication,
        "topicConfiguration": configuration,
        "bindingVersion": BINDING,
    }


def _typed(value: str) -> int | str:
    return int(value) if value == str(FOREVER) or value.isdecimal() else value


def _operation_name(action: str, topic: str, *_: object) -> str:
    return action + "".join(word.capitalize() for word in topic.split("-"))


def _operation(action: str, topic: str, messages: Iterable[str], summary: str) -> dict[str, Any]:
    channel = f"#/channels/{topic}"
    made = {
        "action": action,
        "summary": summary,
        "channel": {"$ref": channel},
        "messages": [{"$ref": f"{channel}/messages/{message}"} for message in messages],
    }
    if action == "receive" and topic in GROUPS:
        group = {**_TEXT, "description": f"setting `prefix`, setting `id`, then -{GROUPS[topic]}"}
        group["default"] = f"{Settings().prefix}{Settings().id}-{GROUPS[topic]}"
        made["bindings"] = {"kafka": {"groupId": group, "bindingVersion": BINDING}}
    return made


def _messages(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in {**INCOMING, **FEED_LOG, **OUTPUTS}.items():
        by_feed = name in (*topics.CONTROLS, *FEED_LOG, *topics.KEYED_BY_FEED)
        key: dict[str, Any] = {**(_FEED_KEY if by_feed else _QUESTION_KEY)}
        if name in OUTPUTS:
            key["description"] += _PART_KEY
        if name == "settings":
            key["description"] = "settings"
        found[name] = _message(name, _payload(kind.__name__), key, _headers(name), _examples(root, name))
        found[name]["summary"] = " ".join((kind.__doc__ or "").split("\n\n")[0].replace("``", "`").split())
    gone = {"type": "null", "description": "no value"}
    found["gone"] = _message("gone", gone, {**_TEXT, "description": "key of an output"}, None, [])
    found["gone"]["summary"] = "A tombstone: what the key was about was deleted or forgotten."
    return {**found, "dead-letter": _dead_letter()}


def _dead_letter() -> dict[str, Any]:
    """The message of ``dead-letters``, with one as the service makes it of a probability in percent."""
    refused = b'{"type":"forecast","question_id":"q","expert_id":"e","probability":57,"at":"2026-03-01T12:00:00Z"}'
    try:
        decode(refused)
    except RejectedEvent as rejection:
        letter = dead_letter(LogRecord(17, 0, b"q", refused), topics.FORECAST_EVENTS, 3, rejection)
    headers = {name: (value or b"").decode() for name, value in letter.headers}
    said: dict[str, Any] = {name: {**_TEXT, "description": REFUSAL[name.rsplit(".", 1)[-1]]} for name in headers}
    said[REASON_HEADER]["enum"] = [str(reason) for reason in Reason]
    about = "after the original headers"
    schema = {"type": "object", "description": about, "properties": said, "required": list(said)}
    payload = {"description": "the value that was refused, cut at 64 KB"}
    example = {"name": "dead-letter-1", "headers": headers, "payload": refused.decode()}
    message = _message("dead-letter", payload, _ANY_KEY, schema, [example])
    return {**message, "summary": CHANNELS[topics.DEAD_LETTERS][0], "contentType": "application/octet-stream"}


def _message(
    name: str, payload: dict[str, Any], key: dict[str, Any], headers: dict[str, Any] | None, examples: list[Any]
) -> dict[str, Any]:
    return {
        "name": name,
        **({"headers": headers} if headers else {}),
        "payload": payload,
        "bindings": {"kafka": {"key": key, "bindingVersion": BINDING}},
        **({"examples": examples} if examples else {}),
    }


def _payload(component: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{component}"}


def _headers(name: str) -> dict[str, Any] | None:
    if name in OUTPUTS:
        said = {header: {**_TEXT, "description": "as in the value"} for header, _ in output_headers("")}
        of_cloudevents = cloudevent_headers("", name, b"", b'{"revision":0}', 0)
        described = {**_TEXT, "description": "of CloudEvents; only with the setting `cloudevents`"}
        more = {header: described for header, _ in of_cloudevents}
        return {"type": "object", "properties": {**said, **more}, "required": list(said)}
    if name in INCOMING:
        source = "only on what the service forwards or broadcasts: where it stood, as JSON"
        mac = "only on what the service wrote itself: its signature, without which the record is anybody's"
        said = {SOURCE_HEADER: {**_TEXT, "description": source}, MAC_HEADER: {**_TEXT, "description": mac}}
        if name in topics.EVENTS:
            said[PRODUCER_HEADER] = {
                **_TEXT,
                "description": "NAME:HEX, the producer's signature, if producers are known",
            }
        return {"type": "object", "properties": said}
    return None


def _examples(root: Path, name: str) -> list[dict[str, Any]]:
    lines = (root / MESSAGE_FILES / f"{name}.v1.jsonl").read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        payload = json.loads(line)
        headers = {h: v.decode() for h, v in output_headers(payload["settings"])} if name in OUTPUTS else {}
        said = {"headers": headers} if headers else {}
        found.append({"name": f"{name}-{number}", **said, "payload": payload})
    return found


def _schemas() -> dict[str, Any]:
    kinds = [*INCOMING.values(), *FEED_LOG.values(), *OUTPUTS.values()]
    found = components(kinds, "#/components/schemas/{name}")
    return {name: _draft_7(schema) for name, schema in found.items()}


def _draft_7(schema: Any) -> Any:
    """A schema in the dialect that AsyncAPI's own is made from: tuples are ``items``, and ``$ref`` stands alone."""
    if isinstance(schema, list):
        return [_draft_7(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _draft_7(part) for key, part in schema.items()}
    if "prefixItems" in changed:
        changed["items"] = changed.pop("prefixItems")
    if "$ref" in changed and len(changed) > 1:
        changed["allOf"] = [{"$ref": changed.pop("$ref")}]
    return changed


class _Blocks(yaml.SafeDumper):
    """Writes every value where it belongs, without anchors, and text of several lines as such."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the dumper's own method
        """No anchors: a reader wants the text."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Blocks.add_representer(str, _text)
