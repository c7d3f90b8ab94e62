"""A chronicle: many feeds that a service is told chapter by chapter, the same chapter of all of them together."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from stream_peer.events import topics
from tests.integration.support.events import Event, at, question, resolution
from tests.integration.support.lives import DAY, Published, finish, kill, stop
from tests.integration.support.service import Service

CHAPTERS = 12
"""Of a chronicle. One is a day."""

KILLED_IN = 4
"""The worker is killed while it reads this chapter, counted from 0."""

_APART, _OPEN_FOR = 0.2, 0.1
"""Hours between questions of a feed, and how long each is open."""

Gauges = dict[tuple[Any, ...], float]
Chapters = list[list[Event]]


class Asked(NamedTuple):
    """A question: what the experts say, and what becomes of it; None: nobody ever says."""

    forecasts: Mapping[str, float]
    outcome: int | None = None


def told(feed: str, start: float, first: int, asked: Iterable[Asked]) -> Iterator[Event]:
    """Questions one after the other, each with the forecasts of all in one message, numbered from ``first`` on."""
    for place, (forecasts, outcome) in enumerate(asked):
        key, opens = f"{feed}-q{first + place}", start + place * _APART
        yield question(key, feed, opens + _OPEN_FOR, opens_at=at(opens), at=at(opens))
        said = at(opens + _OPEN_FOR / 2)
        yield {"type": "forecasts", "question_id": key, "at": said, "forecasts": dict(forecasts)}
        if outcome is not None:
            yield resolution(key, outcome, opens + 1.5 * _OPEN_FOR)


def cut(feed: str, asked: Sequence[Asked], sizes: Iterable[int]) -> Chapters:
    """A feed's questions as chapters of so many each; behind the last of them nothing happens."""
    chapters: Chapters = [[] for _ in range(CHAPTERS)]
    first = 0
    for number, size in enumerate(sizes):
        chapters[number] = [*told(feed, number * DAY, first, asked[first : first + size])]
        first += size
    return chapters


class Chronicle:
    """What feeds are told.

    Attributes
    ----------
    settings : dict
        Of each feed that has its own.
    chapters : dict
        Of each feed.
    controls : dict
        Control events before a chapter, by its number.
    followers : dict
        By feed, who reads its weights before each chapter, and says what is told in it: takes the number of the
        chapter and the selection weights by expert.
    """

    def __init__(self) -> None:
        self.settings: dict[str, dict[str, Any]] = {}
        self.chapters: dict[str, Chapters] = {}
        self.controls: dict[int, list[Event]] = {}
        self.followers: dict[str, Callable[[int, Mapping[str, float]], Iterable[Event]]] = {}

    def add(self, feed: str, chapters: Chapters, **settings: Any) -> None:
        """A feed with settings of its own."""
        self.chapters[feed], self.settings[feed] = chapters, settings

    def tell(self, service: Service) -> "Told":
        """Tell it all; the worker is killed in the middle, and stopped and started again at the end."""
        for number in range(CHAPTERS):
            service.send(self.controls.get(number, []), topics.CONTROL_EVENTS)
            for feed, follower in self.followers.items():
                weights = service.last(topics.WEIGHTS, feed).get(feed, {"experts": []})
                select = {expert["id"]: expert["select"] for expert in weights["experts"]}
                self.chapters.setdefault(feed, []).append([*follower(number, select)])
            service.send(by_time(chapters[number] for chapters in self.chapters.values()))
            if number == KILLED_IN:
                kill(service)
            finish(service, (number + 1) * DAY)
        service.workers["w1"].wait_ready()
        published, shown = Published(service), gauges_by_feed(service)
        stop(service)
        service.workers["w1"].wait_ready()
        return Told(self, published, shown, gauges_by_feed(service))


class Told(NamedTuple):
    """What a service had published at the end of a chronicle; what it showed then, and after another start."""

    chronicle: Chronicle
    published: Published
    shown: dict[str, Gauges]
    shown_again: dict[str, Gauges]

    def forecasts(self, feed: str) -> dict[str, dict[str, float]]:
        """What was said of each question."""
        events = chain.from_iterable(self.chronicle.chapters[feed])
        return {event["question_id"]: event["forecasts"] for event in events if event["type"] == "forecasts"}

    def weights(self, feed: str) -> list[dict[str, Any]]:
        """All weights of a feed that were published, in order."""
        return [record for _, record in self.published.of(feed)[topics.WEIGHTS]]

    def experts(self, feed: str) -> dict[str, dict[str, Any]]:
        """The experts in the newest weights, by id."""
        return {expert["id"]: expert for expert in self.weights(feed)[-1]["experts"]}


def by_time(events: Iterable[Iterable[Event]]) -> list[Event]:
    """Events of several feeds as a platform sends them."""
    return sorted(chain.from_iterable(events), key=lambda event: str(event["at"]))


def gauges_by_feed(service: Service) -> dict[str, Gauges]:
    """Every sample that a worker shows of a feed, by the feed, but for what it has counted since its start."""
    found: dict[str, Gauges] = defaultdict(dict)
    for sample in service.all_samples():
        if "feed" in sample.labels and not sample.name.endswith("_total"):
            found[sample.labels["feed"]][sample.name, *sorted(sample.labels.items())] = sample.value
    return dict(found)


def strict(value: bytes) -> Any:
    """JSON as its standard has it: without NaN and Infinity."""

    def refuse(constant: str) -> None:
        msg = f"{constant} in {value[:200]!r}"
        raise AssertionError(msg)

    return json.loads(value, parse_constant=refuse)
