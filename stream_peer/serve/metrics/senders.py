"""Who sends what: new and frequent experts, ids that look alike, input that is not used."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import UNUSED

LATELY: Milliseconds = 7 * 86_400_000
MOST_EXPERTS = 1_000


class NewExperts(msgspec.Struct, frozen=True):
    """Experts of a feed that it met within the last week: how many, and ids, the newest first."""

    feed: str
    count: int
    experts: list[str]


class BusyExpert(msgspec.Struct, frozen=True):
    """An expert that sends more forecasts of a question than are kept, and how many more."""

    feed: str
    expert: str
    forecasts: int


class LookAlike(msgspec.Struct, frozen=True):
    """A new expert of a feed whose id differs from the one of an earlier expert only in blanks, case or look-alikes."""

    feed: str
    expert: str
    earlier: str


class Senders:
    """Remembers the newest ``MOST_EXPERTS`` new experts and as many look-alikes, and counts as many that send often."""

    def __init__(self) -> None:
        self._met: OrderedDict[tuple[str, str], Milliseconds] = OrderedDict()
        self._busy: Counter[tuple[str, str]] = Counter()
        self._look_alikes: deque[LookAlike] = deque(maxlen=MOST_EXPERTS)

    def meet(self, experts: Iterable[tuple[str, str, Milliseconds]]) -> None:
        """Remember who was met, by feed and expert, and when."""
        for feed, expert, at in experts:
            self._met[feed, expert] = at
            self._met.move_to_end((feed, expert))
            if len(self._met) > MOST_EXPERTS:
                self._met.popitem(last=False)

    def count(self, forecasts: Mapping[tuple[str, str], int]) -> None:
        """Add forecasts beyond those kept, by feed and expert."""
        for key, number in forecasts.items():
            if key in self._busy or len(self._busy) < MOST_EXPERTS:
                self._busy[key] += number

    def compare(self, look_alikes: Iterable[tuple[str, str, str]]) -> None:
        """Remember new experts that look like an earlier one, by feed, expert and the earlier expert."""
        self._look_alikes.extend(LookAlike(*one) for one in look_alikes)

    def look_alikes(self, most: int) -> list[LookAlike]:
        """New experts that look like an earlier one, the newest first."""
        return list(self._look_alikes)[: -most - 1 : -1]

    def new(self, now: Milliseconds, most: int) -> list[NewExperts]:
        """Experts met within the last week, of ``most`` feeds: those with the newest first; ``most`` ids of each."""
        feeds: dict[str, list[str]] = {}
        for (feed, expert), at in reversed(self._met.items()):
            if at > now - LATELY:
                feeds.setdefault(feed, []).append(expert)
        return [NewExperts(feed, len(ids), ids[:most]) for feed, ids in list(feeds.items())[:most]]

    def busiest(self, most: int) -> list[BusyExpert]:
        """The experts with most forecasts beyond those kept."""
        order = sorted(self._busy.items(), key=lambda one: (-one[1], one[0]))
        return [BusyExpert(feed, expert, count) for (feed, expert), count in order[:most]]


MOST_FEEDS = 1_000
MOST_FIELDS = 1_000
MOST_LABELS = 50
OTHER_FIELDS = "(others)"


class UnusedInput(NamedTuple):
    """What became of forecasts of a feed, since the worker started, by kind."""

    feed: str
    counts: Mapping[str, int]


class UnknownField(NamedTuple):
    """A field that events of a feed had and their type has not, and how often since the worker started."""

    feed: str
    field: str
    events: int


class UnknownFields:
    """Counts by feed and field."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._names: set[str] = set()

    def count(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add what a run of records had, by feed and field."""
        for key, number in counts.items():
            if key in self._counts or len(self._counts) < MOST_FIELDS:
                self._counts[key] += number

    def label(self, field: str) -> str:
        """What a field is called in metrics: so many by their names, all others together."""
        if len(self._names) < MOST_LABELS:
            self._names.add(field)
        return field if field in self._names else OTHER_FIELDS

    def largest(self, most: int) -> list[UnknownField]:
        """The most frequent ones."""
        order = sorted(self._counts.items(), key=lambda one: (-one[1], one[0]))
        return [UnknownField(feed, field, count) for (feed, field), count in order[:most]]


class UnusedCounts:
    """Counts by feed and kind."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def count(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add what a run of records caused, by feed and kind."""
        for (feed, kind), number in counts.items():
            if kind in UNUSED and (feed in self._counts or len(self._counts) < MOST_FEEDS):
                self._counts.setdefault(feed, Counter())[kind] += number

    def largest(self, most: int) -> list[UnusedInput]:
        """The feeds with most of it, largest first."""
        feeds = sorted(self._counts, key=lambda feed: (-self._counts[feed].total(), feed))
        return [UnusedInput(feed, dict(self._counts[feed])) for feed in feeds[:most]]
