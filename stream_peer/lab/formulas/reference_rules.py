"""Reference answers by other rules, and of other experts than all others.

A rule turns each forecast into one number, its ballot: majority, weighted majority, mean and product, with thresholds
of ½ or each expert's own. The answer is the side of 0 on which the sum of the ballots lies, so the answers of
everybody, of all but one expert, of all but its team, or of one of two groups follow from the same ballots in O(n).
Ties are as in `numerics.answers`.
"""

import math
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from stream_peer.errors import ForecastRangeError, FormulaInputError
from stream_peer.numerics.answers import (
    UNIT,
    check_coin,
    check_shape,
    distances,
    votes,
    without_own,
)
from stream_peer.numerics.arguments import (
    AWAKE,
    COIN,
    TEAMS,
    THRESHOLDS,
    BoolArray,
    Each,
    Fields,
    FloatArray,
    Has,
    IntArray,
    Numbers,
    Optional,
    SmallIntArray,
    checked,
    unchecked,
)
from stream_peer.numerics.losses import portable_log

__all__ = [
    "Ballots",
    "GroupAnswers",
    "ReferenceAnswers",
    "ReferenceRule",
    "answers_of_all",
    "answers_of_groups",
    "answers_of_other_group",
    "answers_of_others",
    "ballots",
]

MOST_SURE = 0.48
"""Log odds are taken of probabilities clipped to within this distance from ½."""

LARGEST_WEIGHT = 16.0
"""Only ratios of weights matter, so scale them."""

_LARGEST_SCORE = 8.0
"""Of one expert without weight: the distance of two log odds of probabilities within [.02, .98]."""

_LARGEST_SUM = 2.0**63
"""Sums of ballots are whole numbers of 64 bits."""


def in_units(values: FloatArray, side: SmallIntArray) -> IntArray:
    """Values in units, at least one unit to the side on which each lies, so that no vote is rounded away."""
    whole = np.rint(values * UNIT).astype(np.int64)
    return np.where(whole == 0, side, whole)


def log_odds(forecasts: FloatArray) -> FloatArray:
    """``ln(p/(1-p))`` of forecasts clipped to [.02, .98]; of p and 1-p exactly opposite, on every processor alike."""
    sure = np.minimum(np.abs(forecasts - 0.5), MOST_SURE)
    return np.copysign(unchecked(portable_log)((0.5 + sure) / (0.5 - sure)), forecasts - 0.5)


class ReferenceRule(StrEnum):
    """What an expert's forecast p with threshold θ adds to the sum whose sign is the answer.

    v = ±1 is the side of θ on which p lies (0: on it), w the expert's weight, λ(p) = ln(p/(1-p)) of p clipped to
    [.02, .98].
    """

    MAJORITY = "majority"
    """v"""
    WEIGHTED = "weighted"
    """w·v"""
    MEAN = "mean"
    """w·(p - θ)"""
    PRODUCT = "product"
    """w·(λ(p) - λ(θ))"""


class Ballots(NamedTuple):
    """What each expert adds to a reference answer, in whole units of 2^-40.

    Attributes
    ----------
    rule : ReferenceRule
        By which they were made.
    values : (..., n) int64
        The sign of their sum is the answer.
    leans : (..., n) int64
        Signed distances of the voters' forecasts from their thresholds: the sign of their sum decides ties.
    mass : (..., n) int64
        The weight of each expert that counts in a mean of the others.
    present : (..., n) bool
        Who has a forecast.
    """

    rule: ReferenceRule
    values: IntArray
    leans: IntArray
    mass: IntArray
    present: BoolArray


def _check_ballots(ballots: Ballots) -> None:
    """Refuse ballots of other experts, and ballots whose sums would overflow."""
    shapes = {np.shape(column) for column in ballots[1:]}
    if len(shapes) > 1:
        msg = f"ballots have the shapes {sorted(shapes)}, which do not fit one another"
        raise FormulaInputError(msg)
    for name in ("values", "leans", "mass"):
        largest = np.add.reduce(np.abs(getattr(ballots, name).astype(np.float64)), axis=-1)
        if np.maximum.reduce(largest, axis=None, initial=0.0) >= _LARGEST_SUM:
            msg = f"ballots.{name} sum to {float(largest.max()):g}, more than {_LARGEST_SUM:g}"
            raise FormulaInputError(msg)


_UNITS = Numbers("... n", -(2.0**62), 2.0**62, kind=np.int64)
BALLOTS = Fields(
    Ballots,
    {"values": _UNITS, "leans": _UNITS, "mass": replace(_UNITS, low=0.0), "present": Numbers("... n", kind=np.bool_)},
    _check_ballots,
)


@checked(
    forecasts=Numbers("... n", 0.0, 1.0, where="present", error=ForecastRangeError),
    rule=Has(()),
    thresholds=THRESHOLDS,
    weights=Optional(Numbers("... n", high=LARGEST_WEIGHT)),
    present=AWAKE,
)
def ballots(
    forecasts: FloatArray,
    rule: ReferenceRule | str = ReferenceRule.MAJORITY,
    *,
    thresholds: FloatArray | None = None,
    weights: FloatArray | None = None,
    present: BoolArray | None = None,
) -> Ballots:
    """Turn forecasts into the numbers whose sum gives the reference answer, for whatever set of experts is asked.

    ``ŷ = 1 if Σ b_i > 0 else 0`` with b as in `ReferenceRule`. A forecast off its threshold gets a ballot of at least
    one unit, so that unanimous experts get their answer under every rule.

    Notes
    -----
    The paper's section "Peer prediction" names the majority, and the likelier outcome by comparing ``Π p_i`` with
    ``Π(1 - p_i)``: rule ``product``, but with unclipped forecasts. There any forecast of 1 makes the second product 0
    and any of 0 the first, so that one expert decides alone, and two opposite ones tie whatever the others
    say. Clipped, a hard 0 or 1 counts as .02 or .98, about as much as four forecasts of .73.

    Optimal weights of a vote with independent errors e are ``ln((1-e)/e)``.

    Parameters
    ----------
    forecasts : (..., n) float64
        Probabilities in [0, 1]; anything, NaN too, where not `present`.
    rule : ReferenceRule or its name
        ``majority``, ``weighted`` (majority), ``mean`` or ``product``.
    thresholds : (..., n) float64, optional
        Each expert's own threshold in [0, 1], such as its median; without them ½.
    weights : (..., n) float64, optional
        At most 16; negative ones count as 0, and who has weight 0 only takes part in the decision of ties. Ratios
        finer than 2^-40 are lost. Rule ``weighted`` needs them, ``mean`` and ``product`` may have them.
    present : (..., n) bool, optional
        False for experts without a forecast; without it all have one.

    Returns
    -------
    Ballots

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If the rule is unknown, a threshold is outside [0, 1], a weight is not finite or above 16, weights are
        missing or have no place in the rule, or an array does not fit the forecasts.

    Examples
    --------
    >>> import numpy as np
    >>> forecasts = np.array([0.9, 0.4, 0.4])
    >>> (ballots(forecasts, "majority").values / 2**40).tolist()
    [1.0, -1.0, -1.0]
    >>> (ballots(forecasts, "mean").values / 2**40).round(3).tolist()
    [0.4, -0.1, -0.1]
    >>> (ballots(forecasts, "product").values / 2**40).round(3).tolist()
    [2.197, -0.405, -0.405]
    """
    chosen = _known(rule)
    if thresholds is not None:
        check_shape("thresholds", thresholds, forecasts.shape)
    line = 0.5 if thresholds is None else thresholds
    if present is not None:
        check_shape("present", present, forecasts.shape)
    here = np.broadcast_to(np.True_ if present is None else present, forecasts.shape)
    counted = forecasts if present is None else np.where(present, forecasts, line)
    weight = _weights(chosen, weights, counted.shape)
    side = unchecked(votes)(counted, thresholds)
    leans = distances(counted, thresholds, side)
    score = _scores(chosen, counted, side, leans, thresholds)
    heard = (weight > 0.0) & (here if chosen is ReferenceRule.MEAN else side != 0)
    values = in_units(weight * score, side * (weight > 0.0))
    return Ballots(chosen, values, leans, in_units(weight * heard, heard.astype(np.int8)), here)


def _known(rule: ReferenceRule | str) -> ReferenceRule:
    try:
        return ReferenceRule(rule)
    except ValueError:
        msg = f"reference rule is {rule!r}, not one of {', '.join(ReferenceRule)}"
        raise FormulaInputError(msg) from None


def _weights(rule: ReferenceRule, weights: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    """Weights of at least 0, or ones."""
    if (weights is None and rule is ReferenceRule.WEIGHTED) or (weights is not None and rule is ReferenceRule.MAJORITY):
        msg = f"rule {rule.value!r} {'needs' if weights is None else 'takes no'} weights"
        raise FormulaInputError(msg)
    if weights is None:
        return np.ones(shape)
    check_shape("weights", weights, shape)
    heaviest = shape[-1] * LARGEST_WEIGHT * _LARGEST_SCORE * UNIT
    scale = 0.5 ** max(math.ceil(math.log2(max(heaviest / _LARGEST_SUM, 1.0))), 0)  # below 1 for 65,537 experts or more
    return np.broadcast_to(scale * np.maximum(weights, 0.0), shape)


def _scores(
    rule: ReferenceRule, forecasts: FloatArray, side: SmallIntArray, leans: IntArray, thresholds: FloatArray | None
) -> FloatArray:
    """Unweighted ballots, before they are rounded."""
    if rule is ReferenceRule.MEAN:
        return leans / UNIT
    if rule is ReferenceRule.PRODUCT:
        odds = log_odds(forecasts)
        return odds if thresholds is None else odds - log_odds(thresholds)
    return side.astype(np.float64)


class ReferenceAnswers(NamedTuple):
    """Reference answers, one per round or one per expert.

    Attributes
    ----------
    answers : (...) or (..., n) int8
        ŷ, 0 or 1; where `given` is False the coin.
    ties : (...) or (..., n) bool
        Where the ballots added up to 0, so that the forecasts' mean distance from their thresholds or the coin decided.
    given : (...) or (..., n) bool
        False where nobody was there to ask: no reference answer.
    """

    answers: SmallIntArray
    ties: BoolArray
    given: BoolArray


class GroupAnswers(NamedTuple):
    """The reference answers of two groups, one each per round.

    Attributes
    ----------
    a, b : ReferenceAnswers
        ŷ_A and ŷ_B.
    """

    a: ReferenceAnswers
    b: ReferenceAnswers


_MEMBERS = Numbers("... n", kind=np.bool_)
_ANSWERS = Fields(
    ReferenceAnswers,
    {
        "answers": Numbers("*", 0, 1, kind=np.int8),
        "ties": Numbers("*", kind=np.bool_),
        "given": Numbers("*", kind=np.bool_),
    },
)
_GROUPS = Fields(GroupAnswers, {"a": _ANSWERS, "b": _ANSWERS})


@checked(ballots=BALLOTS, coin=COIN)
def answers_of_all(ballots: Ballots, coin: int | SmallIntArray | IntArray) -> ReferenceAnswers:
    """The answer of everybody together.

    ``ŷ = 1 if Σ b_i > 0 else 0``. Under rule ``majority`` at threshold ½ it is the published answer, see `majority`.

    Parameters
    ----------
    ballots : Ballots
        Of experts along the last axis.
    coin : {0, 1} or (...) array of them
        A fair coin for each round, tossed by the caller.

    Returns
    -------
    ReferenceAnswers
        One per round.

    Raises
    ------
    FormulaInputError
        If a coin is neither 0 nor 1, or there is not one per round.

    Examples
    --------
    >>> import numpy as np
    >>> forecasts = np.array([[0.9, 0.4, 0.4], [0.9, 0.1, 0.1]])
    >>> answers_of_all(ballots(forecasts, "majority"), coin=0).answers.tolist()
    [0, 0]
    >>> answers_of_all(ballots(forecasts, "mean"), coin=0).answers.tolist()
    [1, 0]
    """
    return _of_members(ballots, np.ones(1, dtype=np.bool_), coin)


@checked(ballots=BALLOTS, coin=COIN, teams=TEAMS)
def answers_of_others(
    ballots: Ballots, coin: int | SmallIntArray | IntArray, teams: IntArray | None = None
) -> ReferenceAnswers:
    """For each expert the answer of all others, or of all who are not in its team.

    ``ŷ_i = 1 if Σ_{j≠i} b_j > 0 else 0``: the leave-one-out reference under any rule. See `leave_one_out` for why an
    expert is not asked about itself; under rule ``majority`` both give the same answers.

    Parameters
    ----------
    ballots : Ballots
        Of n experts along the last axis. Absent ones get an answer as well.
    coin : {0, 1} or (...) array of them
        A fair coin for each round, tossed by the caller; the same for all experts of the round.
    teams : (n,) int64, optional
        Experts with equal numbers are one team and left out together; negative: in no team.

    Returns
    -------
    ReferenceAnswers
        One per expert.

    Raises
    ------
    FormulaInputError
        If there is not one team number per expert and one coin per round, or a coin is neither 0 nor 1.

    Examples
    --------
    >>> import numpy as np
    >>> answers_of_others(ballots(np.array([0.9, 0.4, 0.4]), "product"), coin=0).answers.tolist()
    [0, 1, 1]
    """
    check_coin(coin, ballots.values.shape[:-1])
    of_others = without_own(np.stack((ballots.values, ballots.leans, ballots.present)), teams)
    return _decided(of_others[0], of_others[1], of_others[2] > 0, np.asarray(coin)[..., np.newaxis])


@checked(ballots=BALLOTS, in_a=_MEMBERS, coins=Each(COIN, 2))
def answers_of_groups(
    ballots: Ballots, in_a: BoolArray, coins: tuple[int | SmallIntArray | IntArray, int | SmallIntArray | IntArray]
) -> GroupAnswers:
    """The answers of the paper's two groups, of which each serves to score the other.

    ``ŷ_A`` is made of the ballots of the experts of A, ``ŷ_B`` of those of all others. The groups may be the same in
    every round, or drawn afresh for each: then both have the same error rate.

    Parameters
    ----------
    ballots : Ballots
        Of n experts along the last axis.
    in_a : (n,) or (..., n) bool
        Who belongs to A.
    coins : two of {0, 1} or (...) arrays of them
        A fair coin for A and another one for B: with a common one, two tied groups would always agree.

    Returns
    -------
    GroupAnswers
        ``given`` is False for a group of which nobody is present.

    Raises
    ------
    FormulaInputError
        If `in_a` does not say of each expert whether it belongs to A, a coin is neither 0 nor 1, or there is not one
        of each per round.

    Examples
    --------
    >>> import numpy as np
    >>> found = answers_of_groups(ballots(np.array([0.9, 0.8, 0.4])), np.array([True, True, False]), coins=(0, 0))
    >>> int(found.a.answers), int(found.b.answers)
    (1, 0)
    """
    n_experts = ballots.values.shape[-1]
    if in_a.shape[-1:] != (n_experts,):
        msg = f"in_a has the shape {in_a.shape}, not (..., {n_experts}): one membership per expert"
        raise FormulaInputError(msg)
    return GroupAnswers(_of_members(ballots, in_a, coins[0]), _of_members(ballots, ~in_a, coins[1]))


def _check_members(groups: GroupAnswers, in_a: BoolArray) -> None:
    """Refuse groups of other rounds."""
    shapes = {np.shape(part) for answers in groups for part in answers}
    try:
        fits = len(shapes) == 1 and np.broadcast_shapes((*shapes.pop(), in_a.shape[-1]), in_a.shape)
    except ValueError:
        fits = False
    if not fits:
        msg = f"in_a has the shape {in_a.shape}, which does not fit the groups' answers"
        raise FormulaInputError(msg)


@checked(_check_members, groups=_GROUPS, in_a=_MEMBERS)
def answers_of_other_group(groups: GroupAnswers, in_a: BoolArray) -> ReferenceAnswers:
    """For each expert the answer of the group to which it does not belong: A's members get ŷ_B, B's get ŷ_A.

    Parameters
    ----------
    groups : GroupAnswers
        As `answers_of_groups` gives them.
    in_a : (n,) or (..., n) bool
        Who belongs to A.

    Returns
    -------
    ReferenceAnswers
        One per expert; ``given`` is False where the other group is empty.

    Examples
    --------
    >>> import numpy as np
    >>> in_a = np.array([True, True, False])
    >>> groups = answers_of_groups(ballots(np.array([0.9, 0.8, 0.4])), in_a, coins=(0, 0))
    >>> answers_of_other_group(groups, in_a).answers.tolist()
    [0, 0, 1]
    """
    pairs = zip(groups.a, groups.b, strict=True)
    return ReferenceAnswers(
        *(np.where(in_a, np.asarray(b)[..., np.newaxis], np.asarray(a)[..., np.newaxis]) for a, b in pairs)
    )


def _of_members(ballots: Ballots, members: BoolArray, coin: int | SmallIntArray | IntArray) -> ReferenceAnswers:
    lead = np.add.reduce(ballots.values * members, axis=-1)
    lean = np.add.reduce(ballots.leans * members, axis=-1)
    given = np.logical_or.reduce(ballots.present & members, axis=-1)
    check_coin(coin, lead.shape)
    return _decided(lead, lean, given, np.asarray(coin))


def _decided(lead: IntArray, lean: IntArray, given: BoolArray, coin: SmallIntArray | IntArray) -> ReferenceAnswers:
    ties = lead == 0
    side = np.where(ties, lean, lead)
    answers = (side > 0) | ((side == 0) & (coin != 0))
    return ReferenceAnswers(np.asarray(answers, dtype=np.int8), np.asarray(ties), np.asarray(given))
