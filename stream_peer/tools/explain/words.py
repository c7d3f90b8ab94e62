"""How explanations are worded: moments, numbers and lists; what each cause is called and means; the sentences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from stream_peer.events.feed_log import Verdict
from stream_peer.events.times import Milliseconds
from stream_peer.serve.explanation import CauseKind, QuestionOfMove, WeightExplanation, WeightKind
from stream_peer.tools.replay.history import many

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def year(moment: Milliseconds) -> int:
    """The year of a moment, in UTC."""
    return _utc(moment).year


def date_of(moment: Milliseconds, beside: Milliseconds) -> str:
    """A moment in UTC; its year only if it is another one than that of the moment it stands beside.

    Examples
    --------
    >>> date_of(1_772_366_400_000, 1_772_000_000_000), date_of(1_772_366_400_000, 1_700_000_000_000)
    ('1 Mar 12:00', '1 Mar 2026 12:00')
    """
    at = _utc(moment)
    of_year = "" if at.year == year(beside) else f" {at.year}"
    seconds = f":{at.second:02}" if at.second else ""
    return f"{at.day} {_MONTHS[at.month - 1]}{of_year} {at.hour:02}:{at.minute:02}{seconds}"


def joined(words: Sequence[str]) -> str:
    """Words as one lists them in a sentence.

    Examples
    --------
    >>> joined(["ann"]), joined(["ann", "bob"]), joined(["ann", "bob", "cleo"])
    ('ann', 'ann and bob', 'ann, bob and cleo')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def shortened(words: Iterable[str], most: int) -> str:
    """The first words, separated by commas, and how many there are besides.

    Examples
    --------
    >>> shortened(["a", "b", "c", "d"], 2), shortened(["a", "b", "c"], 2)
    ('a, b and 2 more', 'a, b and c')
    """
    listed = list(words)
    if len(listed) <= most + 1:
        return joined(listed)
    return f"{', '.join(listed[:most])} and {len(listed) - most:,} more"


def chance(probability: float | None) -> str:
    """A probability, to three decimals at most.

    Examples
    --------
    >>> chance(0.3), chance(0.25), chance(0.123456), chance(None)
    ('0.30', '0.25', '0.123', 'none')
    """
    if probability is None:
        return "none"
    shown = f"{probability:.3f}"
    return shown.removesuffix("0")


def _utc(moment: Milliseconds) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC)


class Words(NamedTuple):
    """How a cause is worded.

    Attributes
    ----------
    name : str
        What it is called in a table.
    meaning : str
        A sentence for somebody who meets it first.
    rose, fell : str
        How a sentence goes on behind "because", where it raised the weight and where it lowered it.
    """

    name: str
    meaning: str
    rose: str
    fell: str


WORDS: Mapping[CauseKind, Words] = {
    "listing": Words(
        "Experts who came or left",
        "The same 100% are shared by more experts, or by fewer.",
        "experts left, and their share went to the others",
        "experts came, and their share came from the others",
    ),
    "peer-loss": Words(
        "Its forecasts against the other experts'",
        "Until the answer to a question is known, each forecast gets a provisional mark: how close it is to what most"
        " others think.",
        "its forecasts were close to what most others think",
        "its forecasts were far from what most others think",
    ),
    "truth": Words(
        "Its forecasts against the outcomes",
        "When the answer to a question becomes known, the provisional mark is replaced by the real one.",
        "its forecasts were better than their provisional marks once the answers were known",
        "its forecasts were worse than their provisional marks once the answers were known",
    ),
    "ageing": Words(
        "Its older questions count less",
        "The feed has a `memory`: older questions count less.",
        "older questions that lowered it count less now",
        "older questions that raised it count less now",
    ),
    "others": Words(
        "The marks of the other experts",
        "All weights add up to 100%: what others lose it gains, and what they gain it loses.",
        "other experts did worse, and the rest gained their weight",
        "other experts did better, and the rest gave them weight",
    ),
    "re-pricing": Words(
        "How much provisional marks are trusted",
        "The estimate of how often most experts are wrong together has changed; all provisional marks, also old "
        "ones, use the newest estimate.",
        "all provisional marks use a new estimate",
        "all provisional marks use a new estimate",
    ),
    "mixers": Words(
        "Which way of weighing is used",
        "Weights are blended from several ways of weighing experts; known answers show which of them forecasts best.",
        "the ways of weighing that forecast best give it more",
        "the ways of weighing that forecast best give it less",
    ),
    "guard": Words(
        "Experts who say the same",
        "Experts who were found to copy each other share the weight of one.",
        "experts who say the same share one weight, which leaves it more",
        "experts who say the same share one weight, which leaves it less",
    ),
    "shrinkage": Words(
        "Caution",
        "While the feed's numbers cannot be trusted, chances move towards equal ones; afterwards they move back.",
        "the feed's numbers cannot be trusted, and caution gives it more",
        "the feed's numbers cannot be trusted, and caution gives it less",
    ),
    "safety-net": Words(
        "The safety net",
        "When the blend does worse than the plain average, it moves towards equal weights for all; when it does"
        " better, it moves back.",
        "the safety net against a blend that does worse than the plain average gives it more",
        "the safety net against a blend that does worse than the plain average gives it less",
    ),
    "settings": Words(
        "Settings", "The settings of the feed were changed.", "settings were changed", "settings were changed"
    ),
    "operator": Words(
        "An operator's command",
        "The feed was reset, imported or deleted.",
        "an operator reset, imported or deleted the feed",
        "an operator reset, imported or deleted the feed",
    ),
}

_TRUTH_IN_MIX = (
    "When the answer to a question becomes known, the ways of weighing that learn from answers use the real"
    " mark; the one that learns from the other experts keeps the provisional mark and, from version 2 of the method on,"
    " adds the real one."
)


def meaning_of(cause: CauseKind, weight: WeightKind) -> str:
    """What a cause means for a weight, in a sentence for somebody who meets it first."""
    return _TRUTH_IN_MIX if (cause, weight) == ("truth", "mix") else WORDS[cause].meaning


OWN: frozenset[CauseKind] = frozenset(("peer-loss", "truth", "ageing"))
"""Causes that come from what the expert itself said."""


def percent(weight: float, decimals: int) -> str:
    """A weight.

    Examples
    --------
    >>> percent(0.0405, 2)
    '4.05%'
    """
    return f"{100.0 * weight:.{decimals}f}%"


def points(change: float, decimals: int) -> str:
    """A change of a weight in percentage points, with its sign; ``~0`` for a trace that would be shown as nothing.

    Examples
    --------
    >>> points(0.012, 2), points(-0.012, 1), points(0.00001, 2), points(0.0, 2)
    ('+1.20', '-1.2', '~0', '0')
    """
    if not change:
        return "0"
    shown = f"{100.0 * change:+.{decimals}f}"
    return shown if float(shown) else "~0"


def decimals_for(*weights: float) -> int:
    """With how many decimals percentages differ visibly: three digits of the largest, within 1..4.

    Examples
    --------
    >>> decimals_for(0.4), decimals_for(0.04), decimals_for(0.004), decimals_for(1e-9)
    (1, 2, 3, 4)
    """
    largest = 100.0 * max(map(abs, weights), default=0.0)
    return next((number for number, least in enumerate((10.0, 1.0, 0.1), 1) if largest >= least), 4)


# --- sentences ---

KINDS: dict[WeightKind, str] = {"mix": "share of the mixed forecast", "select": "chance of being the expert to follow"}
_WORTH_SAYING = 0.25
"""A further reason is named from this share of the first one on."""
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


def sentences(explanation: WeightExplanation) -> Iterator[str]:
    """How far the weight moved and mostly why; what its own forecasts did; what an equal weight would have been."""
    decimals = decimals_of(explanation)
    yield _moved(explanation, decimals)
    yield _own(explanation, decimals)
    yield _equal(explanation, decimals)


def decimals_of(explanation: WeightExplanation) -> int:
    """With how many decimals its numbers are shown: three digits of the larger weight, two of the other."""
    weights = explanation.since.weight, explanation.until.weight
    smaller = min((weight for weight in weights if weight), default=0.0)
    return max(decimals_for(*weights), decimals_for(smaller) - 1)


def span(explanation: WeightExplanation) -> str:
    """The two moments of an explanation: days, with times of day if it is the same one."""
    start, end = (datetime.fromisoformat(stand.asked or stand.at) for stand in (explanation.since, explanation.until))
    if start.date() != end.date():
        return f"Between {start:%-d %b %Y} and {end:%-d %b %Y}"
    return f"Between {start:%H:%M:%S} and {end:%H:%M:%S} on {end:%-d %b %Y}"


def _moved(explanation: WeightExplanation, decimals: int) -> str:
    start, end = (percent(stand.weight, decimals) for stand in (explanation.since, explanation.until))
    whose = f"{span(explanation)} {explanation.expert}'s {KINDS[explanation.weight]}"
    if not explanation.difference:
        return f"{whose} was {end} before and after" + (", in all." if explanation.causes else ": nothing moved it.")
    verb = "rose" if explanation.difference > 0 else "fell"
    first = "" if explanation.since.listed else " (not listed yet)"
    last = "" if explanation.until.listed else " (no longer listed)"
    change = points(explanation.difference, decimals).lstrip("+-")
    return f"{whose} {verb} from {start}{first} to {end}{last}, by {change} points{_because(explanation, decimals)}."


def _because(explanation: WeightExplanation, decimals: int) -> str:
    """The reasons that brought it there, and the one against them."""
    sign = 1.0 if explanation.difference > 0 else -1.0
    reasons = sorted(_reasons(explanation), key=lambda one: -sign * one.change)
    towards = [one for one in reasons if one.change * sign > 0]
    if not towards:
        return ""
    least = _WORTH_SAYING * abs(towards[0].change)
    amount = partial(_amount, explanation, decimals)
    said = [f"because {one.words} ({amount(one.change)})" for one in towards[:2] if abs(one.change) >= least]
    against = reasons[-1] if reasons[-1].change * sign < 0 and abs(reasons[-1].change) >= least else None
    contrary = "" if against is None else f"; against that, {against.words} ({amount(against.change)})"
    return f", mostly {' and '.join(said)}{contrary}"


def goes_beyond(explanation: WeightExplanation) -> bool:
    """Whether a cause did more than all of a weight: it raised the weight again and again while others lowered it."""
    return any(abs(change) > 1.0 for change in (explanation.own.change, *(one.change for one in explanation.causes)))


def _amount(explanation: WeightExplanation, decimals: int, change: float) -> str:
    """What a reason did: points, or its part of all that went the same way if points would go beyond 100."""
    if not goes_beyond(explanation):
        return points(change, decimals)
    alike = sum(one.change for one in _reasons(explanation) if (one.change > 0) == (change > 0))
    return f"{change / alike:.0%} of what {'raised' if change > 0 else 'lowered'} it"


def _reasons(explanation: WeightExplanation) -> Iterator[_Reason]:
    own = explanation.own
    if own.change:
        rose = own.change > 0
        number = own.raised if rose else own.questions - own.raised
        how = "better" if rose else "worse"
        of = f"{number:,} of " if number < own.questions else ""
        on = f"{', if only ' if 2 * number < own.questions else ' '}on {of}{many(own.questions, 'question')}"
        yield _Reason(own.change, f"its own forecasts did {how} than the average{on}")
    for one in explanation.causes:
        if one.cause in OWN:
            continue
        words = WORDS[one.cause]
        said = _listed(explanation, one.change) if one.cause == "listing" else ""
        yield _Reason(one.change, said or (words.rose if one.change > 0 else words.fell))


def _listed(explanation: WeightExplanation, change: float) -> str:
    """What came of who was listed, where it is plain: it came or left itself, or how many share has changed."""
    since, until = explanation.since, explanation.until
    if since.listed != until.listed and until.listed == (change > 0):
        return "it was listed" if until.listed else "it is no longer listed"
    if since.experts and until.experts and since.experts != until.experts:
        fewer = until.experts < since.experts
        return f"{until.experts:,} experts share the 100% instead of {since.experts:,}" if fewer == (change > 0) else ""
    return ""


def _own(explanation: WeightExplanation, decimals: int) -> str:
    own = explanation.own
    if not own.questions:
        return "None of its own forecasts counted in between."
    parts = [
        f"{name} {points(one.change, decimals)}"
        for cause, name in (("peer-loss", "provisional marks"), ("truth", "changes by outcomes"))
        for one in explanation.causes
        if one.cause == cause
    ]
    lowered = own.questions - own.raised
    by = "" if goes_beyond(explanation) else f" by {points(own.change, decimals)} points"
    text = (
        f"Its own forecasts of {many(own.questions, 'question')} moved it{by}, {own.raised:,} up and {lowered:,} down"
    )
    text += f" ({', '.join(parts)})." if by and len(parts) > 1 else "."
    most = next((one for one in explanation.questions if one.own * own.change > 0), None)
    return text if most is None else f"{text} Most of all {_example(most, decimals)}."


def _example(one: QuestionOfMove, decimals: int) -> str:
    moved = f"{one.question} ({points(one.own, decimals)})"
    forecast = forecast_of(one)
    return f"{moved}, where {forecast}" if forecast else moved


def forecast_of(one: QuestionOfMove) -> str:
    """What the expert said of a question, what the others think, and what the answer is."""
    if one.probability is None:
        return ""
    others = "yes" if one.reference_answer else "no"
    verdict = _VERDICTS["open" if one.outcome is None else one.outcome]
    return f"it said {percent(one.probability, 0)}, most others said {others}, and {verdict}"


def _equal(explanation: WeightExplanation, decimals: int) -> str:
    now = explanation.until.experts
    if not now:
        return "No expert has a weight now."
    before = explanation.since.experts
    equal = f"{percent(1.0 / now, decimals)} among the {many(now, 'expert')} at the end"
    if before and before != now:
        equal = f"{percent(1.0 / before, decimals)} among the {many(before, 'expert')} at the start, {equal}"
    return f"The weights of all experts add up to 100%. If all were equal, each would be {equal}."
