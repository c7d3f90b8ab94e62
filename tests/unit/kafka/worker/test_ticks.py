"""When a tick is due."""

import json
from typing import Any

from stream_peer.kafka.worker.monitor import Ticker
from stream_peer.kafka.worker.partition import OwnedPartition, StartPosition
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.log.signatures import Signatures
from tests.unit.kafka.worker.fakes import FakeProducer, FakeSource, SumStage, surroundings

DEADLINE = 1_772_366_400_000  # 2026-03-01T12:00:00Z


async def partition(number: int = 2, *, clock: int = 0, deadline: int | None = DEADLINE) -> OwnedPartition:
    stage: Any = SumStage()
    stage.clock, stage.due = clock, deadline
    around, _ = surroundings(FakeProducer())
    place = ("question", TopicPartition("forecast-events", number))
    return OwnedPartition(place, stage, StartPosition(-1, 0), None, FakeSource(), around, lambda: False)


async def test_a_deadline_that_passed_unnoticed_gets_a_tick_on_its_own_partition() -> None:
    (tick,) = Ticker(Signatures()).due([await partition()], DEADLINE)

    assert (tick.topic, tick.key, tick.partition) == ("forecast-events", b"tick", 2)
    assert json.loads(tick.value or b"") == {"type": "tick", "now": "2026-03-01T12:00:00Z"}


async def test_nothing_is_due_before_the_deadline_or_without_one_or_when_the_clock_is_there() -> None:
    waiting = [
        await partition(deadline=DEADLINE + 1),
        await partition(deadline=None),
        await partition(clock=DEADLINE),
    ]

    assert Ticker(Signatures()).due(waiting, DEADLINE) == []


async def test_a_tick_under_way_is_not_written_again() -> None:
    ticker, waiting = Ticker(Signatures()), await partition()

    first = ticker.due([waiting], DEADLINE)
    soon = ticker.due([waiting], DEADLINE + 1_000)
    much_later = ticker.due([waiting], DEADLINE + 31_000)

    assert [len(first), len(soon), len(much_later)] == [1, 0, 1]


async def test_a_tick_of_a_clock_that_was_ahead_is_written_again_once_the_time_is_known() -> None:
    ticker, waiting = Ticker(Signatures()), await partition()

    of_wrong_clock = ticker.due([waiting], DEADLINE + 1_800_000)
    known = ticker.due([waiting], DEADLINE + 10)
    again = ticker.due([waiting], DEADLINE + 510)

    assert [len(of_wrong_clock), len(known), len(again)] == [1, 1, 0]


async def test_the_next_deadline_gets_its_tick_as_soon_as_the_last_one_arrived() -> None:
    ticker, waiting = Ticker(Signatures()), await partition()
    ticker.due([waiting], DEADLINE)
    stage: Any = waiting.stage
    stage.clock, stage.due = DEADLINE, DEADLINE + 500

    assert len(ticker.due([waiting], DEADLINE + 1_000)) == 1
