import msgspec
import pytest

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import Round
from stream_peer.feeds.round_parts import Assembly
from tests.feed_histories import round_of

WHOLE = round_of("q", {"a": 0.1, "b": 0.2, "c": 0.3})


def part(number: int, expert: str, parts: int = 3) -> Round:
    return msgspec.structs.replace(round_of("q", {expert: 0.5}), part=number, parts=parts)


def test_a_round_in_one_part_is_whole() -> None:
    assert Assembly().add(WHOLE) is WHOLE


def test_a_round_is_whole_with_its_last_part() -> None:
    assembly = Assembly()

    assert assembly.add(part(0, "a")) is None
    assert assembly.add(part(1, "b")) is None
    whole = assembly.add(part(2, "c"))

    assert whole is not None
    assert whole.experts == ["a", "b", "c"]
    assert whole.probabilities == [0.5, 0.5, 0.5]


def test_a_first_part_starts_anew() -> None:
    assembly = Assembly()
    assembly.add(part(0, "a"))
    assembly.add(part(0, "b", parts=2))

    whole = assembly.add(part(1, "c", parts=2))

    assert whole is not None
    assert whole.experts == ["b", "c"]


def test_a_part_without_the_one_before_is_refused() -> None:
    assembly = Assembly()
    assembly.add(part(0, "a"))

    with pytest.raises(RejectedEvent, match="part 2 of 3"):
        assembly.add(part(2, "c"))


def test_parts_survive_a_restart_and_leave_nothing_behind() -> None:
    assembly, successor = Assembly(), Assembly()
    assembly.add(part(0, "a"))
    assembly.add(part(1, "b"))
    stored = {key: value for key, value in assembly.snapshot().items() if value is not None}

    successor.load(stored)
    whole = successor.add(part(2, "c"))

    assert whole is not None
    assert whole.experts == ["a", "b", "c"]
    assert successor.snapshot() == dict.fromkeys(stored)


def test_nothing_is_left_of_a_forgotten_expert_in_parts_that_wait_and_the_others_make_the_round() -> None:
    assembly = Assembly()
    assembly.add(msgspec.structs.replace(WHOLE, experts=["a", "zoe"], probabilities=[0.1, 0.2], parts=2))
    assembly.snapshot()

    assembly.discard("elsewhere", "a")
    assembly.discard("f", "zoe")
    rows = assembly.snapshot()
    whole = assembly.add(part(1, "c", parts=2))

    assert list(rows) == [b"p/f/q"]
    assert b"zoe" not in (rows[b"p/f/q"] or b"")
    assert whole is not None
    assert (whole.experts, whole.probabilities) == (["a", "c"], [0.1, 0.5])
