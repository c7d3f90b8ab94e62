"""Audits: once an hour a partition's state is compared with what it follows from, a little at a time."""

from collections.abc import Callable, Iterator
from typing import Any

from stream_peer.log.stage import PublishingStage

EVERY_SECONDS = 3600.0

PAUSE_SECONDS = 0.03
"""Between two slices while nothing else is to be done: a third of the time at most goes into an audit."""

_SLICE_SECONDS = 0.01
_GOLDEN_RATIO = 0.6180339887  # its multiples, modulo 1, lie far apart: no two partitions are audited at a time


def advance(pieces: Iterator[None], seconds: float, clock: Callable[[], float]) -> tuple[int, bool]:
    """Do pieces of work for a bounded time; (how many those were, whether there may be more)."""
    until, done = clock() + seconds, 0
    for _ in pieces:
        done += 1
        if clock() > until:
            return done, True
    return done, False


class Audits:
    """When a partition is audited, and how far that is.

    The first audit comes within an hour of the start; recovery itself computes sums from the ledger.
    """

    def __init__(self, partition: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due = clock() + EVERY_SECONDS * (1.0 + (partition * _GOLDEN_RATIO) % 1.0) / 2.0
        self._pieces: Iterator[None] | None = None
        self._compared = 0

    @property
    def under_way(self) -> bool:
        """Whether an audit has begun and not ended."""
        return self._pieces is not None

    def work(self, stage: PublishingStage[Any]) -> bool | None:
        """Go on with the audit that is due, for a bounded time; if that ends it, say whether everything agrees.

        None: nothing is due, it goes on, or there is nothing to compare.
        """
        if self._pieces is None:
            if self._clock() < self._due:
                return None
            self._due = self._clock() + EVERY_SECONDS
            self._pieces, self._compared = stage.audit(), 0
        compared, goes_on = advance(self._pieces, _SLICE_SECONDS, self._clock)
        self._compared += compared
        if goes_on:
            return None
        self._pieces = None
        return not stage.needs_rebuild if self._compared or stage.needs_rebuild else None

    def give_up(self) -> None:
        """The state is another now."""
        self._pieces = None
