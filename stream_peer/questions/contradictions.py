"""Times of a question that contradict each other, or that nobody stated: which rule settles them, in a sentence."""

from stream_peer.events.times import to_iso
from stream_peer.questions.schedule import RoundPlan, Terms
from stream_peer.questions.state import QuestionState


def contradiction_of_times(question: QuestionState) -> str | None:
    """What contradicts itself in the times stated so far, and what is made of it; None: nothing."""
    return _of_schedule(question) or _of_resolution(question)


def missing(question: QuestionState, plan: RoundPlan) -> str | None:
    """Which times a question with rounds was described without, and what stands in for them; None: without none.

    Forecasts alone describe no question: they need no times.
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


def _of_schedule(question: QuestionState) -> str | None:
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


def _of_resolution(question: QuestionState) -> str | None:
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
