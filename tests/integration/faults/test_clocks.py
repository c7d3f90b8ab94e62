"""A worker whose clock is a day ahead, jumps a day back and half an hour ahead: it starts, and closes questions."""

from pathlib import Path

import pytest

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import at, forecast, now, question
from tests.integration.support.service import APPLY, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]

LIVE = {"live": {"history": False, "idle_after": "1s", "grace": "1s", "min_experts": 2}}
VOTERS = {"ann": 0.8, "bob": 0.7, "cy": 0.6}
SKEWS = {"ahead": 86_400, "jumped back": -86_400, "jumped ahead": 1_800}


@pytest.mark.induces("a clock a day ahead, then a day behind, then half an hour ahead")
def test_quiet_questions_close_on_time_whatever_a_workers_clock_says_and_however_it_jumps(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    clock, shown = tmp_path / "clock", {}
    clock.write_text(str(SKEWS["ahead"]))
    with service(kafka, tmp_path, shape=Shape(1, 1), feeds=LIVE) as made:
        made.run("topics", "apply")
        worker = made.start(altered="has_a_wrong_clock", CLOCK=str(clock))
        made.run(*APPLY)
        made.wait_configured()

        for name, seconds in SKEWS.items():
            clock.write_text(str(seconds))
            start = now()
            said = [forecast(name, expert, p, start, feed="live") for expert, p in VOTERS.items()]
            made.send([question(name, "live", start + 2 / 3600, opens_at=at(start - 1)), *said])
            wait_until(lambda name=name: name in made.last(topics.PEER_LOSSES, "live"), 60, made.logs)  # type: ignore[misc]
            shown[name] = made.metric("stream_peer_clock_skew_seconds")

        assert not worker.has_ended
        assert shown == {name: pytest.approx(seconds, abs=5) for name, seconds in SKEWS.items()}
