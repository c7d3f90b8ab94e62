"""Votes, their majority, and the majority of all others: the live service's rule in its fastest form.

The same answers as rule ``majority`` of `ballots` gives, which also knows other rules and scopes.
"""

from typing import NamedTuple

import numpy as np

from stream_peer.numerics.losses import BoolArray, FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.losses.arguments import (
    BIT,
    COIN,
    FORECAST_ROW,
    FORECASTS,
    TEAMS,
    THRESHOLDS,
    checked,
    unchecked,
)
from stream_peer.numerics.references.exact import (
    check_coin,
    check_shape,
    distances,
    without_own,
)


class MajorityAnswer(NamedTuple):
    """The answer of everybody together.

    Attributes
    ----------
    answer : {0, 1}
        ŷ as it is published.
    tie : bool
        As many votes for 1 as for 0 (or none at all), so that the forecasts' mean or the coin decided.
    yes : int
        Votes for 1.
    voters : int
        Experts whose forecast is not exactly ½.
    """

    answer: int
    tie: bool
    yes: int
    voters: int


class LeaveOneOut(NamedTuple):
    """Each expert's own reference answer, to which it did not contribute.

    Attributes
    ----------
    answers : (..., n) int8
        ŷ_i, 0 or 1.
    ties : (..., n) bool
        Where the others' votes were tied.
    """

    answers: SmallIntArray
    ties: BoolArray


@checked(forecasts=FORECASTS, thresholds=THRESHOLDS)
def votes(forecasts: FloatArray, thresholds: FloatArray | None = None) -> SmallIntArray:
    """The side of its threshold on which each forecast lies.

    Parameters
    ----------
    forecasts : (..., n) float64
        Probabilities in [0, 1].
    thresholds : (..., n) float64, optional
        Each expert's own threshold in [0, 1], such as the median of its forecasts; without them ½.

    Returns
    -------
    (..., n) int8
        +1 above the threshold, -1 below, 0 at exactly the threshold: no vote.

    Examples
    --------
    >>> import numpy as np
    >>> votes(np.array([0.7, 0.5, 0.1]))
    array([ 1,  0, -1], dtype=int8)
    >>> votes(np.array([0.7, 0.5, 0.1]), thresholds=np.array([0.8, 0.2, 0.1]))
    array([-1,  1,  0], dtype=int8)
    """
    line = 0.5 if thresholds is None else thresholds
    return (forecasts > line).view(np.int8) - (forecasts < line).view(np.int8)


@checked(forecasts=FORECAST_ROW, coin=BIT)
def majority(forecasts: FloatArray, coin: int) -> MajorityAnswer:
    """Majority of all votes at ½: the published reference answer. Unanimity always wins.

    ``ŷ = 1 if Σ v_i > 0 else 0``, v_i = ±1. A tie goes to the side of ½ on which the mean of the voters' forecasts
    lies, and if that is exactly ½ to the coin. Experts are not scored against this answer but each against
    that of the others, see `leave_one_out`.

    Parameters
    ----------
    forecasts : (n,) float64
        Probabilities in [0, 1].
    coin : {0, 1}
        A fair coin, tossed by the caller.

    Returns
    -------
    MajorityAnswer

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If there is more than one round, or the coin is neither 0 nor 1.

    Examples
    --------
    >>> import numpy as np
    >>> majority(np.array([0.9, 0.4, 0.8, 0.5]), coin=0)
    MajorityAnswer(answer=1, tie=False, yes=2, voters=3)
    >>> majority(np.array([0.9, 0.4]), coin=0)
    MajorityAnswer(answer=1, tie=True, yes=1, voters=2)
    """
    return majority_of(unchecked(votes)(forecasts), forecasts, coin)


def majority_of(side: SmallIntArray, forecasts: FloatArray, coin: int) -> MajorityAnswer:
    """`majority` of votes at ½ that are at hand; nothing is checked.

    Parameters
    ----------
    side : (n,) int8
        `votes` of the forecasts.
    forecasts : (n,) float64
        Probabilities in [0, 1].
    coin : {0, 1}
        A fair coin, tossed by the caller.

    Returns
    -------
    MajorityAnswer

    Examples
    --------
    >>> import numpy as np
    >>> forecasts = np.array([0.9, 0.4, 0.8, 0.5])
    >>> majority_of(votes(forecasts), forecasts, coin=0).answer
    1
    """
    voters, yes = int(np.count_nonzero(side)), int(np.count_nonzero(side > 0))
    lead = yes + yes - voters
    if lead:
        return MajorityAnswer(int(lead > 0), tie=False, yes=yes, voters=voters)
    lean = int(np.add.reduce(distances(forecasts, None, side)))
    return MajorityAnswer(int(lean > 0) if lean else int(coin), tie=True, yes=yes, voters=voters)


@checked(forecasts=FORECASTS, coin=COIN, teams=TEAMS, thresholds=THRESHOLDS)
def leave_one_out(
    forecasts: FloatArray,
    coin: int | SmallIntArray | IntArray,
    teams: IntArray | None = None,
    thresholds: FloatArray | None = None,
) -> LeaveOneOut:
    """For each expert the majority of the votes of all others, in O(n).

    ``ŷ_i = 1 if Σ_{j≠i} v_j > 0 else 0``, v_j = ±1 at threshold ½ or at j's own. Ties: the side on which the
    forecasts of the *other voters* lie on average, as distances from their thresholds; if that is exactly 0, or
    nobody else votes, the coin.

    Notes
    -----
    Erratum E22: the paper's prediction model takes ŷ's error to be independent of the forecasts although ŷ is made
    of them. A majority that an expert voted in agrees with that expert too often: with 11 experts of
    error .35, an error of .20 reads as .13. Leaving out the expert (or its whole team) restores the assumption
    of Theorem 4.

    Parameters
    ----------
    forecasts : (..., n) float64
        Probabilities in [0, 1]. One at exactly its threshold casts no vote and still gets a reference answer.
    coin : {0, 1} or (...) array of them
        A fair coin for each round, tossed by the caller; the same for all experts of the round.
    teams : (n,) int64, optional
        Experts with equal numbers are one team and left out together; negative: in no team.
    thresholds : (..., n) float64, optional
        Each expert's own threshold in [0, 1]; without them ½.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If a threshold is NaN or outside [0, 1], a coin neither 0 nor 1, or there is not one threshold and one team
        number per expert and one coin per round.

    Examples
    --------
    >>> import numpy as np
    >>> leave_one_out(np.array([0.9, 0.6, 0.3]), coin=0).answers
    array([0, 1, 1], dtype=int8)

    The first expert's others are tied at one vote each and lean to no on average (.6 + .3 < 1), those of the second
    lean to yes:

    >>> leave_one_out(np.array([0.9, 0.6, 0.3]), coin=0).ties
    array([ True,  True, False])
    """
    check_coin(coin, forecasts.shape[:-1])
    if thresholds is not None:
        check_shape("thresholds", thresholds, forecasts.shape)
    return leave_one_out_of(unchecked(votes)(forecasts, thresholds), forecasts, coin, teams, thresholds)


def leave_one_out_of(
    side: SmallIntArray,
    forecasts: FloatArray,
    coin: int | SmallIntArray | IntArray,
    teams: IntArray | None = None,
    thresholds: FloatArray | None = None,
) -> LeaveOneOut:
    """`leave_one_out` of votes that are at hand; nothing is checked.

    Parameters
    ----------
    side : (..., n) int8
        `votes` of the forecasts at the thresholds.
    forecasts, coin, teams, thresholds
        As of `leave_one_out`.

    Returns
    -------
    LeaveOneOut

    Examples
    --------
    >>> import numpy as np
    >>> forecasts = np.array([0.9, 0.6, 0.3])
    >>> leave_one_out_of(votes(forecasts), forecasts, coin=0).answers
    array([0, 1, 1], dtype=int8)
    """
    if teams is None and side.ndim == 1:
        lead = int(np.add.reduce(side, dtype=np.int64))
        if abs(lead) > 1:  # without any one of them it is the same
            return LeaveOneOut(np.full(side.shape, lead > 0, np.int8), np.zeros(side.shape, np.bool_))
    leads = without_own(side.astype(np.int64), teams)
    answers = leads > 0
    ties = leads == 0
    if np.logical_or.reduce(ties, axis=None):
        lean = without_own(distances(forecasts, thresholds, side), teams)
        answers |= ties & (lean > (-coin if isinstance(coin, int) else -coin.astype(np.int64)[..., np.newaxis]))
    return LeaveOneOut(answers.view(np.int8), ties)
