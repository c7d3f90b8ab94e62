"""What the time at which records come tells of our clock."""

from typing import Any, NamedTuple

from stream_peer.kafka.worker.inbox import ArrivalSample
from stream_peer.kafka.worker.monitor import ClockSkew
from stream_peer.kafka.worker.port import LogEnd, TopicPartition
from stream_peer.kafka.worker.process import now


class Reading(NamedTuple):
    """A partition of which so much was read, and what came since."""

    want: int
    heard: ArrivalSample | None = None
    tp: TopicPartition = TopicPartition("forecast-events", 0)

    def take_sample(self) -> ArrivalSample | None:
        return self.heard


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def looked(skew: ClockSkew, *readings: tuple[int, ArrivalSample | None, int | LogEnd]) -> float | None:
    for want, heard, end in readings:
        partition: Any = Reading(want, heard)
        skew.look(partition, end if isinstance(end, LogEnd) else LogEnd(end, end))
    return skew.seconds


def test_a_record_that_follows_on_what_was_read_to_the_end_tells_how_far_our_clock_is_ahead() -> None:
    assert looked(ClockSkew(now), (10, None, 10), (13, ArrivalSample(10, 30.2), 13)) == 30.2
    assert looked(ClockSkew(now), (10, None, 10), (13, ArrivalSample(10, -4.0), 13)) == -4.0


def test_the_least_counts_because_only_the_way_here_differs() -> None:
    ages = (
        (10, None, 10),
        (13, ArrivalSample(10, 5.3), 13),
        (14, ArrivalSample(13, 5.01), 14),
        (15, ArrivalSample(14, 9.0), 15),
    )
    assert looked(ClockSkew(now), *ages) == 5.01


def test_a_worker_that_catches_up_learns_nothing_of_its_clock() -> None:
    assert (
        looked(ClockSkew(now), (5, None, 20), (13, ArrivalSample(5, 7200.0), 20), (20, ArrivalSample(13, 7200.0), 20))
        is None
    )


def test_what_comes_out_of_an_open_transaction_is_older_than_the_way_here_and_tells_nothing() -> None:
    assert looked(ClockSkew(now), (10, None, LogEnd(13, 10)), (13, ArrivalSample(10, 61.0), 13)) is None


def test_what_was_learnt_is_forgotten_when_nothing_comes_any_more() -> None:
    hands = Hands()
    skew = ClockSkew(hands)
    assert looked(skew, (10, None, 10), (13, ArrivalSample(10, 30.2), 13)) == 30.2
    hands.at += 240
    assert skew.seconds == 30.2
    hands.at += 120
    assert skew.seconds is None
