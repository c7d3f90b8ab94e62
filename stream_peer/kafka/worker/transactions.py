"""Partitions that have read all there is before a transaction that is still open: they wait, and do not stand still.

A producer may keep its transaction open as long as its brokers allow (``transaction.max.timeout.ms``). Until it ends,
nothing behind its first record can be read, whoever sent it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from stream_peer.kafka.client.log_ends import LogEnd
from stream_peer.kafka.worker.watchdog import now

log = structlog.get_logger(__name__)

TOLD_AFTER_SECONDS = 5.0
"""Ordinary transactions are shorter, and no line of the log."""


class _Wait(NamedTuple):
    stable: int
    since: float
    is_told: bool = False


class OpenTransactions:
    """Since when partitions wait, and a line of the log at the beginning and the end of a wait."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._waits: dict[Any, _Wait] = {}

    def look(self, tp: Any, end: LogEnd | None, *, has_read: bool) -> float | None:
        """How many seconds a partition has waited for the same transaction; None: it does not wait.

        Parameters
        ----------
        tp : TP
        end : LogEnd or None
            As the last fetch said.
        has_read : bool
            Whether it has read up to the last stable offset.
        """
        known = self._waits.get(tp)
        if end is None or not (has_read and end.holds_open_transaction):
            self._end(tp, known)
            return None
        if known is None or known.stable != end.stable:  # another transaction
            self._end(tp, known)
            known = _Wait(end.stable, self._clock())
        seconds = self._clock() - known.since
        if seconds >= TOLD_AFTER_SECONDS and not known.is_told:
            behind = end.high - end.stable
            log.warning(
                "waiting_for_transaction", topic=tp.topic, partition=tp.partition, offset=end.stable, behind=behind
            )
            known = known._replace(is_told=True)
        self._waits[tp] = known
        return seconds

    def retain(self, places: set[Any]) -> None:
        """Forget all other partitions: they are not this worker's any more."""
        self._waits = {tp: wait for tp, wait in self._waits.items() if tp in places}

    def _end(self, tp: Any, known: _Wait | None) -> None:
        self._waits.pop(tp, None)
        if known is not None and known.is_told:
            seconds = round(self._clock() - known.since, 1)
            log.info("transaction_ended", topic=tp.topic, partition=tp.partition, offset=known.stable, seconds=seconds)
