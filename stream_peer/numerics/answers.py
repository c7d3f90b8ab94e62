"""Reference answers of the live service: the majority of votes, and the majority of all others.

The answer is the side of 0 on which the sum of the votes lies. A sum of exactly 0 is a tie and flagged. It goes to the
side on which the voters' forecasts lie on average, as distances from their thresholds, and if they balance too, to a
coin that the caller tossed. Distances are whole units of 2^-40: sums are exact, so the order of experts cannot change
an answer.
"""

from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    BIT,
    COIN,
    FORECAST_ROW,
    FORECASTS,
    TEAMS,
    THRESHOLDS,
    BoolArray,
    FloatArray,
    IntArray,
    SmallIntArray,
    checked,
    unchecked,
)

__all__ = ["LeaveOneOut", "MajorityAnswer", "leave_one_out", "majority", "votes"]

UNIT = float(2**40)

_HALF = 2**39


def distances(forecasts: FloatArray, thresholds: FloatArray | None, side: SmallIntArray) -> IntArray:
    """Signed distances from the thresholds (without them ½) in units; 0 for those that do not vote."""
    line = _HALF if thresholds is None else np.rint(thresholds * UNIT).astype(np.int64)
    whole = np.rint(forecasts * UNIT).astype(np.int64) - line
    return np.where(whole == 0, side, whole)


def without_own(values: IntArray, teams: IntArray | None) -> IntArray:
    """Sum over the last axis less one's own value, or less those of one's team, for everybody in O(n)."""
    others: IntArray = np.add.reduce(values, axis=-1, keepdims=True) - values
    if teams is None:
        return others
    in_team = teams >= 0
    place, n_teams = _numbered(teams[in_team])
    members = np.moveaxis(values[..., in_team], -1, 0)
    of_team = np.zeros((n_teams, *values.shape[:-1]), dtype=np.int64)
    np.add.at(of_team, place, members)
    others[..., in_team] += np.moveaxis(members - of_team[place], 0, -1)
    return others


def team_numbers(teams: IntArray) -> tuple[IntArray, int]:
    """Each expert's team, numbered from 0, those in no team being one each; and how many numbers there may be."""
    in_team = teams >= 0
    place, n_teams = _numbered(teams[in_team])
    numbers = np.empty(len(teams), dtype=np.int64)
    numbers[in_team] = place
    alone = len(teams) - len(place)
    numbers[~in_team] = np.arange(n_teams, n_teams + alone)
    return numbers, n_teams + alone


def _numbered(names: IntArray) -> tuple[IntArray, int]:
    """Team numbers from 0 and how many there may be. Small ones are taken as they are, which spares sorting."""
    largest = int(np.maximum.reduce(names, initial=-1))
    if largest < 8 * names.size:
        return names, largest + 1
    known, place = np.unique(names, return_inverse=True)
    return place, known.size


def check_shape(name: str, values: FloatArray | IntArray | SmallIntArray | BoolArray, shape: tuple[int, ...]) -> None:
    """Refuse an array that does not broadcast to a shape."""
    found = values.shape
    if len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1], strict=False)):
        msg = f"{name} has the shape {found}, which does not fit {shape}"
        raise FormulaInputError(msg)


def check_coin(coin: int | SmallIntArray | IntArray, rounds: tuple[int, ...]) -> None:
    """Refuse coins that are not one for each round."""
    if not isinstance(coin, int):
        check_shape("coin", coin, rounds)


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


def majority_of(
    side: SmallIntArray, forecasts: FloatArray, coin: int, thresholds: FloatArray | None = None
) -> MajorityAnswer:
    """`majority` of votes that are at hand; nothing is checked.

    Parameters
    ----------
    side : (n,) int8
        `votes` of the forecasts at the thresholds.
    forecasts : (n,) float64
        Probabilities in [0, 1].
    coin : {0, 1}
        A fair coin, tossed by the caller.
    thresholds : (n,) float64, optional
        Without them ½.

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
    lean = int(np.add.reduce(distances(forecasts, thresholds, side)))
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
