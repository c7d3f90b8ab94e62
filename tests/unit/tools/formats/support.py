"""Importing files as a test wants it: what came of them, as events and as counts."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_peer.events.incoming import decode
from stream_peer.tools.formats.adapter import FormatOptions
from stream_peer.tools.formats.imported import ImportPlan, gathered

SAMPLES = Path(__file__).parents[4] / "examples" / "formats"


class Found(NamedTuple):
    """What an import made of files."""

    events: list[dict[str, Any]]
    counts: dict[str, int]
    reasons: Counter[str]

    def said(self) -> dict[tuple[str, str], list[tuple[str, float | None]]]:
        """Forecasts, with their times, by question and expert."""
        found: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
        for event in self.events:
            if event["type"] == "forecast":
                forecasts = {event["expert_id"]: event["probability"]}
            else:
                forecasts = event.get("forecasts", {})
            for expert, probability in forecasts.items():
                found.setdefault((event["question_id"], expert), []).append((event["at"], probability))
        return found

    def told(self) -> dict[str, tuple[Any, str]]:
        """Outcomes and when they were known, by question."""
        return {
            event["question_id"]: (event["outcome"], event["at"])
            for event in self.events
            if event["type"] == "resolution"
        }

    def asked(self) -> dict[str, tuple[str | None, str | None]]:
        """When questions open and close."""
        return {
            event["question_id"]: (event.get("opens_at"), event.get("closes_at"))
            for event in self.events
            if event["type"] == "question"
        }


def imported(name: str, *files: Path, names: Path | None = None, **options: Any) -> Found:
    """Import files; every event is one that the service takes, and they are in order of time."""
    plan = ImportPlan(name, files, "econ", FormatOptions(**options), names)
    with gathered(plan) as made:
        payloads = [event.payload for event in made.timed()]
        found = Found([msgspec.json.decode(payload) for payload in payloads], made.counts, made.reasons)
    for payload in payloads:
        decode(payload)
    times = [event["at"] for event in found.events]
    assert times == sorted(times)
    return found


def table(path: Path, header: str, rows: Iterable[str]) -> Path:
    """A file of CSV."""
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path
