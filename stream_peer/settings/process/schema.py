"""JSON Schema of the settings file, generated from the classes that decode it; editors complete and check with it."""

from typing import Any

import msgspec

from stream_peer.settings.feed.model import DURATIONS, FeedSettings
from stream_peer.settings.process.model import DURATION_SCHEMA, SIZE_SCHEMA, Settings
from stream_peer.settings.process.secret import Secret
from stream_peer.settings.process.shown import shown_duration

_ABOUT = "What a process is told, and under defaults and feeds what `stream-peer settings apply` sends to every worker."


def settings_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a settings file: process settings, ``defaults`` and ``feeds``."""
    (ref, feed_ref), blocks = msgspec.json.schema_components(
        [Settings, FeedSettings], schema_hook=_schema_of, ref_template="#/$defs/{name}"
    )
    root = blocks.pop(_name_of(ref))
    feed = _name_of(feed_ref)
    blocks["Security"]["properties"]["password_file"] = {"type": "string", "description": "file with the password"}
    for block in (root, *blocks.values()):
        block["additionalProperties"] = False
        block.pop("description", None)  # it describes the class, for readers of the source
        _accept_units(block["properties"])
    _accept_durations(blocks[feed]["properties"])
    root["properties"].pop("document")
    root["properties"]["defaults"] = {"$ref": f"#/$defs/{feed}", "description": "feed settings of every feed"}
    root["properties"]["feeds"] = {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{feed}"}}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of stream-peer",
        "description": _ABOUT,
    }
    return {**root, **head, "$defs": blocks}


def _name_of(ref: dict[str, Any]) -> str:
    return str(ref["$ref"]).rsplit("/", 1)[1]


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Secret:
        return {"type": "string", "writeOnly": True}
    return {"type": "string"}


def _accept_units(properties: dict[str, Any]) -> None:
    """In a file durations and sizes may be text with a unit."""
    for name, described in properties.items():
        if described.get("examples") in (DURATION_SCHEMA["examples"], SIZE_SCHEMA["examples"]):
            properties[name] = {**described, "type": ["string", "number"]}


def _accept_durations(properties: dict[str, Any]) -> None:
    """In a file durations are text or seconds, not the milliseconds they become."""
    for name in DURATIONS:
        types = ["string", "number", "null"] if "anyOf" in properties[name] else ["string", "number"]
        properties[name] = {**DURATION_SCHEMA, "type": types, "default": shown_duration(properties[name]["default"])}
