"""The settings as others see them: their JSON Schema, for editors, and the values in force, with secrets masked."""

from collections.abc import Iterator
from typing import Any

import msgspec

from stream_peer.events.times import Milliseconds
from stream_peer.settings.feed.checks import unread, unused_settings
from stream_peer.settings.feed.model import DURATIONS, FeedSettings
from stream_peer.settings.process.model import DURATION_SCHEMA, SIZE_SCHEMA, Secret, Settings, leaves

_ABOUT = "What a process is told, and under defaults and feeds what `stream-peer settings apply` sends to every worker."


def settings_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a settings file: process settings, ``defaults`` and ``feeds``."""
    (ref, feed_ref), blocks = msgspec.json.schema_components(
        [Settings, FeedSettings], schema_hook=_schema_of, ref_template="#/$defs/{name}"
    )
    root = blocks.pop(_name_of(ref))
    feed = _name_of(feed_ref)
    for outer, name in (path.split(".") for path, leaf in leaves().items() if leaf.reads == "secret"):
        described = {"type": "string", "description": f"file with the {name}"}
        blocks[_name_of(root["properties"][outer])]["properties"][f"{name}_file"] = described
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


_UNITS = (("y", 31_536_000_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


def shown_duration(duration: Milliseconds) -> str:
    """A duration in the largest unit that it is a multiple of.

    Examples
    --------
    >>> shown_duration(604_800_000), shown_duration(1500), shown_duration(0)
    ('7d', '1500ms', '0s')
    """
    if not duration:
        return "0s"
    unit, size = next((unit, size) for unit, size in _UNITS if duration % size == 0)
    return f"{duration // size}{unit}"


def shown_settings(settings: Settings) -> Iterator[tuple[str, object]]:
    """Every process setting by dotted path, in the form it would have in a file; secrets as ``***``."""
    for path, leaf in leaves().items():
        value: Any = settings
        for name in path.split("."):
            value = getattr(value, name)
        if leaf.reads == "duration":
            yield path, shown_duration(round(value * 1000))
        else:
            yield path, str(value) if isinstance(value, Secret) or (leaf.reads == "path" and value) else value


def shown_feed_settings(settings: FeedSettings) -> Iterator[tuple[str, object]]:
    """Every setting of a feed that its method uses, by its path, in the form it would have in a file."""
    document = msgspec.to_builtins(settings)
    for name in unread(settings):
        del document[name]
    for path, _ in unused_settings(document, settings):
        block, (*outer, name) = document, path.split(".")
        for key in outer:
            block = block[int(key) if key.isdigit() else key]  # numbers are places in the list of shadows
        del block[name]
    for name in document:
        value = getattr(settings, name)
        if isinstance(value, msgspec.Struct):
            yield from ((f"{name}.{inner}", getattr(value, inner)) for inner in document[name])
        elif name == "shadows":
            yield name, document[name]
        else:
            yield name, shown_duration(value) if name in DURATIONS and value is not None else value
