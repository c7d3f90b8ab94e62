"""Cases from real users about workers with nothing to do, and workers that do nothing, on real Kafka."""

from pathlib import Path

import pytest

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, at, crowd, milliseconds, question
from tests.integration.support.json_log import log_of, loud
from tests.integration.support.lives import DAY
from tests.integration.support.service import Service, Worker, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.case("C37")]

CLOSES = 15 * DAY
GATED = "has_gates"


def daily_news() -> list[Event]:
    """One event a day: two questions, and what three experts say of each in turn."""
    events: list[Event] = []
    for name, closes in (("quiet-1", 5 * DAY), ("quiet-2", CLOSES)):
        events += [question(name, "quiet", closes, opens_at=at(0)), *crowd(name, 3, 0)]
    return [{**event, "at": at(DAY * day)} for day, event in enumerate(events)]


def is_live(made: Service) -> bool:
    status, text = made.workers["w1"].http("/healthz/live")
    assert status in (200, 503), text  # the server answers in any case
    return status == 200


def test_a_feed_of_one_event_a_day_is_alive_and_silent_and_one_that_stands_still_is_neither(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    gates = tmp_path / "gates"
    gates.mkdir()
    with service(kafka, tmp_path / "quiet", log={"format": "json"}) as made:
        worker = start(made, gates)
        for day, event in enumerate(daily_news()):
            made.send([event])
            made.tick(milliseconds(DAY * day + 1))
            made.settle()
            assert is_live(made), made.logs()
        answers_while_quiet = made.last(topics.REFERENCE_ANSWERS, "quiet")
        loud_while_quiet = loud(worker)

        (gates / "fold").touch()
        made.tick(milliseconds(20 * DAY))
        red_after = max(made.settings.session / 4, 5.0)
        wait_until(lambda: not is_live(made), red_after + 4, lambda: f"liveness stayed green\n{made.logs()}")
        status, why = worker.http("/healthz/live")
        assert worker.http("/version")[0] == 200
        code = worker.process.wait(2 * red_after + 10)

        owned = {(line["stage"], line["partition"]) for line in log_of(worker) if line["event"] == "partition_owned"}
        assert owned == {*(("question", number) for number in range(4)), *(("feed", number) for number in range(2))}
        assert set(answers_while_quiet) == {"quiet-1", "quiet-2"}
        assert loud_while_quiet == []
        assert (status, "stands still" in why) == (503, True)
        assert code == 70
        (end,) = loud(worker)
        assert (end["event"], end["code"]) == ("worker_ends", 70)
        assert "stood still" in end["reason"]
        assert log_of(worker)[-1] == end

        (gates / "fold").unlink()
        made.start(STREAM_PEER_INSTANCE="w1").wait_ready()
        made.settle()
        assert answers_while_quiet["quiet-2"]["boundary"] != at(CLOSES)
        assert made.last(topics.REFERENCE_ANSWERS, "quiet")["quiet-2"]["boundary"] == at(CLOSES)


def start(made: Service, gates: Path) -> Worker:
    """A worker that can be held up."""
    made.run("topics", "apply")
    made.run("settings", "apply", "--no-wait")  # before the worker compares them with its file
    worker = made.start(altered=GATED, GATES=str(gates), STREAM_PEER_INSTANCE="w1")
    made.wait_configured()
    return worker.wait_ready()
