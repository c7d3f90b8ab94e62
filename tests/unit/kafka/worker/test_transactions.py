"""Partitions that wait for the end of an open transaction, and where a log ends for a reader of committed records."""

import pytest
from structlog.testing import capture_logs

from stream_peer.kafka.worker.health import TOLD_AFTER_SECONDS
from stream_peer.kafka.worker.monitor import OpenTransactions
from stream_peer.kafka.worker.port import LogEnd, TopicPartition, log_end
from tests.unit.clock import Clock

HERE = TopicPartition("forecast-events", 3)
OPEN = LogEnd(30, 10)


def test_a_wait_is_one_line_when_it_is_longer_than_ordinary_ones_and_one_when_it_ends() -> None:
    clock = Clock()
    transactions = OpenTransactions(clock)

    with capture_logs() as logged:
        waits = []
        for _ in range(4):
            waits.append(transactions.look(HERE, OPEN, has_read=True))
            clock.at += TOLD_AFTER_SECONDS / 2
        waits.append(transactions.look(HERE, LogEnd(31, 31), has_read=True))

    assert waits == [0.0, 2.5, 5.0, 7.5, None]
    place = {"topic": "forecast-events", "partition": 3, "offset": 10}
    assert logged == [
        {"event": "waiting_for_transaction", "log_level": "warning", **place, "behind": 20},
        {"event": "transaction_ended", "log_level": "info", **place, "seconds": 10.0},
    ]


def test_ordinary_transactions_follow_each_other_without_a_word() -> None:
    clock = Clock()
    transactions = OpenTransactions(clock)

    with capture_logs() as logged:
        for stable in range(10):
            assert transactions.look(HERE, LogEnd(30, stable), has_read=True) == 0.0
            clock.at += TOLD_AFTER_SECONDS - 1

    assert logged == []


@pytest.mark.parametrize(("end", "has_read"), [(None, True), (OPEN, False), (LogEnd(10, 10), True)])
def test_who_has_still_to_read_or_has_read_all_waits_for_no_transaction(end: LogEnd | None, has_read: bool) -> None:
    assert OpenTransactions(Clock()).look(HERE, end, has_read=has_read) is None


def test_a_partition_that_went_elsewhere_is_forgotten() -> None:
    clock = Clock()
    transactions = OpenTransactions(clock)
    transactions.look(HERE, OPEN, has_read=True)
    clock.at += 60

    transactions.retain(set())

    assert transactions.look(HERE, OPEN, has_read=True) == 0.0


@pytest.mark.parametrize(
    ("high", "stable", "expected"),
    [(None, None, None), (9, None, LogEnd(9, 9)), (9, -1, LogEnd(9, 9)), (9, 4, LogEnd(9, 4)), (9, 11, LogEnd(9, 9))],
)
def test_a_broker_that_does_not_say_what_is_stable_is_believed_to_have_no_transactions(
    high: int | None, stable: int | None, expected: LogEnd | None
) -> None:
    assert log_end(high, stable) == expected
