"""The sentences that tell a forecaster why an expert's weight moved."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import NamedTuple

from stream_peer.events.feed_log import Verdict
from stream_peer.serve.explanation import QuestionOfMove, WeightExplanation, WeightKind
from stream_peer.tools.explain.phrases import many
from stream_peer.tools.explain.weight_story.words import OWN, WORDS, decimals_for, percent, points

KINDS: dict[WeightKind, str] = {
    "mix": "share of the mixed forecast",
    "select": "chance of being the expert to follow",
}
_WORTH_SAYING = 0.25
"""A reason is told beside the first one from this share of it on."""
BEYOND = "Points add up over all moves, so repeated rises and falls can exceed 100."
_VERDICTS: dict[Verdict, str] = {
    0: "the answer was no",
    1: "the answer was yes",
    "annulled": "the question was annulled",
    "open": "the answer is not known yet",
}


class _Reason(NamedTuple):
    change: float
    words: str


def sentences(story: WeightExplanation) -> Iterator[str]:
    """How far the weight moved and mostly why; what its own forecasts did; what an equal weight would have been."""
    decimals = story_decimals(story)
    yield _moved(story, decimals)
    yield _own(story, decimals)
    yield _equal(story, decimals)


def story_decimals(story: WeightExplanation) -> int:
    """With how many decimals the numbers of a story are shown: three digits of its larger weight, two of the other."""
    weights = story.since.weight, story.until.weight
    smaller = min((weight for weight in weights if weight), default=0.0)
    return max(decimals_for(*weights), decimals_for(smaller) - 1)


def span(story: WeightExplanation) -> str:
    """The two moments of a story: days, with times of day if it is the same one."""
    start, end = (datetime.fromisoformat(stand.asked or stand.at) for stand in (story.since, story.until))
    if start.date() != end.date():
        return f"Between {start:%-d %b %Y} and {end:%-d %b %Y}"
    return f"Between {start:%H:%M:%S} and {end:%H:%M:%S} on {end:%-d %b %Y}"


def _moved(story: WeightExplanation, decimals: int) -> str:
    start, end = (percent(stand.weight, decimals) for stand in (story.since, story.until))
    whose = f"{span(story)} {story.expert}'s {KINDS[story.weight]}"
    if not story.difference:
        return f"{whose} was {end} before and after" + (", in all." if story.causes else ": nothing moved it.")
    verb = "rose" if story.difference > 0 else "fell"
    first = "" if story.since.listed else " (not listed yet)"
    last = "" if story.until.listed else " (no longer listed)"
    change = points(story.difference, decimals).lstrip("+-")
    return f"{whose} {verb} from {start}{first} to {end}{last}, by {change} points{_because(story, decimals)}."


def _because(story: WeightExplanation, decimals: int) -> str:
    """The reasons that brought it there, and the one against them."""
    sign = 1.0 if story.difference > 0 else -1.0
    reasons = sorted(_reasons(story), key=lambda one: -sign * one.change)
    towards = [one for one in reasons if one.change * sign > 0]
    if not towards:
        return ""
    least = _WORTH_SAYING * abs(towards[0].change)
    told = partial(_amount, story, decimals)
    said = [f"because {one.words} ({told(one.change)})" for one in towards[:2] if abs(one.change) >= least]
    against = reasons[-1] if reasons[-1].change * sign < 0 and abs(reasons[-1].change) >= least else None
    contrary = "" if against is None else f"; against that, {against.words} ({told(against.change)})"
    return f", mostly {' and '.join(said)}{contrary}"


def goes_beyond(story: WeightExplanation) -> bool:
    """Whether a cause did more than all of a weight: it raised the weight again and again while others lowered it."""
    return any(abs(change) > 1.0 for change in (story.own.change, *(one.change for one in story.causes)))


def _amount(story: WeightExplanation, decimals: int, change: float) -> str:
    """What a reason did: points, or its part of all that went the same way if points would go beyond 100."""
    if not goes_beyond(story):
        return points(change, decimals)
    alike = sum(one.change for one in _reasons(story) if (one.change > 0) == (change > 0))
    return f"{change / alike:.0%} of what {'raised' if change > 0 else 'lowered'} it"


def _reasons(story: WeightExplanation) -> Iterator[_Reason]:
    own = story.own
    if own.change:
        rose = own.change > 0
        number = own.raised if rose else own.questions - own.raised
        how = "better" if rose else "worse"
        of = f"{number:,} of " if number < own.questions else ""
        on = f"{', if only ' if 2 * number < own.questions else ' '}on {of}{many(own.questions, 'question')}"
        yield _Reason(own.change, f"its own forecasts did {how} than the average{on}")
    for one in story.causes:
        if one.cause in OWN:
            continue
        words = WORDS[one.cause]
        said = _listed(story, one.change) if one.cause == "listing" else ""
        yield _Reason(one.change, said or (words.rose if one.change > 0 else words.fell))


def _listed(story: WeightExplanation, change: float) -> str:
    """What came of who was listed, where it is plain: it came or left itself, or how many share has changed."""
    since, until = story.since, story.until
    if since.listed != until.listed and until.listed == (change > 0):
        return "it was listed" if until.listed else "it is no longer listed"
    if since.experts and until.experts and since.experts != until.experts:
        fewer = until.experts < since.experts
        return f"{until.experts:,} experts share the 100% instead of {since.experts:,}" if fewer == (change > 0) else ""
    return ""


def _own(story: WeightExplanation, decimals: int) -> str:
    own = story.own
    if not own.questions:
        return "None of its own forecasts counted in between."
    parts = [
        f"{name} {points(one.change, decimals)}"
        for cause, name in (("peer-loss", "provisional marks"), ("truth", "changes by outcomes"))
        for one in story.causes
        if one.cause == cause
    ]
    lowered = own.questions - own.raised
    by = "" if goes_beyond(story) else f" by {points(own.change, decimals)} points"
    text = (
        f"Its own forecasts of {many(own.questions, 'question')} moved it{by}, {own.raised:,} up and {lowered:,} down"
    )
    text += f" ({', '.join(parts)})." if by and len(parts) > 1 else "."
    most = next((one for one in story.questions if one.own * own.change > 0), None)
    return text if most is None else f"{text} Most of all {_told(most, decimals)}."


def _told(one: QuestionOfMove, decimals: int) -> str:
    moved = f"{one.question} ({points(one.own, decimals)})"
    told = said_of(one)
    return f"{moved}, where {told}" if told else moved


def said_of(one: QuestionOfMove) -> str:
    """What the expert said of a question, what the others think, and what the answer is."""
    if one.probability is None:
        return ""
    others = "yes" if one.reference_answer else "no"
    verdict = _VERDICTS["open" if one.outcome is None else one.outcome]
    return f"it said {percent(one.probability, 0)}, most others said {others}, and {verdict}"


def _equal(story: WeightExplanation, decimals: int) -> str:
    now = story.until.experts
    if not now:
        return "No expert has a weight now."
    before = story.since.experts
    equal = f"{percent(1.0 / now, decimals)} among the {many(now, 'expert')} at the end"
    if before and before != now:
        equal = f"{percent(1.0 / before, decimals)} among the {many(before, 'expert')} at the start, {equal}"
    return f"The weights of all experts add up to 100%. If all were equal, each would be {equal}."
