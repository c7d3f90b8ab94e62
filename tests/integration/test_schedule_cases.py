"""Cases from real users about when questions open and close, each with a worker that ends halfway, on real Kafka."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from stream_peer.events import topics
from tests.integration.support.events import Event, at, question, resolution
from tests.integration.support.lives import (
    DAY,
    NUMBERS,
    Published,
    crowds,
    finish,
    kill,
    life,
    outcomes,
    panel,
    stop,
)
from tests.integration.support.service import Service

pytestmark = pytest.mark.real_kafka


def said_of(service: Service, question_id: str) -> list[str]:
    """Warnings that name a question in all that the worker has logged in all its lives."""
    log = (service.directory / "w1.log").read_text()
    return [line for line in log.splitlines() if "[warning" in line and question_id in line]


@pytest.mark.case("C06")
def test_a_close_moved_later_reopens_the_question_and_its_answer_is_superseded(lived: Service, start: float) -> None:
    feed, other = "c06", "c06other"
    lived.send(crowds(feed, start, NUMBERS))
    finish(lived, start + 2 * DAY)
    earlier = lived.last(topics.REFERENCE_ANSWERS, feed)

    kill(lived)
    lived.send(crowds(other, start, NUMBERS))
    for number in NUMBERS:
        for name, said in ((feed, start + 2.5 * DAY), (other, start)):
            key = f"{name}-q{number}"
            lived.send(
                [question(key, name, start + 4 * DAY, at=at(said)), *panel(number, key, range(9), start + 3 * DAY, 1)]
            )
    finish(lived, start + 5 * DAY)

    published = Published(lived)
    answers = published.answers(feed)
    assert {(one["boundary"], one["experts"], one["rounds"]) for one in earlier.values()} == {(at(start + DAY), 7, 1)}
    assert {(one["boundary"], one["experts"], one["rounds"]) for one in answers.values()} == {
        (at(start + 4 * DAY), 9, 1)
    }
    assert all(answers[key]["revision"] > one["revision"] for key, one in earlier.items())
    assert published.weights(feed)["questions"] == len(NUMBERS)
    assert published.order_free(feed) == published.order_free(other)
    assert not published.contradictions(feed)


def untimely(feed: str, start: float) -> dict[str, list[Event]]:
    """Questions whose times are missing or contradict each other."""
    stated: dict[str, list[Event]] = {
        "neither": [{"type": "question", "question_id": "", "feed": feed, "at": at(start)}],
        "backwards": [question("", feed, start - DAY, opens_at=at(start), at=at(start))],
        "closes-too-late": [question("", feed, start + 3000 * DAY, opens_at=at(start), at=at(start))],
        "resolved-first": [
            question("", feed, start + 9 * DAY, opens_at=at(start + 5 * DAY), at=at(start)),
            resolution("", 1, start + DAY),
        ],
        "closes-after-its-outcome": [
            question("", feed, start + DAY, opens_at=at(start), at=at(start)),
            resolution("", 1, start + 2 * DAY),
            question("", feed, start + 8 * DAY, at=at(start + 3 * DAY)),
        ],
        "cut-after-its-outcome": [
            question("", feed, start + 9 * DAY, opens_at=at(start), at=at(start)),
            resolution("", 0, start + DAY, closed_at=at(start + 2 * DAY)),
        ],
    }
    return {name: [{**event, "question_id": f"{feed}-{name}"} for event in events] for name, events in stated.items()}


@pytest.mark.case("C06")
def test_times_that_are_missing_or_contradict_each_other_are_told_once_and_settled_by_one_rule(
    lived: Service, start: float
) -> None:
    feed = "c06times"
    stated = untimely(feed, start)
    for events in stated.values():
        lived.send([*panel(1, events[0]["question_id"], range(5), start + 1), *events])
    finish(lived, start + 10 * DAY)

    stop(lived)
    for events in stated.values():
        lived.send([*events, *events])
    finish(lived, start + 11 * DAY)

    told = {name: said_of(lived, f"{feed}-{name}") for name in stated}
    assert {name: len(lines) for name, lines in told.items()} == dict.fromkeys(stated, 1), told
    answers = lived.last(topics.REFERENCE_ANSWERS, feed)
    boundaries: dict[str, Any] = {key.removeprefix(f"{feed}-"): one["boundary"] for key, one in answers.items()}
    assert boundaries.keys() == {"neither", "closes-too-late", "closes-after-its-outcome", "cut-after-its-outcome"}
    assert boundaries["closes-after-its-outcome"] == at(start + 2 * DAY)
    assert boundaries["cut-after-its-outcome"] == at(start + 2 * DAY)
    assert answers[f"{feed}-neither"]["outcome"] is None


def at_the_opening(service: Service, feed: str, opens: Mapping[int, float], numbers: Iterable[int]) -> None:
    """What was held comes to the same as if everybody had spoken at the very opening."""
    for number in numbers:
        events = panel(number, f"{feed}-q{number}", range(6), opens[number], 2)
        service.send({**event, "at": at(opens[number])} for event in events)


def early_forecasts(lived: Service, feed: str, other: str, opens: Mapping[int, float], start: float) -> None:
    """Of a feed questions whose forecasts come before they open; of another the same questions, without them."""
    for number in NUMBERS:
        key, twin = f"{feed}-q{number}", f"{other}-q{number}"
        lived.send(
            [
                question(key, feed, start + 20 * DAY, opens_at=at(start + 10 * DAY), at=at(start)),
                *panel(number, key, range(6), start + DAY, 1),
                *panel(number, key, range(6), start + 2 * DAY, 2),  # of several the last counts
                question(twin, other, start + 20 * DAY, opens_at=at(opens[number]), at=at(start)),
            ]
        )


@pytest.mark.case("C07")
def test_a_forecast_before_the_opening_is_held_until_then_and_follows_it_when_it_moves(
    lived: Service, start: float
) -> None:
    feed, other = "c07", "c07other"
    opens = {number: start + (10 if number < 4 else 15) * DAY for number in NUMBERS}
    early_forecasts(lived, feed, other, opens, start)
    finish(lived, start + 9 * DAY)
    assert not any(Published(lived).of(feed).values())
    assert feed.encode() not in {message.key for message in lived.read(topics.FEED_LOG)}

    stop(lived)
    moved_at, moved = at(start + 9.5 * DAY), [number for number in NUMBERS if number >= 4]
    lived.send(question(f"{feed}-q{n}", feed, start + 20 * DAY, opens_at=at(opens[n]), at=moved_at) for n in moved)
    at_the_opening(lived, other, opens, range(4))
    finish(lived, start + 12 * DAY)
    first = Published(lived)
    answers = {key: (one["rounds"], one["boundary"]) for key, one in first.answers(feed).items()}
    assert answers == {f"{feed}-q{n}": (1, at(start + 11 * DAY)) for n in range(4)}
    assert first.order_free(feed) == first.order_free(other)

    kill(lived)
    opens[0] = start + 18 * DAY  # although it has been open
    edit = {"opens_at": at(opens[0]), "at": at(start + 12.5 * DAY)}
    lived.send([question(f"{name}-q0", name, start + 20 * DAY, **edit) for name in (feed, other)])
    at_the_opening(lived, other, opens, range(4, 8))
    finish(lived, start + 17 * DAY)
    between = Published(lived)
    assert between.answers(feed)[f"{feed}-q0"]["state"] == "withdrawn"
    boundaries = {one["boundary"] for key, one in between.answers(feed).items() if key[-1] in "4567"}
    assert boundaries == {at(start + 16 * DAY)}
    finish(lived, start + 21 * DAY)

    last = Published(lived)
    assert last.order_free(feed) == last.order_free(other)
    assert {key: one["rounds"] for key, one in last.answers(feed).items()} == {
        f"{feed}-q0": 2,
        **{f"{feed}-q{n}": 9 for n in range(1, 4)},  # after eight days the next round comes with the close
        **{f"{feed}-q{n}": 5 for n in range(4, 8)},
    }
    assert not last.contradictions(feed)


@pytest.mark.case("C14")
def test_a_week_of_history_out_of_order_ends_where_it_ends_in_order(lived: Service, start: float) -> None:
    feed, other = "c14", "c14other"
    resolved = {number: number % 2 for number in NUMBERS if number % 4}
    lived.send([*life(other, start, 7, range(1, 8)), *outcomes(other, start + 9 * DAY, resolved)])
    finish(lived, start + 10 * DAY)

    shuffled = [*life(feed, start, 7, range(1, 8)), *outcomes(feed, start + 9 * DAY, resolved)]
    random.Random(14).shuffle(shuffled)
    lived.send(shuffled[: len(shuffled) // 2])
    kill(lived)
    lived.send(shuffled[len(shuffled) // 2 :])
    finish(lived, start + 11 * DAY)

    published = Published(lived)
    assert published.order_free(feed) == published.order_free(other)
    assert not published.contradictions(feed)
    assert len(published.of(feed)[topics.REFERENCE_ANSWERS]) > len(published.of(other)[topics.REFERENCE_ANSWERS])
