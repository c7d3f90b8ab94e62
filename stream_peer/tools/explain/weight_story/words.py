"""Why an expert's weight moved, in words for a forecaster: what each cause is called, and what it means."""

from collections.abc import Mapping
from typing import NamedTuple

from stream_peer.serve.explanation import CauseKind, WeightKind


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
        "Settings",
        "The settings of the feed were changed.",
        "settings were changed",
        "settings were changed",
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
    " mark; the one that learns from the other experts keeps the provisional mark."
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
    """With how many decimals percentages are told apart: three digits of the largest, within 1..4.

    Examples
    --------
    >>> decimals_for(0.4), decimals_for(0.04), decimals_for(0.004), decimals_for(1e-9)
    (1, 2, 3, 4)
    """
    largest = 100.0 * max(map(abs, weights), default=0.0)
    return next((number for number, least in enumerate((10.0, 1.0, 0.1), 1) if largest >= least), 4)
