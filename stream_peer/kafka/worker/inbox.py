"""Batches of one partition that wait to be folded: checked for order, bounded, and held up for nobody else's sake."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stream_peer.events.times import Milliseconds
from stream_peer.kafka.worker.holes import Hole
from stream_peer.kafka.worker.surroundings import Source
from stream_peer.log.stage import Record

ROOM = 20_000
"""Records that are gathered at most while a batch waits for acknowledgement."""


class Portion(NamedTuple):
    """Records of one message that are still to be folded. ``event`` is acknowledged when all were."""

    event: Any
    records: Sequence[Record]


class Heard(NamedTuple):
    """A record that was read, and how old it looked when it came, in seconds of our clock."""

    offset: int
    age: float


class Inbox:
    """What was read and not folded.

    While its partition does something that takes long, batches for which there is no room are let go of, and read again
    afterwards: whoever hands them over serves other partitions too.

    Parameters
    ----------
    tp : TP
        Whose records.
    want : int
        The offset that comes next.
    explain : callable
        Is given the holes that are proven to hold no record that could still be read.
    """

    def __init__(self, tp: Any, want: int, source: Source, explain: Callable[[Hole], None]) -> None:
        self.want = want
        self.filled = asyncio.Event()
        self._tp = tp
        self._source = source
        self._explain = explain
        self._portions: deque[Portion] = deque()
        self._size = 0
        self._room = asyncio.Event()
        self._passed = self._stopped = False
        self.lengthy = False
        self._heard: Heard | None = None

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._portions)

    @property
    def oldest(self) -> Milliseconds | None:
        """The time of the record that is taken next; None: nothing waits."""
        return self._portions[0].records[0].timestamp if self._portions else None

    def take_heard(self) -> Heard | None:
        """The first record that came since the last call; None: nothing came."""
        heard, self._heard = self._heard, None
        return heard

    async def put(self, event: Any) -> None:
        """Check the order of a batch and gather it; wait while there is no room, but not for what takes long."""
        records = None if self._must_pass() else self._in_order(event)
        if records is None:
            self._source.forget(event.message)
            return
        self._source.accept(event.message)
        if self._heard is None:
            self._heard = Heard(records[0].offset, time.time() - records[0].timestamp / 1000)
        self.want = records[-1].offset + 1
        self._portions.append(Portion(event, records))
        self._size += len(records)
        self.filled.set()
        while self._size > ROOM and not (self.lengthy or self._stopped):
            self._room.clear()
            await self._room.wait()

    def _in_order(self, event: Any) -> Sequence[Record] | None:
        """Those of the records that are wanted; None: they were read before, or others are missing before them."""
        records: Sequence[Record] = event.value
        first, want = records[0].offset, self.want
        if records[-1].offset < want:
            return None
        if first < want:
            return [record for record in records if record.offset >= want]
        if first > want:
            if not self._source.admits(self._tp, want, first):
                return None
            self._explain(Hole(want, first))
        return records

    def _must_pass(self) -> bool:
        full = self.lengthy and self._size > ROOM
        self._passed = self._passed or full
        return full or self._stopped

    def take(self) -> Portion:
        """The portion that comes next."""
        return self._portions.popleft()

    def put_back(self, portion: Portion) -> None:
        """What of it was not folded."""
        self._portions.appendleft(portion)

    def folded(self, records: int) -> None:
        """So many records of it need no room any more."""
        self._size -= records
        self._room.set()

    def leave(self, reached: int) -> None:
        """Let go of everything: ``reached`` is wanted next, by whoever it is."""
        for portion in self._portions:
            self._source.forget(portion.event.message)
        self._portions.clear()
        self._size = 0
        self.want = reached
        self._room.set()

    def stop(self) -> None:
        """Take nothing more, and keep nobody waiting."""
        self._stopped = True
        self._room.set()

    @contextlib.contextmanager
    def taking_long(self) -> Iterator[None]:
        """Work during which nobody is kept waiting for room."""
        self.lengthy = True
        self._room.set()
        try:
            yield
        finally:
            self.lengthy = False
        if self._passed:
            self._passed = False
            self._source.read_again(self._tp, self.want)
