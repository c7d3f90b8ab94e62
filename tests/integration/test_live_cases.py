"""Cases from real users about what comes too late, by the wall's clock; a worker ends halfway, on real Kafka."""

import json
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.rejections import Reason
from stream_peer.events.times import to_iso
from stream_peer.questions.dating import BEGINNING, Dating, Rules
from stream_peer.questions.state import QuestionState, decode_question_entry
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings
from tests.integration.support.events import Event, at, encoded, forecast, milliseconds, now, question, resolution
from tests.integration.support.lives import Published, kill, panel, state, stop
from tests.integration.support.service import DeadLetter, Service
from tests.integration.support.waiting import wait_until
from tests.order_free import COMPARED

pytestmark = pytest.mark.real_kafka

SECOND = 1 / 3600
"""In hours, as events state their times."""

Answer = dict[str, Any]


def wait_for(hours: float) -> None:
    """Until the wall's clock has passed a moment."""
    wait_until(lambda: now() > hours, 60, "time stands still", every=0.2)


def said_at(events: Collection[Event], hours: float) -> list[Event]:
    """Events as if all of them were said at one moment."""
    return [{**event, "at": at(hours)} for event in events]


def answered(service: Service, questions: Collection[str], is_right: Callable[[Answer], bool]) -> dict[str, Answer]:
    """The last answer of each question, once it is right for all of them."""

    def answers() -> dict[str, Answer]:
        read = service.read(topics.REFERENCE_ANSWERS)
        last = {(m.key or b"").decode(): json.loads(m.value or b"{}") for m in read}
        found = {key: last[key] for key in questions if key in last and is_right(last[key])}
        return found if len(found) == len(questions) else {}

    service.settle()
    found = wait_until(answers, 30, lambda: f"{questions} never had the answer\n{service.logs()}", every=0.3)
    service.settle()
    return found


def letters(service: Service, feed: str, reason: Reason) -> list[DeadLetter]:
    """Dead letters of a feed's questions (named after it) of one reason."""
    found = service.dead_letters().values()
    return [one for one in found if one.reason == reason and (one.message.key or b"").startswith(feed.encode())]


def stored(service: Service, question_id: str) -> QuestionState:
    """A question as the state holds it, under the settings that were applied."""
    entries = state(service, "question")
    (value,) = [value for key, value in entries.items() if key.endswith(b"/q/" + question_id.encode())]
    found = decode_question_entry(question_id, value, {}, FeedSettings())
    assert isinstance(found, QuestionState)
    applied = load_document(service.settings.document).of(found.feed)
    found.history.rules = Rules((BEGINNING, Dating.of(applied)))
    return found


@pytest.mark.case("C08")
@pytest.mark.parametrize("policy", ["move", "refuse"])
def test_corrections_after_publication_follow_the_policy_and_each_is_a_revision(live: Service, policy: str) -> None:
    feed, moment = f"c08{policy}", now()
    questions = [f"{feed}-q{number}" for number in range(4)]
    for number, key in enumerate(questions):
        live.send([question(key, feed, moment - 2, opens_at=at(moment - 72), at=at(moment - 72))])
        live.send(said_at([*panel(number, key, range(6), moment)], moment - 20))
    revisions = [answered(live, questions, lambda one: one["experts"] == 6)]

    live.send(forecast(key, "e6", 0.9, moment - 10) for key in questions)  # within backdate_limit: counts
    revisions.append(answered(live, questions, lambda one: one["experts"] == 7))
    live.send(forecast(key, "e7", 0.9, moment - 60) for key in questions)  # beyond it
    live.settle()
    experts = 8 if policy == "move" else 7
    revisions.append(answered(live, questions, lambda one: one["experts"] == experts))
    stop(live)
    live.send(resolution(key, number % 2, now()) for number, key in enumerate(questions))
    revisions.append(answered(live, questions, lambda one: one["state"] == "resolved"))
    before = Published(live).last(feed)
    live.send(forecast(key, "e0", number % 2, moment - 10) for number, key in enumerate(questions))
    live.settle()

    published = Published(live)
    for topic in topics.KEYED_BY_QUESTION:  # after the outcome nothing that was said is changed
        assert published.last(feed)[topic] == before[topic]
    assert published.weights(feed)["experts"] == before[topics.WEIGHTS][feed]["experts"]
    for earlier, later in pairwise(revisions):
        assert all(later[key]["revision"] >= earlier[key]["revision"] for key in questions)
        changed = [key for key in questions if later[key] != earlier[key]]
        assert all(later[key]["revision"] > earlier[key]["revision"] for key in changed)
    assert not published.contradictions(feed)
    refused = letters(live, feed, Reason.LATE)
    late = live.metric("stream_peer_noted_total", what="late")
    if policy == "move":
        assert (len(refused), late) == (0, len(questions))  # since the worker's last start
    else:
        assert (len(refused), late) == (2 * len(questions), 0)


@pytest.mark.case("C11")
@pytest.mark.parametrize("policy", ["move", "refuse"])
def test_a_backdated_forecast_improves_nobody_on_a_question_already_scored(live: Service, policy: str) -> None:
    feed, moment = f"c11{policy}", now()
    closes = moment + 1 * SECOND
    questions = [f"{feed}-{name}" for name in ("scored", "resolved")]
    for number, key in enumerate(questions):
        live.send([question(key, feed, closes), *said_at([*panel(number, key, range(5), moment)], moment)])
    answered(live, questions, lambda one: one["boundary"] == to_iso(milliseconds(closes)))
    live.send([resolution(questions[1], 1, now())])
    answered(live, questions[1:], lambda one: one["outcome"] == 1)
    before = Published(live)

    kill(live)
    wait_for(closes + 3 * SECOND)
    late = [forecast(key, expert, 1.0, moment) for key in questions for expert in ("e0", "e9")]
    live.send(late)
    live.settle()

    assert Published(live).last(feed) == before.last(feed)
    live.workers["w1"].wait_ready()
    refused = letters(live, feed, Reason.LATE)
    if policy == "move":
        assert not refused
        assert live.metric("stream_peer_noted_total", what="late") == len(late)
        for key in questions:  # claimed and counted times are both kept
            ((claimed, counts_from),) = stored(live, key).history.stated("e0")
            assert claimed == milliseconds(moment)
            assert counts_from > milliseconds(closes)
    else:
        assert live.metric("stream_peer_dead_letters_total", reason=Reason.LATE) == len(late)
        assert sorted(letter.message.value or b"" for letter in refused) == sorted(encoded(late))
        assert all(f"at is {to_iso(milliseconds(moment))}, and it arrived at " in one.text for one in refused)


@pytest.mark.case("C33")
def test_deadlines_that_passed_while_the_service_was_down_are_met_once(live: Service) -> None:
    feed, moment = "c33", now()
    closes = moment + 20 * SECOND  # long enough to settle and to be killed before, on a busy machine
    questions = [f"{feed}-q{number}" for number in range(3)]
    for number, key in enumerate(questions):
        opens = {} if number else {"opens_at": at(moment)}
        live.send([question(key, feed, closes, **opens)])
        live.send(said_at([*panel(number, key, range(5), moment)], moment))
    live.settle()
    live.workers["w1"].kill()
    wait_for(closes + 2 * SECOND)
    assert not any(Published(live).of(feed).values())

    live.start("w1", STREAM_PEER_INSTANCE="w1").wait_ready()
    answered(live, questions, lambda one: one["state"] == "scored")
    once = Published(live)
    stop(live)
    live.settle()

    assert {one["boundary"] for one in once.answers(feed).values()} == {to_iso(milliseconds(closes))}
    for topic in COMPARED:
        counted = [key for key, _ in once.of(feed)[topic]]
        assert len(counted) == len(set(counted)) or topic in topics.KEYED_BY_FEED
    assert Published(live).last(feed) == once.last(feed)
