"""What a worker's log never holds, whatever it is sent."""

import pytest

from stream_peer.events import topics
from tests.integration.support.client import Message
from tests.integration.support.events import Event, crowd, forecast, milliseconds, question
from tests.integration.support.service import SECRET, Service

pytestmark = pytest.mark.kafka

MARKED, IMPOSSIBLE = 0.3141592653, 31.41592653
MARKS = ("3141592653", "31.41592653")


def marked_events() -> list[Event]:
    """Forecasts that count, that are noted, that are refused, and that are taken back."""
    return [
        question("marked-1", "marked", 5),
        *crowd("marked-1", 5, 0),
        forecast("marked-1", "first", MARKED, 0.5),
        forecast("marked-1", "impossible", IMPOSSIBLE, 0.5),
        question("marked-2", "marked", 2, opens_at=question("", "", 4)["closes_at"]),  # contradicts itself
        forecast("marked-2", "first", MARKED, 3),
        forecast("marked-1", "first", None, 1),
        forecast("marked-1", "first", MARKED, 1.5),
        {"type": "feed", "feed": "marked", "probability": MARKED},
    ]


def test_no_forecast_and_no_secret_comes_into_the_log(served: Service) -> None:
    served.send(marked_events())
    served.produce(topics.FORECAST_EVENTS, [Message(b"marked-1", f'{{"probability": {MARKED}'.encode())])
    served.settle()
    served.tick(milliseconds(12))
    served.settle()
    worker = served.workers["w1"]

    published = b"".join(message.value or b"" for message in served.read(topics.PEER_LOSSES))
    refused = "".join(f"{letter.text}{letter.message.value!r}" for letter in served.dead_letters().values())
    assert str(MARKED).encode() in published
    assert all(mark in refused for mark in MARKS)
    assert "question_noted" in worker.said()
    assert [mark for mark in (*MARKS, SECRET) if mark in worker.said()] == []
