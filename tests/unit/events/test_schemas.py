"""The committed JSON Schemas are those of the classes that decode, and accept what the decoder accepts."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import decode

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "stream_peer" / "events" / "schemas"
NOON = "2026-03-01T12:00:00Z"
GOOD: list[dict[str, Any]] = [
    {"type": "question", "question_id": "q", "closes_at": NOON, "weight": 0.5},
    {"type": "forecast", "question_id": "q", "expert_id": "e", "probability": 0.5, "at": NOON, "more": 1},
    {"type": "forecast", "question_id": "q", "expert_id": "e", "probability": None, "at": NOON},
    {"type": "forecasts", "question_id": "q", "at": NOON, "forecasts": {"a": 0, "b": None}},
    {"type": "resolution", "question_id": "q", "outcome": "yes", "at": NOON},
    {"type": "resolution", "question_id": "q", "outcome": None, "at": NOON},
    {"type": "expert", "feed": "econ", "expert_id": "e", "at": NOON, "excluded": True},
    {"type": "feed", "feed": "econ", "reset": True},
    {"type": "settings", "document": {"defaults": {}}, "hash": "9f3c"},
    {"type": "tick", "now": NOON},
]
BAD: list[dict[str, Any]] = [
    {"type": "forecast", "question_id": "q", "expert_id": "e", "probability": 1.5, "at": NOON},
    {"type": "forecast", "question_id": "", "expert_id": "e", "probability": 0.5, "at": NOON},
    {"type": "forecast", "question_id": "q", "expert_id": "e", "at": NOON},
    {"type": "question", "question_id": "q", "weight": 0},
    {"type": "expert", "feed": "a b", "expert_id": "e", "at": NOON},
    {"type": "resolution", "question_id": "q", "outcome": [], "at": NOON},
]


def schema_of(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{kind}.v1.json").read_text())
    return schema


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="an installed package has no docs")
def test_generated_files_are_committed_as_generated() -> None:
    from docs.generator import files

    made = files()

    stale = [path for path, text in made.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    assert stale == [], "run `make generated` and look at the difference"
    assert {f"stream_peer/events/schemas/{file.name}" for file in SCHEMAS.glob("*.json")} <= set(made)


@pytest.mark.parametrize("file", sorted(SCHEMAS.glob("*.json")), ids=lambda file: file.name)
def test_each_schema_is_valid(file: Path) -> None:
    Draft202012Validator.check_schema(json.loads(file.read_text()))


@pytest.mark.parametrize("event", GOOD, ids=lambda event: event["type"])
def test_what_decodes_is_valid(event: dict[str, Any]) -> None:
    decode(json.dumps(event).encode())

    Draft202012Validator(schema_of(event["type"])).validate(event)


@pytest.mark.parametrize("event", BAD, ids=lambda event: event["type"])
def test_what_the_schema_refuses_does_not_decode(event: dict[str, Any]) -> None:
    assert not Draft202012Validator(schema_of(event["type"])).is_valid(event)

    with pytest.raises(RejectedEvent):
        decode(json.dumps(event).encode())
