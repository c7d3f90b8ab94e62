"""Where the log of a partition ends: for a reader of committed records, and for a check that it became no shorter."""

from typing import NamedTuple


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
