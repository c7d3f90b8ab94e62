"""What an event changes in the state of its question. Times are checked before anything is changed."""

from datetime import datetime, timedelta

from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Question, Resolution, moment
from stream_peer.events.rejections import Reason
from stream_peer.events.times import NEVER, Milliseconds, to_iso
from stream_peer.questions.dating import Rules
from stream_peer.questions.state import QuestionState, Truth
from stream_peer.settings.feed.document import FeedSettingsBook


def plausible_moment(
    value: datetime | None, field: str, record_time: Milliseconds, horizon: Milliseconds, *, is_history: bool = False
) -> Milliseconds | None:
    """A moment of an event in milliseconds; None stays None.

    Raises
    ------
    RejectedEvent
        If it lies before 2000, of a historical feed before 1900, or more than ``horizon`` ahead of the record.
    """
    if value is None:
        return None
    milliseconds = moment(value, field, is_history=is_history)
    if milliseconds > record_time + horizon:
        msg = (
            f"{field} is {value.isoformat()}, more than {horizon // 86_400_000} days ahead of the record's own time"
            f" {to_iso(record_time)} (milliseconds passed where seconds were meant?)"
        )
        raise RejectedEvent(Reason.TIME_RANGE, field=field, message=msg)
    return milliseconds


def counts_from(question: QuestionState, rules: Rules, at: Milliseconds, record_time: Milliseconds) -> Milliseconds:
    """From when a forecast stated for ``at`` counts, by the rules of the feed that its question belongs to with it.

    Raises
    ------
    RejectedEvent
        If it would count from another moment than stated, and ``late_forecasts`` is ``refuse``.
    """
    counts = question.history.counts_from(rules, at, record_time)
    if counts == NEVER:
        limit = rules.at(record_time).backdate_limit
        raise RejectedEvent(Reason.LATE, field="at", message=_too_late(question, limit, at, record_time))
    return counts


def _too_late(question: QuestionState, limit: Milliseconds | None, at: Milliseconds, record_time: Milliseconds) -> str:
    stated = f"at is {to_iso(at)}, and it arrived at {to_iso(record_time)}"
    allowed = "" if limit is None else f" (backdate_limit is {_span(limit)})"
    if limit is not None and at < record_time - limit:
        return f"{stated}, {_span(record_time - at)} later{allowed}; late_forecasts is refuse"
    resolved = to_iso(question.truth.at) if question.truth else "before"
    return f"{stated}{allowed}, but its question was resolved, stated at {resolved}; late_forecasts is refuse"


def _span(milliseconds: Milliseconds) -> str:
    """A duration as text."""
    return str(timedelta(milliseconds=milliseconds))


def feed_with(question: QuestionState, feed: str, at: Milliseconds, *, own: bool = False) -> str:
    """The feed that a question belongs to once an event stated for ``at`` has named one; see ``note_feed``."""
    stated = question.own_feed if own else question.other_feed
    if stated is not None and at < stated[0]:
        feed = stated[1]
    return feed if own or question.own_feed is None else question.own_feed[1]


def note_feed(
    question: QuestionState, feed: str | None, at: Milliseconds, book: FeedSettingsBook, *, own: bool = False
) -> bool:
    """Merge a feed that an event names; ``own``: by a ``question`` event, which takes precedence over all others.

    True if the question belongs to another feed from now on.
    """
    if feed is None:
        return False
    current = feed if feed == question.feed else feed_with(question, feed, at, own=own)
    stated = question.own_feed if own else question.other_feed
    if stated is None or at >= stated[0]:
        if own:
            question.own_feed = at, feed
        else:
            question.other_feed = at, feed
    if current == question.feed:
        return False
    question.feed = current
    question.settings = book.of(current)
    question.terms = None  # its rounds are emitted again, to the new feed
    return True


def merge_question(
    question: QuestionState, event: Question, record_time: Milliseconds, book: FeedSettingsBook
) -> Milliseconds | None:
    """Merge a ``question`` event field by field: the latest stated wins. Return the moment that it states, if any.

    Without ``at`` it is taken as said when it arrived, in a historical feed when the question opened.
    """
    settings = book.of(event.feed) if event.feed else question.settings
    horizon, is_history = settings.horizon, settings.history
    stated = plausible_moment(event.at, "at", record_time, horizon, is_history=is_history)
    opens = plausible_moment(event.opens_at, "opens_at", record_time, horizon, is_history=is_history)
    closes = plausible_moment(event.closes_at, "closes_at", record_time, horizon, is_history=is_history)
    at = stated
    if at is None:
        at = opens if settings.history and opens is not None else record_time
    note_feed(question, event.feed, at, book, own=True)
    question.declared = at if question.declared is None else min(at, question.declared)
    if opens is not None and (question.opens is None or at >= question.opens[0]):
        question.opens = at, opens
    if closes is not None and (question.closes is None or at >= question.closes[0]):
        question.closes = at, closes
    if event.weight is not None and (question.weight is None or at >= question.weight[0]):
        question.weight = at, event.weight
    return stated


def merged_truth(
    truth: Truth | None,
    event: Resolution,
    record_time: Milliseconds,
    horizon: Milliseconds,
    *,
    is_history: bool = False,
) -> tuple[Truth, Milliseconds]:
    """The resolution in force after ``event``, and the moment that the event states."""
    at = plausible_moment(event.at, "at", record_time, horizon, is_history=is_history)
    closed_at = plausible_moment(event.closed_at, "closed_at", record_time, horizon, is_history=is_history)
    stated = Truth(at or 0, event.verdict, closed_at)
    return (stated if truth is None or stated.at >= truth.at else truth), stated.at
