"""When a question opens and closes, the moments at which its forecasts make a round, and what is wrong with them."""

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.settings.feed.model import FeedSettings

if TYPE_CHECKING:
    from stream_peer.questions.state import QuestionState

MAX_REGULAR = 32
DOUBLES_AFTER = 8


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """The settings that decide a question's rounds. A question keeps those of its first round."""

    round_every: Milliseconds | None
    quorum: int | None
    grace: Milliseconds
    max_open: Milliseconds
    forecast_for: Milliseconds | None = None

    @classmethod
    def of(cls, settings: FeedSettings) -> "Terms":
        """The terms by a feed's settings."""
        return cls(settings.round_every, settings.quorum, settings.grace, settings.max_open, settings.forecast_for)


class RoundPlan(NamedTuple):
    """A question's moments: the boundaries ascending, ``close`` among them unless it lies before ``opens``.

    ``quorum`` is the boundary at which the quorum stood, None if it did not or none is asked for.
    """

    opens: Milliseconds | None
    close: Milliseconds | None
    boundaries: list[Milliseconds]
    quorum: Milliseconds | None = None


def close_of(
    opens: Milliseconds | None, stated: Milliseconds | None, cut: Milliseconds | None, max_open: Milliseconds
) -> Milliseconds | None:
    """A question's close: the earliest of the stated one, what its resolution says, and the longest it may be open."""
    close = None if opens is None else opens + max_open
    for moment in (stated, cut):
        if moment is not None and (close is None or moment < close):
            close = moment
    return close


def regular_boundaries(
    opens: Milliseconds, close: Milliseconds, round_every: Milliseconds | None
) -> list[Milliseconds]:
    """Boundaries before ``close``: every ``round_every``, an interval that doubles after every 8; at most 32.

    None if there is no such interval: then the close is the only boundary that time brings.

    Examples
    --------
    >>> regular_boundaries(0, 14, 1)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    >>> regular_boundaries(0, 14, None)
    []
    """
    if round_every is None:
        return []
    boundaries = []
    moment = opens
    for number in range(MAX_REGULAR):
        moment += round_every << (number // DOUBLES_AFTER)
        if moment >= close:
            break
        boundaries.append(moment)
    return boundaries


def contradiction_of_times(question: "QuestionState") -> str | None:
    """A sentence: which stated times contradict each other, and which of them counts; None if none do."""
    return _contradiction_of_schedule(question) or _contradiction_of_resolution(question)


def missing_times(question: "QuestionState", plan: RoundPlan) -> str | None:
    """A sentence: which times nobody stated for a question with rounds, and what the service uses; None if none.

    A question that no ``question`` event describes needs no times.
    """
    if question.declared is None or plan.opens is None or plan.close is None:
        return None
    sentences = []
    if question.opens is None:
        sentences.append(f"nobody stated opens_at: it opened with its first forecast, {to_iso(plan.opens)}")
    if question.closes is None and not question.resolved:
        sentences.append(
            f"nobody stated closes_at: unless somebody does, it closes after max_open, {to_iso(plan.close)}"
        )
    return "; ".join(sentences) or None


def _contradiction_of_schedule(question: "QuestionState") -> str | None:
    if question.opens is None or question.closes is None:
        return None
    opens, closes = question.opens[1], question.closes[1]
    if closes < opens:
        return f"closes_at {to_iso(closes)} lies before opens_at {to_iso(opens)}: the question has no rounds"
    longest = opens + (question.terms or Terms.of(question.settings)).max_open
    if closes > longest:
        return (
            f"closes_at {to_iso(closes)} lies more than max_open after opens_at: the question closes {to_iso(longest)}"
        )
    return None


def _contradiction_of_resolution(question: "QuestionState") -> str | None:
    truth = question.truth
    cut = truth.cut if truth else None
    if truth is None or cut is None:
        return None
    if question.opens is not None and cut < question.opens[1]:
        ended, opens = to_iso(cut), to_iso(question.opens[1])
        return f"its resolution ends it at {ended}, before opens_at {opens}: the question has no rounds"
    if cut > truth.at:
        return f"closed_at {to_iso(cut)} lies after its resolution of {to_iso(truth.at)}: closed_at counts"
    if question.closes is not None and question.closes[0] > truth.at and question.closes[1] > cut:
        closes, ended = to_iso(question.closes[1]), to_iso(cut)
        return f"closes_at {closes} was stated after the resolution that ended it at {ended}: the resolution counts"
    return None
