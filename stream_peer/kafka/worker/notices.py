"""What stages warn of, in the log: the first of a kind in full, the rest as a number."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import structlog

from stream_peer.log.stage import UNUSED, Warned

log = structlog.get_logger(__name__)

MOST = 100
"""Warnings of one code that are logged within ``WITHIN_SECONDS``."""

WITHIN_SECONDS = 60.0

UNUSED_EVERY_SECONDS = 3600.0
"""Of the forecasts of a feed that are not used the log has a line at first, and then one in so long."""

MOST_FEEDS = 1_000
MOST_FIELDS = 1_000
MOST_EXPERTS = 1_000
_OTHER_FEEDS = "(others)"
_TOLD = frozenset((*UNUSED, "dated-anew"))


class _Minute:
    def __init__(self, since: float) -> None:
        self.since = since
        self.told = self.left_out = 0


class _Hour:
    def __init__(self, since: float) -> None:
        self.since = since
        self.counts: Counter[str] = Counter()


class Notices:
    """Logs warnings, of each code at most ``MOST`` a minute; how many more there were is said once it is over.

    Parameters
    ----------
    clock : callable
    shows_refused : str
        The command that shows refused events.
    """

    def __init__(self, clock: Callable[[], float], shows_refused: str = "") -> None:
        self._clock, self._shows_refused = clock, shows_refused
        self._refused, self._refused_told = Counter[str](), float("-inf")
        self._minutes: dict[str, _Minute] = {}
        self._hours: dict[str, _Hour] = {}
        self._unknown: set[tuple[str, str]] = set()
        self._busy: set[tuple[str, str]] = set()

    def note(self, warnings: Iterable[Warned]) -> None:
        """Log them, or count them."""
        for code, feed, question_id, message in warnings:
            if self._may_tell(code):
                log.warning("question_noted", code=code, feed=feed, question=question_id, message=message)

    def note_refused(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Log how many events were refused, and why: the first at once, then a line a minute."""
        refused = {detail: number for (kind, detail), number in counts.items() if kind == "dead-letter"}
        if refused:
            self._refused.update(refused)
            self._tell_refused(at_once=False)

    def _tell_refused(self, *, at_once: bool) -> None:
        at = self._clock()
        if self._refused and (at_once or at - self._refused_told >= WITHIN_SECONDS):
            reasons = dict(self._refused.most_common())
            log.warning("events_refused", count=self._refused.total(), reasons=reasons, shown_by=self._shows_refused)
            self._refused.clear()
            self._refused_told = at

    def note_unused(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Log what became of forecasts that are not used as stated, by feed and kind: a line a feed and hour."""
        told = {key: number for key, number in counts.items() if key[1] in _TOLD}
        for name in dict.fromkeys(feed for feed, _ in told):
            feed = name if name in self._hours or len(self._hours) < MOST_FEEDS else _OTHER_FEEDS
            is_first = feed not in self._hours
            hour = self._hours.setdefault(feed, _Hour(self._clock()))
            hour.counts.update({kind: number for (of, kind), number in told.items() if of == name})
            if is_first:
                self._tell_unused(feed, hour)

    def note_unknown(self, fields: Iterable[tuple[str, str]]) -> None:
        """Log fields of events that their type does not have, by feed and field: each once."""
        for feed, field in fields:
            if (feed, field) not in self._unknown and len(self._unknown) < MOST_FIELDS:
                self._unknown.add((feed, field))
                log.warning("unknown_field", feed=feed, field=field)

    def note_busy(self, experts: Iterable[tuple[str, str]]) -> None:
        """Log experts that send more forecasts of a question than are kept, by feed and expert: each once."""
        for feed, expert in experts:
            if (feed, expert) not in self._busy and len(self._busy) < MOST_EXPERTS:
                self._busy.add((feed, expert))
                log.warning("expert_sends_often", feed=feed, expert=expert)

    def _tell_unused(self, feed: str, hour: _Hour) -> None:
        counts = {kind.replace("-", "_"): number for kind, number in sorted(hour.counts.items())}
        log.warning("forecasts_not_used", feed=feed, **counts)
        hour.counts.clear()

    def _close_hours(self, *, all_of_them: bool) -> None:
        at = self._clock()
        for feed, hour in list(self._hours.items()):
            if all_of_them or at - hour.since >= UNUSED_EVERY_SECONDS:
                if hour.counts:
                    self._tell_unused(feed, hour)
                    hour.since = at
                else:
                    del self._hours[feed]

    def _may_tell(self, code: str) -> bool:
        self._close_minutes(all_of_them=False)
        minute = self._minutes.setdefault(code, _Minute(self._clock()))
        if minute.told < MOST:
            minute.told += 1
            return True
        minute.left_out += 1
        return False

    def close(self, *, all_of_them: bool = False) -> None:
        """Say what was left out of the minutes that are over; at the end, of all."""
        self._tell_refused(at_once=all_of_them)
        self._close_hours(all_of_them=all_of_them)
        self._close_minutes(all_of_them=all_of_them)

    def _close_minutes(self, *, all_of_them: bool) -> None:
        at = self._clock()
        for code, minute in list(self._minutes.items()):
            if all_of_them or at - minute.since >= WITHIN_SECONDS:
                del self._minutes[code]
                if minute.left_out:
                    log.warning("warnings_left_out", code=code, count=minute.left_out, seconds=WITHIN_SECONDS)
