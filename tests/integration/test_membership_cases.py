"""Experts who are excluded, form teams, ask to be forgotten; a worker ends halfway, on real Kafka."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from tests.integration.support.events import Event, at, forecast, question, resolution
from tests.integration.support.lives import (
    DAY,
    Published,
    finish,
    gauges,
    kill,
    last_values,
    panel,
    replayed,
    stop,
    without,
)
from tests.integration.support.service import Service

pytestmark = pytest.mark.real_kafka

SHUNNED = "shunned-4711"
FORGOTTEN = "forgotten-4712"
OLD, NEW = "named-4713", "named-4714"
"""Ids that nothing else contains."""


class Story:
    """Events of a feed, told to a service and remembered for a replay of the same file."""

    def __init__(self, service: Service, feed: str) -> None:
        self.service = service
        self.feed = feed
        self.events: list[Event] = []

    def crowds(self, start: float, numbers: range, *, besides: str | None = SHUNNED) -> None:
        """Questions of one day, with an expert besides seven others."""
        for number in numbers:
            key = f"{self.feed}-q{number}"
            self._tell([question(key, self.feed, start + DAY, opens_at=at(start), at=at(start))])
            self._tell([event for event in panel(number, key, range(8), start) if event["expert_id"] != "e7"])
            if besides is not None:
                self._tell([forecast(key, besides, 0.11 + number % 5 / 100, start + 1)])

    def resolve(self, hours: float, told: Mapping[int, object]) -> None:
        """Outcomes by the questions' numbers."""
        self._tell([resolution(f"{self.feed}-q{number}", outcome, hours) for number, outcome in told.items()])

    def control(self, expert: str, hours: float, **fields: Any) -> None:
        """Tell what an expert is from here on."""
        event = {"type": "expert", "feed": self.feed, "expert_id": expert, "at": at(hours), **fields}
        self.events.append(event)
        self.service.send([event], topics.CONTROL_EVENTS)
        self.service.settle()

    def until(self, hours: float) -> None:
        """Time passes: in the file by an event of another feed."""
        self.events.append(question("clock", "clock", hours, opens_at=at(hours), at=at(hours)))
        finish(self.service, hours)

    def _tell(self, events: list[Event]) -> None:
        self.events += events
        self.service.send(events)


def is_named(service: Service, feed: str) -> bool:
    """Whether any series of a feed's names the one who is to be shunned."""
    return any(SHUNNED in str(labels) for _, *labels in gauges(service, feed))


def explained(service: Service, feed: str, expert: str, since: int) -> dict[str, Any] | None:
    """Why a weight moved from a revision on; None: there is nothing to explain."""
    done = service.command("explain", feed, expert, "--from", str(since), "--json")
    assert done.returncode == 0 or "it is excluded" in done.stderr, done.stderr
    return None if done.returncode else dict(json.loads(done.stdout))


def check_explanations(service: Service, feed: str, excluded_at: int) -> None:
    """Who is excluded is explained up to there, and named in nobody's explanation from there on."""
    told = explained(service, feed, SHUNNED, excluded_at - 1)
    assert told is not None
    assert (told["since"]["listed"], told["until"]["listed"], told["until"]["weight"]) == (True, False, 0.0)
    assert explained(service, feed, SHUNNED, excluded_at) is None
    other = explained(service, feed, "e0", excluded_at)
    assert other is not None
    assert other["until"]["experts"] == 7
    assert SHUNNED not in json.dumps(other)


def check_shares(weights: Mapping[str, Any]) -> set[str]:
    """Shares of a feed sum to 1; who has one."""
    for kind in ("mix", "select"):
        assert math.fsum(expert[kind] for expert in weights["experts"]) == pytest.approx(1.0, abs=1e-9)
    return {expert["id"] for expert in weights["experts"]}


def as_if_absent(events: list[Event], hours: float) -> list[Event]:
    """The same history without controls, and without what the one who is to be shunned said from an hour on."""
    return [
        event
        for event in events
        if event["type"] != "expert" and not (event.get("expert_id") == SHUNNED and event["at"] >= at(hours))
    ]


def check_absence(published: Published, feed: str, absent: Mapping[str, Any]) -> None:
    """From question 12 on everything is as if the one who is shunned were not there; its weights are not told."""
    ours = published.order_free(feed)
    for topic in topics.KEYED_BY_QUESTION:
        assert ours[topic] == absent[topic]
        later = [record for key, record in published.last(feed)[topic].items() if int(key.rpartition("q")[2]) >= 12]
        assert SHUNNED not in json.dumps(later)
    assert ours[topics.ERROR_RATES] == absent[topics.ERROR_RATES]
    others = [without(one, "mix") for one in absent[topics.WEIGHTS][""]["experts"] if one["id"] != SHUNNED]
    assert [without(one, "mix") for one in ours[topics.WEIGHTS][""]["experts"]] == others
    check_shares(published.weights(feed))


@pytest.mark.case("C22")
@pytest.mark.parametrize("preset", ["robust", "paper"])
def test_an_excluded_expert_is_gone_everywhere_at_once_and_is_restored_as_it_was(
    lived: Service, start: float, preset: str
) -> None:
    feed = f"c22{preset}"
    story = Story(lived, feed)
    story.crowds(start, range(12))
    story.until(start + 2 * DAY)
    assert SHUNNED in check_shares(lived.weights(feed))
    assert is_named(lived, feed)

    story.control(SHUNNED, start + 2 * DAY, excluded=True)
    assert SHUNNED not in check_shares(lived.weights(feed))
    assert not is_named(lived, feed)
    excluded_at = lived.weights(feed)["revision"]
    kill(lived)
    lived.workers["w1"].wait_ready()
    assert not is_named(lived, feed)

    story.crowds(start + 3 * DAY, range(12, 20))
    story.until(start + 5 * DAY)
    published = Published(lived)
    absent = replayed(as_if_absent(story.events, start + 3 * DAY), feed, preset=preset)
    check_absence(published, feed, absent)
    assert published.order_free(feed) == replayed(story.events, feed, preset=preset)
    check_explanations(lived, feed, excluded_at)

    excluded = story.events
    stop(lived)
    story.control(SHUNNED, start + 5 * DAY, excluded=False)
    story.events, excluded = [], as_if_absent(excluded, start + 3 * DAY)
    story.crowds(start + 6 * DAY, range(20, 24))
    story.until(start + 8 * DAY)
    published = Published(lived)
    assert published.order_free(feed) == replayed([*excluded, *story.events], feed, preset=preset)
    assert SHUNNED in check_shares(published.weights(feed))
    assert is_named(lived, feed)
    again = explained(lived, feed, SHUNNED, excluded_at)
    assert again is not None
    assert again["until"]["listed"]
    assert not published.contradictions(feed)


OF_A_TEAM = {"e0": 0.9, "e1": 0.93, "e2": 0.8, "e3": 0.1, "e4": 0.31}
"""Who leaves out e0 alone hears a tie that leans to yes; who leaves out e1 as well, a no."""


def divided(feed: str, number: int, start: float) -> Iterator[Event]:
    key = f"{feed}-q{number}"
    yield question(key, feed, start + DAY, opens_at=at(start), at=at(start))
    yield from (forecast(key, expert, said, start + 1) for expert, said in OF_A_TEAM.items())


@pytest.mark.case("C22")
def test_a_team_is_scored_against_those_outside_it_from_its_place_on(lived: Service, start: float) -> None:
    feed = "c22team"
    answers: list[dict[str, int]] = []
    story = Story(lived, feed)
    for number, team in enumerate((None, "t", "t", None)):
        begin = start + 3 * DAY * number
        if number == 1:
            story.control("e0", begin, team=team)
            story.control("e1", begin, team=team)
        elif number == 2:
            kill(lived)
        elif number == 3:
            story.control("e0", begin, team=None)
        events = list(divided(feed, number, begin))
        story.events += events
        lived.send(events)
        story.until(begin + 2 * DAY)
        losses = lived.last(topics.PEER_LOSSES, feed)[f"{feed}-q{number}"]
        answers.append({expert["id"]: expert["reference_answer"] for expert in losses["experts"]})

    alone = {"e0": 1, "e1": 1, "e2": 1, "e3": 1, "e4": 1}
    assert answers == [alone, {**alone, "e0": 0, "e1": 0}, {**alone, "e0": 0, "e1": 0}, alone]
    assert Published(lived).order_free(feed) == replayed(story.events, feed)


@pytest.mark.case("C22")
def test_of_a_forgotten_expert_nothing_is_left_and_its_id_is_refused(lived: Service, start: float) -> None:
    feed, never = "c22forget", "c22never"
    story, other = Story(lived, feed), Story(lived, never)
    for one in (story, other):
        one.crowds(start, range(10), besides=FORGOTTEN if one is story else None)
        one.resolve(start + 1.5 * DAY, {0: 1, 1: 0, 2: 1})
        one.until(start + 2 * DAY)
    before = Published(lived)
    assert FORGOTTEN in check_shares(before.weights(feed))

    story.control(FORGOTTEN, start + 2 * DAY, forget=True)
    kill(lived)
    lived.settle()
    refused = len(forgotten(lived))
    lived.workers["w1"].wait_ready()
    lived.send([forecast(f"{feed}-q10", FORGOTTEN, 0.5, start + 3 * DAY, feed=feed)])
    for one in (story, other):
        several = {"e0": 0.2, "e1": 0.7, "e2": 0.6} | ({FORGOTTEN: 0.4} if one is story else {})
        key = f"{one.feed}-q11"
        lived.send([question(key, one.feed, start + 4 * DAY, opens_at=at(start + 3 * DAY), at=at(start + 3 * DAY))])
        lived.send([{"type": "forecasts", "question_id": key, "at": at(start + 3 * DAY), "forecasts": several}])
        one.resolve(start + 4.5 * DAY, {3: 0, 4: 1})
    finish(lived, start + 5 * DAY)
    stop(lived)
    lived.settle()

    published = Published(lived)
    assert published.order_free(feed) == published.order_free(never)
    assert not published.contradictions(feed)
    check_shares(published.weights(feed))
    letters = forgotten(lived)[refused:]
    assert len(letters) == 2
    assert all(message.key is None and not message.value for message in letters)
    lived.workers["w1"].wait_ready()
    found = [place for place, content in remains(lived, feed).items() if FORGOTTEN.encode() in content]
    assert not found


def rename(story: Story, expert: str, name: str, hours: float) -> None:
    """Rename an expert by the command, which must not refuse."""
    told = story.service.run("expert", story.feed, expert, "--rename", name)
    assert f"{expert} in feed {story.feed}: renamed {name}" in told
    renaming = {"type": "expert", "feed": story.feed, "expert_id": expert, "at": at(hours), "rename": name}
    story.events.append(renaming)
    story.service.settle()


def rows(weights: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What weights say of each expert."""
    return {expert["id"]: without(expert, "id") for expert in weights["experts"]}


@pytest.mark.case("C22")
def test_a_renamed_expert_goes_on_under_its_new_id_until_it_is_erased_by_it(lived: Service, start: float) -> None:
    feed = "c22rename"
    story = Story(lived, feed)
    story.crowds(start, range(12), besides=OLD)
    story.resolve(start + 1.5 * DAY, {0: 1, 1: 0, 2: 1})
    story.until(start + 2 * DAY)
    before = rows(lived.weights(feed))

    rename(story, OLD, NEW, start + 2 * DAY)
    after = rows(lived.weights(feed))
    refused = [lived.command("expert", feed, *of) for of in (("e1", "--rename", NEW), ("e1", "--rename", OLD))]
    assert [(done.returncode, "two experts cannot be made one" in done.stderr) for done in refused] == [(2, True)] * 2
    assert {**after, OLD: after[NEW]} == {**before, NEW: before[OLD]}
    check_shares(lived.weights(feed))

    kill(lived)
    story.crowds(start + 3 * DAY, range(12, 16), besides=OLD)
    story.crowds(start + 3 * DAY, range(16, 20), besides=NEW)
    story.control("e6", start + 4 * DAY, forget=True)
    story.until(start + 5 * DAY)
    published = Published(lived)
    never = [event for event in story.events if "rename" not in event]
    twin = json.loads(json.dumps(never).replace(NEW, OLD))
    expected = json.loads(json.dumps(replayed(twin, feed)).replace(OLD, NEW))
    assert published.order_free(feed)[topics.WEIGHTS] == expected[topics.WEIGHTS]
    assert published.order_free(feed) == replayed(story.events, feed)
    assert check_shares(published.weights(feed)) == {*(f"e{number}" for number in range(6)), NEW}

    lived.run("expert", feed, NEW, "--forget", "--yes")
    lived.settle()
    both_are_erased(story, start)


def both_are_erased(story: Story, start: float) -> None:
    """Neither id of the renamed expert is taken again, and nothing is left of it."""
    lived, feed = story.service, story.feed
    letters = len(forgotten(lived))
    lived.send([forecast(f"{feed}-q20", name, 0.5, start + 6 * DAY, feed=feed) for name in (OLD, NEW)])
    lived.settle()
    assert len(forgotten(lived)) == letters + 2

    stop(lived)
    story.crowds(start + 6 * DAY, range(21, 22), besides=None)
    story.until(start + 8 * DAY)  # state records keep the version before, until they are written again
    assert check_shares(lived.weights(feed)) == {f"e{number}" for number in range(6)}
    lived.workers["w1"].wait_ready()
    left = remains(lived, feed).items()
    assert not [place for place, content in left if OLD.encode() in content or NEW.encode() in content]


def forgotten(service: Service) -> list[Any]:
    """Dead letters whose reason is that somebody asked to be forgotten."""
    return [one.message for one in service.dead_letters().values() if one.reason == Reason.FORGOTTEN]


def remains(service: Service, feed: str) -> dict[str, bytes]:
    """Whatever is left of a feed where compaction has been, and what the worker shows and logs."""
    metrics = service.scraped()
    found = {"log": (service.directory / "w1.log").read_bytes(), "metrics": metrics.encode()}
    for logical in topics.OUTPUTS:
        found |= {f"{logical} {key!r}": value for key, value in last_values(service, service.topic(logical)).items()}
    for stage in ("question", "feed"):
        changelog = service.settings.changelog(stage)
        found |= {f"{stage} {key!r}": key + value for key, value in last_values(service, changelog).items()}
    return {place: content for place, content in found.items() if place in {"log", "metrics"} or feed in place}
