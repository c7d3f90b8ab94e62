"""Where the log of a partition ends: for a reader of committed records, and for a check that it became no shorter."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka.consumer.fetcher import READ_UNCOMMITTED


class LogEnd(NamedTuple):
    """Two ends of one log, each an offset that is not included.

    Attributes
    ----------
    high : int
        The high watermark: behind the last record, whatever becomes of its transaction. It tells whether a log became
        shorter.
    stable : int
        The last stable offset: before it every transaction has ended. A reader of committed records gets no further,
        so lag and progress are measured up to it.
    """

    high: int
    stable: int

    @property
    def holds_open_transaction(self) -> bool:
        """Whether records lie behind a transaction that has not ended."""
        return self.stable < self.high


def log_end(high: int | None, stable: int | None) -> LogEnd | None:
    """What a fetch said of a log; None: nothing was fetched yet. ``stable`` None or < 0: the broker does not say."""
    if high is None:
        return None
    return LogEnd(high, high if stable is None or stable < 0 else min(high, stable))


async def high_watermarks(consumer: Any, places: Sequence[Any]) -> Mapping[Any, int]:
    """Where logs end, whether committed or not.

    ``end_offsets`` of a consumer that reads committed records gives last stable offsets. The isolation is an attribute
    of its fetcher; a copy asks over the same connections.
    """
    fetcher = copy.copy(consumer._fetcher)  # noqa: SLF001 - aiokafka has no other way
    fetcher._isolation_level = READ_UNCOMMITTED  # noqa: SLF001
    return dict(await fetcher.end_offsets(places, None))
