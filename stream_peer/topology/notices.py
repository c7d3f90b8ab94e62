"""What stages warn of, in the log: the first of a kind in full, the rest as a number."""

from collections.abc import Callable, Iterable

import structlog

from stream_peer.engine.stage import Warned
from stream_peer.topology.watchdog import now

log = structlog.get_logger(__name__)

MOST = 100
"""Warnings of one code that are logged within ``WITHIN_SECONDS``."""

WITHIN_SECONDS = 60.0


class _Minute:
    def __init__(self, since: float) -> None:
        self.since = since
        self.told = self.left_out = 0


class Notices:
    """Logs warnings, of each code at most ``MOST`` a minute; how many more there were is said once it is over."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._minutes: dict[str, _Minute] = {}

    def note(self, warnings: Iterable[Warned]) -> None:
        """Log them, or count them."""
        for code, feed, question_id, message in warnings:
            if self._may_tell(code):
                log.warning("question_noted", code=code, feed=feed, question=question_id, message=message)

    def _may_tell(self, code: str) -> bool:
        self.close()
        minute = self._minutes.setdefault(code, _Minute(self._clock()))
        if minute.told < MOST:
            minute.told += 1
            return True
        minute.left_out += 1
        return False

    def close(self, *, all_of_them: bool = False) -> None:
        """Say what was left out of the minutes that are over; at the end, of all."""
        at = self._clock()
        for code, minute in list(self._minutes.items()):
            if all_of_them or at - minute.since >= WITHIN_SECONDS:
                del self._minutes[code]
                if minute.left_out:
                    log.warning("warnings_left_out", code=code, count=minute.left_out, seconds=WITHIN_SECONDS)
