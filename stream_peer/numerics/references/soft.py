"""Reference answers between 0 and 1: how far the others are on the side of 1."""

from typing import NamedTuple

import numpy as np

from stream_peer.numerics.losses import BoolArray, FloatArray, IntArray
from stream_peer.numerics.losses.arguments import TEAMS, checked
from stream_peer.numerics.references.exact import UNIT, without_own
from stream_peer.numerics.references.rules import BALLOTS, Ballots, ReferenceRule


class SoftAnswers(NamedTuple):
    """Soft reference answers, one per expert.

    Attributes
    ----------
    answers : (..., n) float64
        In [0, 1]; ½ where `given` is False.
    given : (..., n) bool
        False where nobody else had a say: no reference answer.
    """

    answers: FloatArray
    given: BoolArray


@checked(ballots=BALLOTS, teams=TEAMS)
def soft_answers_of_others(ballots: Ballots, teams: IntArray | None = None) -> SoftAnswers:
    """For each expert how far all others, or all who are not in its team, are on the side of 1.

    ==============  =========================================================
    rule            soft answer
    ==============  =========================================================
    ``majority``    share of yes among the others' votes
    ``weighted``    share of yes in the weight of the others' votes
    ``mean``        (weighted) mean of the others' forecasts
    ``product``     posterior ``1/(1 + exp(-Σ b_j))`` if signals are independent
    ==============  =========================================================

    Thresholds shift the line to which ½ corresponds; a mean that they shift out of [0, 1] is clipped.

    Notes
    -----
    All peer losses stay right if ŷ is read linearly, with ``η0 = E[ŷ | y=0]`` and ``η1 = E[1 - ŷ | y=1]``. Where
    base rates are far from ½ soft references make them less noisy. The posterior is read with a hyperbolic tangent,
    whose last bit differs between processors.

    Parameters
    ----------
    ballots : Ballots
        Of n experts along the last axis.
    teams : (n,) int64, optional
        Experts with equal numbers are one team and left out together; negative: in no team.

    Returns
    -------
    SoftAnswers

    Raises
    ------
    FormulaInputError
        If there is not one team number per expert.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.references import ballots
    >>> forecasts = np.array([0.9, 0.6, 0.3])
    >>> soft_answers_of_others(ballots(forecasts, "majority")).answers.tolist()
    [0.5, 0.5, 1.0]
    >>> soft_answers_of_others(ballots(forecasts, "mean")).answers.round(3).tolist()
    [0.45, 0.6, 0.75]
    >>> soft_answers_of_others(ballots(forecasts, "product")).answers.round(3).tolist()
    [0.391, 0.794, 0.931]
    """
    lead, mass = without_own(ballots.values, teams), without_own(ballots.mass, teams)
    given = mass > 0
    return SoftAnswers(np.where(given, _read(ballots.rule, lead, np.maximum(mass, 1)), 0.5), given)


def _read(rule: ReferenceRule, lead: IntArray, mass: IntArray) -> FloatArray:
    if rule is ReferenceRule.PRODUCT:
        return 0.5 + 0.5 * np.tanh(0.5 * (lead / UNIT))
    if rule is ReferenceRule.MEAN:
        return np.clip(0.5 + lead / mass, 0.0, 1.0)
    return 0.5 + 0.5 * (lead / mass)
