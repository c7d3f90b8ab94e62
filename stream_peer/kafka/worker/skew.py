"""How far our clock is ahead of the brokers', who stamp ``forecast-events`` with the time at which they append.

A record that follows on the end of a log which was read up to there was appended since: it is young when it comes. How
much older it looks is our clock, and the way here. Ways differ, and the clock does not; so the least of many counts.
"""

import time
from collections.abc import Callable
from typing import Any

from stream_peer.kafka.client.log_ends import LogEnd
from stream_peer.kafka.worker.partition import OwnedPartition

_SPAN_SECONDS = 60.0
_SPANS = 5


class ClockSkew:
    """Looks at what came to partitions. ``clock``: seconds that go on steadily."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[Any, int] = {}
        self._least: dict[int, float] = {}

    def look(self, partition: OwnedPartition, end: LogEnd | None) -> None:
        """Look at what came since the last time; ``end`` is the log's as the client knows it.

        What comes out of an open transaction was appended long before it could be read, and tells nothing.
        """
        heard, read = partition.take_heard(), self._ends.pop(partition.tp, None)
        if heard is not None and heard.offset == read:
            span = int(self._clock() // _SPAN_SECONDS)
            self._least[span] = min(self._least.get(span, heard.age), heard.age)
        if end is not None and partition.want == end.high == end.stable:
            self._ends[partition.tp] = partition.want

    @property
    def seconds(self) -> float | None:
        """How far our clock was ahead lately, below 0 behind; None: nothing came that could tell."""
        oldest = int(self._clock() // _SPAN_SECONDS) - _SPANS
        self._least = {span: age for span, age in self._least.items() if span > oldest}
        return min(self._least.values(), default=None)
