"""A state that was folded from headers of anybody is not trusted, and goes on from where signatures count."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.events.incoming import MAX_EVENT_BYTES, SignaturesFromHere, decode
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import Milliseconds
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import LogRecord, Output
from stream_peer.questions.repair import Controls, RepairTarget
from tests.unit.questions.question_log import (
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    broadcast,
    delete,
    event,
    forecast,
    forget,
    question,
    settings_event,
    signed,
    stage,
    tick,
)

CLOSE = T0 + 7 * DAY
Q, S, LATER = [name for name in map("q{}".format, range(20)) if partition_of(name, 2) == 0][:3]
FORGED = 9_000_000_000_000
FORWARD = Source(topics.FORECAST_EVENTS, 1, 0, 3, 0)
POISON = [
    ["forecast-events", 1, 0, FORGED, 0],
    ["control-events", 0, 0, FORGED, 0],
]


def controls(*values: bytes, since: Milliseconds = T0) -> Controls:
    """What stands on control-events, one event an hour."""
    found = Controls()
    for offset, value in enumerate(values):
        found.add(0, LogRecord(offset, since + offset * HOUR, b"k", value))
    return found


def lived() -> Partition:
    """A partition of two: a question of each of two feeds, with forecasts."""
    partition = Partition(stage(partitions=2), now=T0)
    for question_id, feed in ((Q, "econ"), (S, "sport")):
        partition.send(question(question_id, feed=feed, opens_at=T0, closes_at=CLOSE))
        for expert, probability in (("ann", 0.9), ("bob", 0.2), ("cy", 0.6)):
            partition.send(forecast(expert, probability, T0, question_id))
    return partition


def poison(partition: Partition, seen: Sequence[Any] = POISON, **changed: Any) -> None:
    """Its owner changes, and the state is one of the release before signatures that was told forged headers."""
    snapshot = partition.stage.snapshot()
    partition.stored.update({key: value for key, value in snapshot.entries.items() if value is not None})
    head = msgspec.msgpack.decode(snapshot.head)
    del head["signed"]
    partition.stage = stage(partitions=2)
    partition.stage.load(msgspec.msgpack.encode({**head, "seen": [*head["seen"], *seen], **changed}), partition.stored)


def repair(partition: Partition, found: Controls) -> list[LogRecord]:
    """What the command appends, folded; the markers."""
    place = RepairTarget(0, 0, partition.offset)
    markers = [_record(output) for output in found.markers(place, 0, Signatures(), partition.now)]
    append(partition, markers)
    return markers


def append(partition: Partition, records: Iterable[LogRecord]) -> list[Output]:
    before = len(partition.effects.outputs)
    for record in records:
        partition.stage.step(record._replace(offset=partition.offset, timestamp=partition.now), partition.effects)
        partition.offset += 1
    return partition.effects.outputs[before:]


def _record(output: Output) -> LogRecord:
    return LogRecord(0, output.timestamp, output.key, output.value, output.headers)


def test_a_state_from_before_signatures_needs_a_marker() -> None:
    partition = lived()
    states = [partition.stage.needs_marker]
    poison(partition)
    states.append(partition.stage.needs_marker)

    (marker,) = repair(partition, controls())
    assert partition.stage.is_marker(marker)
    states.append(partition.stage.needs_marker)
    partition.restart(stage(partitions=2))
    states.append(partition.stage.needs_marker)

    assert states == [False, True, False, False]


def test_a_poisoned_state_hears_others_again_and_does_the_erasure_that_it_had_swallowed() -> None:
    partition = lived()
    poison(partition)

    repair(partition, controls(settings_event({"defaults": {"round_every": "1d"}}), forget("ann", "econ")))
    partition.send(forecast("dora", 0.3, T0 + HOUR, Q), source=FORWARD)
    partition.send(forget("cy", "econ"), source=broadcast(2))
    partition.pass_to(CLOSE + GRACE)

    assert partition.count("duplicate") == 0
    assert set(partition.told.forecasts(Q)[CLOSE]) == {"bob", "dora"}
    assert set(partition.told.forecasts(S)[CLOSE]) == {"ann", "bob", "cy"}
    assert T0 + DAY in partition.told.forecasts(Q)
    assert partition.send(forecast("ann", 0.5, CLOSE, Q))[0].topic == topics.DEAD_LETTERS


def test_a_repaired_partition_knows_experts_by_the_names_that_stand_on_control_events() -> None:
    def rename(expert_id: str, new: str) -> bytes:
        return event("expert", feed="econ", expert_id=expert_id, at=T0, rename=new)

    partition = lived()
    poison(partition)
    repair(partition, controls(rename("ann", "x"), delete("econ"), rename("ann", "anna"), rename("cy", "cyd")))
    repair(partition, controls(rename("ann", "anna"), rename("cy", "cyd"), forget("cyd", "econ")))
    partition.send(question(Q, feed="econ", opens_at=T0, closes_at=CLOSE))
    for expert in ("ann", "anna", "cy", "cyd", "x"):
        partition.send(forecast(expert, 0.3, T0 + HOUR, Q))
    partition.pass_to(CLOSE + GRACE)

    assert set(partition.told.forecasts(Q)[CLOSE]) == {"ann", "x"}
    assert partition.count("dead-letter", "forgotten") == 2


def test_controls_that_the_marker_tells_of_are_repeats_from_then_on() -> None:
    partition = lived()
    poison(partition)
    repair(partition, controls(settings_event({}), delete("econ")))

    partition.send(question(Q, feed="econ", opens_at=T0, closes_at=CLOSE), forecast("ann", 0.9, T0, Q))
    partition.send(delete("econ"), source=broadcast(1))
    partition.pass_to(CLOSE + GRACE)

    assert partition.count("duplicate") == 1
    assert partition.told.forecasts(Q) == {CLOSE: {"ann": 0.9}}


def test_a_delete_spares_what_was_heard_of_after_it() -> None:
    partition = lived()
    partition.send(question(LATER, feed="econ", opens_at=T0, closes_at=CLOSE), now=T0 + 2 * HOUR)
    partition.send(forecast("ann", 0.9, T0 + HOUR, LATER))
    poison(partition)

    repair(partition, controls(delete("econ"), since=T0 + HOUR))
    partition.pass_to(CLOSE + GRACE)

    assert set(partition.told.forecasts(LATER)) == {CLOSE}
    assert partition.told.forecasts(Q) == {}
    assert set(partition.told.forecasts(S)) == {CLOSE}


def test_until_the_marker_no_header_of_ours_is_believed() -> None:
    partition = lived()
    poison(partition)

    partition.send(forecast("dora", 0.3, T0 + HOUR, Q), source=FORWARD)
    partition.send(forecast("dora", 0.4, T0 + HOUR, Q), source=FORWARD)
    refused = partition.send(delete("econ"), source=broadcast(7))
    refused += partition.send(tick(CLOSE), now=CLOSE)

    assert partition.count("duplicate") == 0
    assert partition.count("event", "forecast") == 8
    assert [output.topic for output in refused] == [topics.DEAD_LETTERS, topics.DEAD_LETTERS]


def test_settings_that_a_forged_control_had_put_in_force_give_way() -> None:
    partition = lived()
    partition.apply({"defaults": {"round_every": "1d"}})
    poison(partition)

    repair(partition, controls(forget("nobody")))
    partition.pass_to(CLOSE + GRACE)

    assert set(partition.told.forecasts(Q)) == {CLOSE}


def test_a_copy_of_a_marker_clears_nothing() -> None:
    partition = lived()
    poison(partition)
    markers = repair(partition, controls(settings_event({})))
    partition.send(forecast("ann", 0.3, T0, Q), source=FORWARD)
    partition.apply({"defaults": {"round_every": "1d"}})

    copied = append(partition, markers)
    partition.send(forecast("ann", 0.4, T0, Q), source=FORWARD)

    assert copied == []
    assert partition.count("duplicate") == len(markers) + 1
    assert partition.count("event", "signatures-from-here") == 1


def test_what_is_trusted_loses_nothing_by_a_repair_and_keeps_settings_newer_than_the_marker() -> None:
    partition = lived()
    partition.send(forecast("dora", 0.3, T0 + HOUR, Q), source=FORWARD)
    partition.send(settings_event({"defaults": {"round_every": "1d"}}), source=broadcast(5))

    repair(partition, controls(settings_event({})))
    partition.send(settings_event({}), source=broadcast(4))
    partition.pass_to(CLOSE + GRACE)

    assert partition.count("duplicate") == 1
    assert len(partition.told.forecasts(Q)) == 7
    assert "dora" in partition.told.forecasts(Q)[CLOSE]


def test_a_partition_can_be_repaired_again() -> None:
    partition = lived()
    poison(partition)
    repair(partition, controls(settings_event({})))
    repair(partition, controls(settings_event({}), forget("ann", "econ")))
    partition.pass_to(CLOSE + GRACE)

    assert partition.count("event", "signatures-from-here") == 3
    assert set(partition.told.forecasts(Q)[CLOSE]) == {"bob", "cy"}


@pytest.mark.parametrize("source", [None, broadcast(3), FORWARD])
def test_a_marker_of_anybody_else_is_refused(source: Source | None) -> None:
    value = msgspec.json.encode(SignaturesFromHere(marks=[]))
    partition = lived()
    poison(partition)
    record = LogRecord(0, T0, b"key", value, () if source is None else signed(value, source))

    (refused,) = append(partition, [record])

    assert refused.topic == topics.DEAD_LETTERS
    assert partition.count("unsigned", "control") == 1
    assert partition.stage.needs_marker


def test_the_marker_of_another_partition_is_none() -> None:
    (marker,) = controls().markers(RepairTarget(1, 0, 5), 0, Signatures(), T0)
    partition = lived()
    poison(partition)

    assert not partition.stage.is_marker(_record(marker))
    append(partition, [_record(marker)])
    assert partition.stage.needs_marker


def test_more_than_a_record_takes_is_told_in_several_of_which_the_last_counts() -> None:
    found = controls(
        settings_event({}), *(forget(f"expert-{number:06d}-{'x' * 200}", "econ") for number in range(9_000))
    )
    partition = lived()
    partition.send(forecast("expert-000007-" + "x" * 200, 0.9, T0, Q))
    poison(partition)

    markers = repair(partition, found)
    partition.pass_to(CLOSE + GRACE)

    assert len(markers) == 4
    assert max(len(marker.value or b"") for marker in markers) < MAX_EVENT_BYTES
    last = decode(markers[-1].value)
    assert isinstance(last, SignaturesFromHere)
    assert last.marks == [Source(topics.CONTROL_EVENTS, 0, 0, 9_000, 0)]
    assert [partition.stage.is_marker(marker) for marker in markers] == [False, False, False, True]
    assert set(partition.told.forecasts(Q)[CLOSE]) == {"ann", "bob", "cy"}


def test_what_the_control_stage_refuses_is_not_told() -> None:
    found = controls(
        settings_event({}),
        settings_event({"defaults": {"round_every": "often"}}),
        b"{}",
        msgspec.json.encode({"type": "expert", "feed": "econ", "expert_id": "ann", "at": "2026-03-01T12:00:00Z"}),
        msgspec.json.encode({"type": "feed", "feed": "econ", "reset": True}),
    )

    assert found.settings is not None
    assert (found.settings.document, found.settings.at) == ({}, T0)
    assert found.reached == {0: 4}
    assert str(found) == f"settings {found.settings.hash}, renamed experts: 0, forgotten experts: 0, deleted feeds: 0"
