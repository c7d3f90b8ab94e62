"""Events as a platform writes them: dicts with times in hours from a start in the past."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from stream_peer.events.times import Milliseconds, to_milliseconds

START = datetime(2025, 1, 6, tzinfo=UTC)

Event = dict[str, Any]


def moment(hours: float) -> datetime:
    """So many hours after the start."""
    return START + timedelta(hours=hours)


def now() -> float:
    """How many hours after the start it is."""
    return (datetime.now(UTC) - START).total_seconds() / 3600


def at(hours: float) -> str:
    """The moment as events state it."""
    return moment(hours).isoformat().replace("+00:00", "Z")


def milliseconds(hours: float) -> Milliseconds:
    """The moment as ticks and boundaries have it."""
    return to_milliseconds(moment(hours))


def question(question_id: str, feed: str, closes: float, **fields: Any) -> Event:
    """Opens a question that closes at an hour."""
    return {"type": "question", "question_id": question_id, "feed": feed, "closes_at": at(closes), **fields}


def forecast(question_id: str, expert_id: str, probability: float | None, hours: float, **fields: Any) -> Event:
    """An expert's forecast at an hour."""
    named = {"question_id": question_id, "expert_id": expert_id}
    return {"type": "forecast", **named, "probability": probability, "at": at(hours), **fields}


def resolution(question_id: str, outcome: Any, hours: float, **fields: Any) -> Event:
    """What became of the question, said at an hour."""
    return {"type": "resolution", "question_id": question_id, "outcome": outcome, "at": at(hours), **fields}


def crowd(question_id: str, experts: int, hours: float, *, first: int = 0, feed: str | None = None) -> Iterator[Event]:
    """One forecast of each expert: a wide spread that is another one for every question."""
    named = {} if feed is None else {"feed": feed}
    salt = sum(question_id.encode())
    for number in range(first, first + experts):
        probability = (7 * number + 13 * salt) % 97 / 100 + 0.01
        yield forecast(question_id, f"e{number}", round(probability, 2), hours + number / 100, **named)


def encoded(events: Iterable[Event]) -> Iterator[bytes]:
    """The events as bytes."""
    return (json.dumps(event).encode() for event in events)
