"""What dashboards are looked at with: the demo's feed beside others in other states; few experts; very many."""

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from stream_peer.tools.demo.feed import FEED, SETTINGS, FeedEvent, read_events
from tests.integration.support.chronicle import Asked, told
from tests.integration.support.events import START
from tests.integration.support.worlds import World, named, opinions

_BEGIN = (datetime(2025, 3, 3, tzinfo=UTC) - START).total_seconds() / 3600
"""The demo's first question, in hours."""
_APART = 0.36
_QUESTIONS = 900
_PUBLISH = {"history": True, "publish_every": "200ms"}
_MANY = 10_000


class Crowd(NamedTuple):
    """Events as they are sent, and the settings of their feeds."""

    events: Sequence[FeedEvent]
    feeds: Mapping[str, Mapping[str, Any]]


def demo(share: float = 1.0) -> Crowd:
    """The demo's feed, with a shadow; experts who err independently, who guess, and who all believe false news.

    ``share``: how much of it, from the start on.
    """
    skills = np.linspace(0.15, 0.9, 12).tolist()
    worlds = {
        "weather": World(1, skills, _QUESTIONS).asked(resolved=True),
        "coin-tosses": _guesses(),
        "rumours": World(3, [1.5] * 10, _QUESTIONS, misled=0.4).asked(resolved=True),
    }
    shadow = {"name": "unstretched", "stretch": False}
    settings = {**SETTINGS["feeds"][FEED], "shadows": [shadow]}
    others = heapq.merge(*(_timed(feed, asked) for feed, asked in worlds.items()), key=_time)
    events = [event for _, event in heapq.merge(_demo_events(), others, key=_time)]
    return Crowd(events[: int(share * len(events))], {FEED: settings, **dict.fromkeys(worlds, _PUBLISH)})


def nobody() -> Crowd:
    """A feed that nobody forecasts."""
    return Crowd([], {"silence": _PUBLISH})


def few() -> Crowd:
    """Three experts, one of them good: as few as anything can be learnt of."""
    asked = World(4, [0.3, 0.5, 1.2], 400).asked(resolved=True)
    return Crowd([event for _, event in _timed("trio", asked)], {"trio": _PUBLISH})


def many() -> Crowd:
    """Ten thousand experts with long names, each with a say in every question."""
    generator = np.random.default_rng(5)
    names = [f"participant-of-the-public-tournament-{number:05}" for number in range(_MANY)]
    rows = World(6, generator.uniform(0.0, 0.6, _MANY).tolist(), 60).asked(resolved=True)
    asked = [Asked(dict(zip(names, _rounded(one), strict=True)), one.outcome) for one in rows]
    return Crowd([event for _, event in _timed("tournament", asked)], {"tournament": _PUBLISH})


def _guesses() -> list[Asked]:
    """Eight who are right as often as wrong."""
    truth = np.random.default_rng(2).random(_QUESTIONS) < 0.5
    rows = opinions(truth, [0.5] * 8, seed=2)
    return [Asked(named(row), int(outcome)) for row, outcome in zip(rows.tolist(), truth.tolist(), strict=True)]


def _rounded(asked: Asked) -> list[float]:
    """Messages of ten thousand forecasts stay below a megabyte."""
    return [round(probability, 3) for probability in asked.forecasts.values()]


def _timed(feed: str, asked: Iterable[Asked]) -> Iterator[tuple[str, FeedEvent]]:
    """Questions one after the other, at the demo's pace, each event with its time."""
    for place, one in enumerate(asked):
        for event in told(feed, _BEGIN + place * _APART, place, [one]):
            yield str(event["at"]), FeedEvent(event["question_id"].encode(), json.dumps(event).encode())


def _demo_events() -> Iterator[tuple[str, FeedEvent]]:
    """The demo's events, those without a readable time at that of the one before."""
    time = ""
    for event in read_events():
        try:
            said = json.loads(event.value)
            time = max(time, str(said.get("at") or said.get("opens_at") or ""))
        except ValueError:
            pass
        yield time, event


def _time(timed: tuple[str, FeedEvent]) -> str:
    return timed[0]
