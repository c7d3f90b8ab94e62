"""Cases from real users about what became of questions, each with a worker that ends halfway, on real Kafka."""

from collections.abc import Mapping
from typing import Any

import pytest

from stream_peer.events import topics
from tests.integration.support.events import at, question
from tests.integration.support.lives import (
    DAY,
    NUMBERS,
    Published,
    crowds,
    finish,
    gauges,
    kill,
    life,
    outcomes,
    stop,
    without,
)
from tests.integration.support.service import Service

pytestmark = pytest.mark.real_kafka

WHEN_SAID = ("revision", "at", "certificate")
"""What differs between two moments at which the same is known: when it was said, and how many outcomes had come."""
PRICED = ("error_rate", "peer_loss")
"""What a question's outputs hold of the rates of the moment at which they were published."""


@pytest.mark.case("C01")
@pytest.mark.parametrize("by", ["resolution", "close"])
def test_what_was_said_after_a_close_in_the_past_never_counted(lived: Service, start: float, by: str) -> None:
    feed, other = f"c01{by}", f"c01{by}other"
    lived.send(life(feed, start, 10, range(1, 11)))
    finish(lived, start + 11 * DAY)
    superseded = lived.last(topics.REFERENCE_ANSWERS, feed)

    kill(lived)
    late = start + 12 * DAY
    events = life(other, start, 5, range(1, 6))  # a run that only ever saw what was said by then
    if by == "resolution":
        events += outcomes(other, late, {number: number % 2 for number in NUMBERS})
        cut = {"closed_at": at(start + 5 * DAY)}
        events += [{**event, **cut} for event in outcomes(feed, late, {number: number % 2 for number in NUMBERS})]
    else:
        events += [question(f"{feed}-q{number}", feed, start + 5 * DAY, at=at(late)) for number in NUMBERS]
    lived.send(events)
    finish(lived, start + 13 * DAY)

    published = Published(lived)
    assert published.order_free(feed) == published.order_free(other)
    answers = published.answers(feed)
    assert {answer["boundary"] for answer in superseded.values()} == {at(start + 10 * DAY)}
    assert {answer["boundary"] for answer in answers.values()} == {at(start + 5 * DAY)}
    assert all(answers[key]["revision"] > superseded[key]["revision"] for key in answers)
    assert not published.contradictions(feed)
    # Nobody counts as having withdrawn: who spoke by then is there, and no question is ever without a round.
    assert {answer["experts"] for answer in answers.values()} == {6 + 2}
    assert "withdrawn" not in {record["state"] for _, record in published.of(feed)[topics.REFERENCE_ANSWERS]}
    assert {expert["id"]: expert["coverage"] for expert in published.weights(feed)["experts"]}.keys() >= {"e10", "e11"}


def differences(before: Mapping[str, Any], after: Mapping[str, Any], *names: str) -> list[str]:
    """Fields that differ, those of experts included, without some."""
    listed = before.get("experts")
    if not isinstance(listed, list):
        return [name for name in without(before, *names) if before[name] != after[name]]
    experts = zip(listed, after["experts"], strict=True)
    found = [one["id"] for one, other in experts if without(one, *names) != without(other, *names)]
    return found + [name for name in without(before, "experts", *names) if before[name] != after[name]]


@pytest.mark.case("C02")
def test_a_retracted_outcome_leaves_everything_as_it_was(lived: Service, start: float) -> None:
    feed = "c02"
    lived.send(crowds(feed, start, range(24)))
    lived.send(outcomes(feed, start + 2 * DAY, {number: number % 3 == 0 for number in range(10)}))
    finish(lived, start + 3 * DAY)
    before, shown = Published(lived).last(feed), gauges(lived, feed)

    lived.send(outcomes(feed, start + 4 * DAY, dict.fromkeys(range(6, 16), "yes")))
    finish(lived, start + 5 * DAY)
    resolved = lived.weights(feed)
    kill(lived)
    lived.send(outcomes(feed, start + 6 * DAY, dict.fromkeys(range(10, 16), "open")))
    lived.send(outcomes(feed, start + 6 * DAY, {number: number % 3 == 0 for number in range(6, 10)}))
    finish(lived, start + 7 * DAY)

    published = Published(lived)
    after, weights = published.last(feed), before[topics.WEIGHTS][feed]
    assert resolved["resolved"] == weights["resolved"] + 6
    assert resolved["error_rate"] != weights["error_rate"]
    for topic in topics.KEYED_BY_FEED:
        assert not differences(before[topic][feed], after[topic][feed], *WHEN_SAID)
    for topic in topics.KEYED_BY_QUESTION:
        assert before[topic].keys() == after[topic].keys()
        changed = {
            key: differences(record, after[topic][key], *WHEN_SAID, *PRICED) for key, record in before[topic].items()
        }
        assert not any(changed.values()), changed
    names = ("certificate_regret", "feed_updated_timestamp_seconds")
    told = [(f"stream_peer_{name}", ("feed", feed)) for name in names]
    assert without(gauges(lived, feed), *told) == without(shown, *told)
    assert not published.contradictions(feed)


@pytest.mark.case("C03")
def test_annulled_questions_add_nothing_whenever_it_is_said_and_count_again_once_resolved(
    lived: Service, start: float
) -> None:
    early, late = range(3), range(8, 11)
    kept = [number for number in range(16) if number not in {*early, *late}]
    feed, never, plain = "c03", "c03never", "c03plain"
    for name, numbers in ((feed, range(16)), (never, kept), (plain, range(16))):
        lived.send(crowds(name, start, numbers))
        lived.send(outcomes(name, start + 3 * DAY, {number: number % 2 for number in kept if number % 4}))
    lived.send(outcomes(feed, start + DAY / 2, dict.fromkeys(early)))  # before any of their answers was scored
    finish(lived, start + 4 * DAY)
    scored = lived.last(topics.REFERENCE_ANSWERS, feed)

    stop(lived)
    lived.send(outcomes(feed, start + 5 * DAY, dict.fromkeys(late)))  # a cascade, after all were scored
    finish(lived, start + 6 * DAY)

    published = Published(lived)
    states = {number: published.answers(feed)[f"{feed}-q{number}"]["state"] for number in (*early, *late)}
    assert states == dict.fromkeys((*early, *late), "annulled")
    assert {scored[f"{feed}-q{number}"]["state"] for number in late} == {"scored"}
    for topic in topics.KEYED_BY_FEED:
        assert published.order_free(feed)[topic] == published.order_free(never)[topic]

    kill(lived)
    for name in (feed, plain):
        lived.send(outcomes(name, start + 7 * DAY, {number: number % 2 for number in (*early, *late)}))
    finish(lived, start + 8 * DAY)

    published = Published(lived)
    told = {number: published.answers(feed)[f"{feed}-q{number}"]["outcome"] for number in (*early, *late)}
    assert told == {number: number % 2 for number in (*early, *late)}
    assert published.order_free(feed) == published.order_free(plain)
    assert not published.contradictions(feed)


@pytest.mark.case("C02")
def test_a_provisional_outcome_is_shown_and_teaches_nothing_until_an_outcome_comes(
    lived: Service, start: float
) -> None:
    feed, never = "c02provisional", "c02plain"

    def tell(told: Mapping[int, object], hours: float) -> None:
        lived.send([{**event, "provisional": True} for event in outcomes(feed, hours, told)])

    def shown(published: Published) -> list[tuple[int, object, object]]:
        """The outcome and the provisional one of each question that has any."""
        answers = ((number, published.answers(feed)[f"{feed}-q{number}"]) for number in range(12))
        told = [(number, answer["outcome"], answer.get("provisional_outcome")) for number, answer in answers]
        return [one for one in told if one[1:] != (None, None)]

    def check_lessons(published: Published) -> None:
        for topic in topics.KEYED_BY_FEED:
            assert published.order_free(feed)[topic] == published.order_free(never)[topic]
        assert not published.contradictions(feed)

    for name in (feed, never):
        lived.send(crowds(name, start, range(12)))
    tell({0: 1}, start + DAY / 2)  # while it is open: it closes nothing
    finish(lived, start + 2 * DAY)
    tell({1: 0, 2: 1, 3: 1}, start + 2 * DAY)
    finish(lived, start + 3 * DAY)
    before = Published(lived)
    assert shown(before) == [(0, None, 1), (1, None, 0), (2, None, 1), (3, None, 1)]
    assert {answer["state"] for answer in before.answers(feed).values()} == {"scored"}
    assert {answer["boundary"] for answer in before.answers(feed).values()} == {at(start + DAY)}
    check_lessons(before)

    kill(lived)
    tell({2: "open"}, start + 4 * DAY)
    for name in (feed, never):
        lived.send(outcomes(name, start + 4 * DAY, {0: 0, 3: 1}))
    finish(lived, start + 5 * DAY)
    after = Published(lived)
    assert shown(after) == [(0, 0, None), (1, None, 0), (3, 1, None)]
    check_lessons(after)
