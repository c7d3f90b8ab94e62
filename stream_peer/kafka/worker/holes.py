"""Offsets of an input that no record was read for: markers and compaction leave them, and so does retention."""

import asyncio
from typing import Any, NamedTuple

import structlog

from stream_peer.kafka.worker.surroundings import Source
from stream_peer.log.observer import Observer

log = structlog.get_logger(__name__)


class Hole(NamedTuple):
    """Offsets that no record was read for: from ``want`` up to ``first``, not included."""

    want: int
    first: int


def report_lost(tp: Any, offset: int, records: int, observer: Observer) -> None:
    """Say that so many records from ``offset`` on were gone before they were read."""
    log.error("input_lost", topic=tp.topic, partition=tp.partition, offset=offset, records=records)
    observer.input_lost(tp.topic, tp.partition, records)


class Holes:
    """Finds out in the background what holes are: the broker's answer waits for fetches under way."""

    def __init__(self, tp: Any, source: Source, observer: Observer) -> None:
        self._tp = tp
        self._source = source
        self._observer = observer
        self._holes: list[Hole] = []
        self._lost = 0
        self._task: asyncio.Task[None] | None = None

    def explain(self, hole: Hole) -> None:
        """Find out whether records were lost."""
        self._holes.append(hole)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._report())

    def stop(self) -> None:
        """Nobody wants to know any more."""
        if self._task is not None:
            self._task.cancel()

    def take_lost(self) -> int:
        """Records found to be lost since the last call."""
        lost, self._lost = self._lost, 0
        return lost

    async def _report(self) -> None:
        """Holes are markers of transactions or compaction, unless the log begins behind them."""
        while self._holes:
            holes, self._holes = self._holes, []
            begin = await self._source.log_start(self._tp)
            for want, first in holes:
                lost = min(begin, first) - want
                if lost > 0:
                    report_lost(self._tp, want, lost, self._observer)
                    self._lost += lost
