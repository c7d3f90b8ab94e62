"""JSON Schemas of all messages, made from the classes that decode and encode them, with a word about each field.

The contract (``asyncapi``) is made of the same components.
"""

import json
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from docs.generator.field_words import FIELDS
from stream_peer.events import feed_log, incoming, outputs

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DIRECTORY = "stream_peer/events/schemas"

INCOMING = {
    **{kind.__struct_config__.tag: kind for kind in get_args(incoming.Event)},
    "group-forecast": incoming.GroupForecast,  # their types are those of others
    "group-resolution": incoming.GroupResolution,
}
FEED_LOG = {f"feed-log.{kind.__struct_config__.tag}": kind for kind in get_args(feed_log.AnyFeedLogRecord)}
OUTPUTS = {
    "weights": outputs.Weights,
    "error-rates": outputs.ErrorRates,
    "reference-answers": outputs.ReferenceAnswer,
    "peer-losses": outputs.PeerLosses,
    "mixed-forecasts": outputs.MixedForecast,
    "mixed-groups": outputs.MixedGroup,
}
MESSAGES = {**INCOMING, **FEED_LOG, **OUTPUTS}
"""Class of each message, by the name of its schema."""


def files() -> dict[str, str]:
    """The schema of each message: path in the repository and content."""
    made = {name: _schema(name, kind) for name, kind in MESSAGES.items()}
    return {f"{DIRECTORY}/{name}.v1.json": json.dumps(schema, indent=2) + "\n" for name, schema in made.items()}


def components(kinds: Iterable[type], reference: str) -> dict[str, Any]:
    """Schemas of classes and of all that they consist of, by name; ``reference`` is where they refer to each other.

    Raises
    ------
    LookupError
        If a field has no word in ``field_words.py``.
    """
    _, found = msgspec.json.schema_components(list(kinds), ref_template=reference)
    for name, schema in found.items():
        if schema.get("additionalProperties") is False:
            del schema["additionalProperties"]  # unknown fields are accepted, and counted
        if "description" in schema:
            schema["description"] = _plain(schema["description"])
        for field, said in schema.get("properties", {}).items():
            schema["properties"][field] = {"description": _word(name, field), **said}
    return found


def _schema(name: str, kind: type) -> dict[str, Any]:
    found = components([kind], "#/$defs/{name}")
    own = found.pop(kind.__name__)
    schema = {"$schema": DIALECT, "$id": f"urn:stream-peer:{name}:1", **own}
    return {**schema, "$defs": found} if found else schema


def _word(name: str, field: str) -> str:
    special, published = FIELDS.get(f"{name}.{field}"), FIELDS.get(f"Published.{field}")
    is_output = published and name in {kind.__name__ for kind in OUTPUTS.values()}
    word = special or (published if is_output else None) or FIELDS.get(field)
    if word is None:
        msg = f"docs/generator/field_words.py has no word for {name}.{field}"
        raise LookupError(msg)
    return word


def unused_words() -> set[str]:
    """Words that belong to no field of any message."""
    found = components(MESSAGES.values(), "#/{name}")
    used = {field for schema in found.values() for field in schema.get("properties", {})}
    named = {f"{name}.{field}" for name, schema in found.items() for field in schema.get("properties", {})}
    published = {f"Published.{field}" for field in outputs.Published.__struct_fields__}
    return set(FIELDS) - used - named - published


def _plain(docstring: str) -> str:
    """A docstring as text: paragraphs of one line each, single backticks."""
    paragraphs = docstring.replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
