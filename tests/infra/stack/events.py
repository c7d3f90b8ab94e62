"""What is sent: the demo's feed and a calm one, a clone attack on the former, and what nobody understands."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from stream_peer.tools.demo.feed import FEED, SETTINGS, FeedEvent, read_events
from tests.integration.support.chronicle import told
from tests.integration.support.worlds import World

TEAMS = {
    "like-07": ("weak-07", "copy-of-weak-07", "weak-23", "weak-35"),
    "like-19": ("weak-19", "copy-of-weak-19", "weak-16"),
    "like-33": ("weak-33", "weak-36"),
}
"""Experts that say the same, in teams as the runbook advises, so that they raise no alarm: the demo's copies with
their originals, the classifiers that the test for blocks names with them, and two so alike that it hangs on the order
in which their events come whether they are found."""

VICTIM = "weak-08"
"""An expert who is there on every question."""

LATER = timedelta(days=30)
"""When the demo's questions are asked again, under other names."""


CALM = "weather"
"""A feed of independent experts, which has a certificate, and a shadow."""

FEEDS: dict[str, Any] = {
    **SETTINGS["feeds"],
    CALM: {"history": True, "publish_every": "200ms", "shadows": [{"name": "unstretched", "stretch": False}]},
}
_CALM_FROM = 75 * 24.0  # hours: when the demo's last question is resolved, as a partition has one clock
_CALM_QUESTIONS, _CALM_EXPERTS = 600, 12


def quiet_events() -> list[FeedEvent]:
    """The demo's events, then those of the calm feed: nothing of them wakes anybody."""
    skills = np.linspace(0.15, 0.9, _CALM_EXPERTS).tolist()
    asked = World(1, skills, _CALM_QUESTIONS).asked(resolved=True)
    return [*read_events(), *(_event(event) for event in told(CALM, _CALM_FROM, 0, asked))]


def team_controls() -> list[dict[str, Any]]:
    """What puts those into teams, for control-events."""
    control = {"type": "expert", "feed": FEED, "at": "2025-03-01T00:00:00Z"}
    return [{**control, "expert_id": expert, "team": team} for team, experts in TEAMS.items() for expert in experts]


def clone_attack(events: Sequence[FeedEvent], questions: int, clones: int) -> Iterator[FeedEvent]:
    """The first questions of the demo, asked again later; clones say what one of the experts says, when it says it."""
    asked: set[str] = set()
    for event in events:
        try:
            said = msgspec.json.decode(event.value)
        except msgspec.DecodeError:  # malformed ones have been refused already
            continue
        if said.get("feed") == FEED and len(asked) < questions:
            asked.add(said["question_id"])
        if said["question_id"] in asked and said["type"] != "resolution":
            again = _again(said)
            yield _event(again)
            if again.get("expert_id") == VICTIM:
                yield from (_event({**again, "expert_id": f"clone-{number}"}) for number in range(clones))


def poison(count: int) -> list[FeedEvent]:
    """Messages that no worker understands, as a producer sends them that takes probabilities for percentages."""
    said = {"type": "forecast", "expert_id": "percent", "probability": 87, "at": "2025-04-01T00:00:00Z"}
    return [_event({**said, "question_id": f"poison-{number}"}) for number in range(count)]


def _again(said: dict[str, Any]) -> dict[str, Any]:
    later: dict[str, Any] = {name: _later(said[name]) for name in ("at", "opens_at", "closes_at") if name in said}
    return {**said, **later, "question_id": f"again-{said['question_id']}"}


def _later(moment: str) -> str:
    return (datetime.fromisoformat(moment) + LATER).strftime("%Y-%m-%dT%H:%M:%SZ")


def _event(said: Mapping[str, Any]) -> FeedEvent:
    return FeedEvent(said["question_id"].encode(), msgspec.json.encode(said))
