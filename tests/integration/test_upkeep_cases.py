"""Quiet feeds, and busy ones over the years: nothing is repeated or piles up; a worker ends halfway, on real Kafka."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka.admin import MemberToRemove

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, at, now, question, resolution
from tests.integration.support.lives import DAY, Published, crowds, finish, gauges, kill, outcomes, panel, state
from tests.integration.support.service import Service, Shape, Stage, service

pytestmark = pytest.mark.real_kafka

STAGES: tuple[Stage, Stage] = ("question", "feed")
READ: tuple[tuple[Stage, str], ...] = (("question", topics.FORECAST_EVENTS), ("feed", topics.FEED_LOG))
OPEN = 20
QUESTIONS = 2_000


@pytest.mark.case("C30")
def test_a_group_whose_offsets_expired_goes_on_where_it_was(lived: Service, start: float) -> None:
    feed = "c30"
    lived.send([*crowds(feed, start, range(8)), *outcomes(feed, start + 2 * DAY, {0: 1, 1: 0})])
    finish(lived, start + 3 * DAY)
    before, logged = Published(lived), lived.read(topics.FEED_LOG)
    shown = gauges(lived, feed)

    for begins in ("earliest", "latest"):
        away(lived, begins)
        lived.settle()
        lived.workers["w1"].wait_ready()
        after = Published(lived)
        # What control-events say is handed on once more, and known for a repeat by its source; nothing else is.
        repeats = lived.read(topics.FEED_LOG)
        assert {(m.key, m.value) for m in repeats} == {(m.key, m.value) for m in logged}
        assert not {m.value for m in repeats if m not in logged and b"control-events" not in (m.value or b"")}
        assert after.last(feed) == before.last(feed)
        assert not after.contradictions(feed)
        assert gauges(lived, feed) == shown

    away(lived, "latest", crowds(feed, start + 5 * DAY, range(8, 10)))
    finish(lived, start + 7 * DAY)
    assert len(Published(lived).answers(feed)) == 10


def away(service: Service, begins: str, sent: Iterable[Event] = ()) -> None:
    """Stop the worker until the broker has dropped its groups' members and offsets; events are sent meanwhile."""
    assert service.workers["w1"].terminate() == 0
    service.send(sent)
    groups = [service.settings.app_id(stage) for stage in STAGES]
    with service.kafka.admin() as admin:
        for group in groups:
            admin.remove_group_members(group, [MemberToRemove(group_instance_id=f"w1-{group}")])
        admin.delete_groups(groups)
    assert not any(service.committed(stage, logical) for stage, logical in READ)
    service.start("w1", STREAM_PEER_INSTANCE="w1", STREAM_PEER_START=begins)


class Size(NamedTuple):
    """What a deployment keeps: entries and bytes of both states, and what its process occupies."""

    entries: int
    stored: int
    resident: float

    @classmethod
    def of(cls, deployment: Service) -> "Size":
        entries = [len(key) + len(value) for stage in STAGES for key, value in state(deployment, stage).items()]
        return cls(len(entries), sum(entries), deployment.metric("process_resident_memory_bytes"))


def procession(start: float, numbers: range) -> Iterator[Event]:
    """A question an hour, each open for ``OPEN`` hours; every tenth is resolved in the end."""
    for number in numbers:
        hour, key = start + number, f"c34-q{number}"
        yield question(key, "c34", hour + OPEN, opens_at=at(hour), at=at(hour))
        yield from panel(number, key, range(4), hour + 0.1)
        if number % 10 == 0:
            yield resolution(f"c34-q{number - OPEN - 10}", number % 20 // 10, hour)


@pytest.mark.case("C34")
def test_what_was_opened_and_closed_does_not_stay(kafka: KafkaClient, tmp_path: Path) -> None:
    kept = {"history_for": "1h", "ledger_for": "3d", "retract_for": "3d", "ledger_max": 5 * OPEN}
    defaults = {"history": True, "skew": "1y", **kept}
    start = now() + 1
    with service(kafka, tmp_path, shape=Shape(2, 1), defaults=defaults) as deployment:
        deployment.set_up(STREAM_PEER_INSTANCE="w1")
        deployment.send(procession(start, range(QUESTIONS // 2)))
        deployment.settle()
        halfway = Size.of(deployment)
        kill(deployment)
        deployment.send(procession(start, range(QUESTIONS // 2, QUESTIONS)))
        deployment.settle()
        end = Size.of(deployment)
        answered = deployment.last(topics.REFERENCE_ANSWERS, "c34")

    assert len(answered) >= QUESTIONS - 2 * OPEN
    assert sum(answer["state"] == "resolved" for answer in answered.values()) > QUESTIONS // 20
    # Level: twice the questions, and no more is kept; all of it is a small multiple of what is open.
    assert end.entries <= 1.1 * halfway.entries
    assert end.stored <= 1.1 * halfway.stored
    assert end.resident <= 1.2 * halfway.resident
    assert end.entries <= 15 * OPEN
