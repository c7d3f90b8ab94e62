"""Why an expert's weight moved, in words for a forecaster: what each cause is called, and what it means."""

from collections.abc import Mapping
from typing import NamedTuple

from stream_peer.tools.explain.weight_story.records import WeightKind
from stream_peer.tools.explain.weight_terms import Cause


class Words(NamedTuple):
    """How a cause is told.

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


WORDS: Mapping[Cause, Words] = {
    "listing": Words(
        "Experts who came or left",
        "The same 100% are shared by more experts, or by fewer.",
        "experts left, and what they had went to the rest",
        "experts came, and what they got came from the rest",
    ),
    "peer-loss": Words(
        "Its forecasts beside the other experts'",
        "Until the answer to a question is known, each forecast gets a provisional mark: how near it is to what most of"
        " the others think.",
        "its forecasts were near to what most of the others think",
        "its forecasts were far from what most of the others think",
    ),
    "truth": Words(
        "Its forecasts beside the truth",
        "When the answer to a question becomes known, the provisional mark is replaced by the real one.",
        "its forecasts were better than their provisional marks once the answers were known",
        "its forecasts were worse than their provisional marks once the answers were known",
    ),
    "ageing": Words(
        "Its older questions fade",
        "The feed is set to forget: what is long ago counts less.",
        "older questions, which spoke against it, count less by now",
        "older questions, which spoke for it, count less by now",
    ),
    "others": Words(
        "The marks of the other experts",
        "All weights add up to 100%: what others lose it wins, and what they win it loses.",
        "other experts did worse, and what they lost went to the rest",
        "other experts did better, and what they won came from the rest",
    ),
    "re-pricing": Words(
        "How much provisional marks are trusted",
        "The estimate of how often most of the experts are wrong together has changed; all provisional marks, old ones "
        "as well, count by the newest.",
        "all provisional marks were weighed anew",
        "all provisional marks were weighed anew",
    ),
    "mixers": Words(
        "Which way of weighing is used",
        "Weights are blended from several ways of weighing experts; known answers show which of them forecasts best.",
        "the ways of weighing that proved best give it more",
        "the ways of weighing that proved best give it less",
    ),
    "guard": Words(
        "Experts who say the same",
        "Experts who were found to copy each other share the weight of one.",
        "experts who say the same share one weight, which leaves it more",
        "experts who say the same share one weight, which leaves it less",
    ),
    "shrinkage": Words(
        "Caution",
        "While there is reason not to trust the feed's numbers, chances are moved towards equal ones, and back when"
        " there is none any more.",
        "caution, while the feed's numbers are not to be trusted, gives it more",
        "caution, while the feed's numbers are not to be trusted, gives it less",
    ),
    "safety-net": Words(
        "The safety net",
        "Where the blend has not done better than the plain average, it is moved towards equal weights for all, and"
        " back when it has.",
        "the safety net against a blend that does worse than the plain average gives it more",
        "the safety net against a blend that does worse than the plain average gives it less",
    ),
    "settings": Words(
        "Settings",
        "The settings of the feed were changed.",
        "settings were changed",
        "settings were changed",
    ),
    "operator": Words(
        "A step of the operator",
        "The feed was reset, imported or deleted.",
        "an operator reset, imported or deleted the feed",
        "an operator reset, imported or deleted the feed",
    ),
}

_TRUTH_IN_MIX = (
    "When the answer to a question becomes known, the ways of weighing that go by known answers mark the forecast by"
    " it; the one that goes by the other experts keeps the provisional mark."
)


def meaning_of(cause: Cause, weight: WeightKind) -> str:
    """What a cause means for a weight, in a sentence for somebody who meets it first."""
    return _TRUTH_IN_MIX if (cause, weight) == ("truth", "mix") else WORDS[cause].meaning


OWN: frozenset[Cause] = frozenset(("peer-loss", "truth", "ageing"))
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
    """With how many decimals percentages are told apart: three digits of the largest, within 1..4.

    Examples
    --------
    >>> decimals_for(0.4), decimals_for(0.04), decimals_for(0.004), decimals_for(1e-9)
    (1, 2, 3, 4)
    """
    largest = 100.0 * max(map(abs, weights), default=0.0)
    return next((number for number, least in enumerate((10.0, 1.0, 0.1), 1) if largest >= least), 4)
