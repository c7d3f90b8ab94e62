"""Votes as they count where some experts are held together: who says the same is one unit, with the guard on.

A unit votes once, where a majority is taken: with the sign of its members' summed votes, or not at all if they are
tied. It is left out as a team, as far as its own reference answers go, and shares one weight.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.answers import LeaveOneOut, MajorityAnswer, leave_one_out_of, majority_of, team_numbers
from stream_peer.numerics.arguments import BoolArray, FloatArray, IndexArray, IntArray, SmallIntArray

NONE = -1


class Groups(NamedTuple):
    """Groups of some experts.

    Attributes
    ----------
    numbers : (n,) int64
        Of the group that each is in; negative: in none.
    weightless : (n,) bool
        Who has no weight; all of them are one group.
    """

    numbers: IntArray
    weightless: BoolArray

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]], n_experts: int, weightless: Sequence[int] = ()) -> "Groups":
        """Groups that are given by the places of their members.

        Examples
        --------
        >>> Groups.of([[2, 0]], 4, weightless=[3])
        Groups(numbers=array([ 0, -1,  0,  1]), weightless=array([False, False, False,  True]))
        """
        numbers, is_weightless = np.full(n_experts, NONE, np.int64), np.zeros(n_experts, np.bool_)
        for number, group in enumerate((*groups, weightless)):
            numbers[list(group)] = number
        is_weightless[list(weightless)] = True
        return cls(numbers, is_weightless)

    def at(self, places: IndexArray) -> "Groups":
        """Those of some of the experts."""
        return Groups(self.numbers[places], self.weightless[places])

    @property
    def voices(self) -> FloatArray | None:
        """How much of a voice each has: a group of k has one, 1/k a member; the weightless have none.

        None if nobody else is there than the weightless.

        Examples
        --------
        >>> Groups.of([[0, 1]], 4, weightless=[3]).voices.tolist()
        [0.5, 0.5, 1.0, 0.0]
        """
        if bool(self.weightless.all()):
            return None
        number, n_units = team_numbers(self.numbers)
        voices: FloatArray = 1.0 / np.bincount(number, minlength=n_units)[number]
        voices[self.weightless] = 0.0
        return voices

    def with_newcomers(self, new: BoolArray) -> "Groups":
        """With those newcomers as one more group who are in none.

        Examples
        --------
        >>> Groups.of([[0, 1]], 5).with_newcomers(np.array([True, False, False, True, True])).numbers.tolist()
        [0, 0, -1, 1, 1]
        """
        numbers = self.numbers.copy()
        numbers[new & (numbers < 0)] = int(np.maximum.reduce(numbers, initial=NONE)) + 1
        return Groups(numbers, self.weightless)

    def widened(self, more: int) -> "Groups":
        """With so many more experts, who are in no group."""
        return Groups(np.pad(self.numbers, (0, more), constant_values=NONE), np.pad(self.weightless, (0, more)))


_NEW_BELOW, _OF_REGULARS = 50.0, 1.0 / 3.0  # docs/quality.md has what other values give, also under attack
_REGULARS = 4
_ROUNDING = 1e-9  # voices of a group are fractions, and their sum may lack a trace of a whole number


def newcomers(answered: FloatArray, voices: FloatArray | None = None) -> BoolArray:
    """Who is new among those present: below 50 questions, and below a third of those of the fourth most active.

    At the beginning of a feed everybody has answered as little, and nobody is new.

    Parameters
    ----------
    answered : (n,) float64
        Questions that each has answered before.
    voices : (n,) float64, optional
        How much each counts as one of four, see `Groups.voices`: no group makes others new.

    Returns
    -------
    (n,) bool

    Examples
    --------
    >>> newcomers(np.array([90.0, 0.0, 30.0, 60.0, 9.0, 29.0])).tolist()
    [False, True, False, False, True, False]
    """
    # Nobody is new, without sorting: the fourth has answered no more than the first. That is the usual case.
    most = float(np.maximum.reduce(answered, initial=0.0))
    if float(np.minimum.reduce(answered, initial=most)) >= min(_NEW_BELOW, _OF_REGULARS * most):
        return np.zeros(len(answered), np.bool_)
    order = np.argsort(-answered, kind="stable")
    heard = np.cumsum(np.ones(len(order)) if voices is None else voices[order])
    fourth = int(np.searchsorted(heard, _REGULARS - _ROUNDING))
    if fourth == len(order):
        return np.zeros(len(order), np.bool_)
    new: BoolArray = answered < min(_NEW_BELOW, _OF_REGULARS * float(answered[order[fourth]]))
    return new


def united_numbers(teams: IntArray, groups: IntArray) -> IntArray:
    """Numbers of teams that hold a group together: what shares a member becomes one.

    Examples
    --------
    >>> united_numbers(np.array([0, 0, -1, 1, -1]), np.array([-1, 5, 5, -1, -1])).tolist()
    [0, 0, 0, 1, -1]
    """
    numbers = teams.copy()
    fresh = int(np.maximum.reduce(teams, initial=NONE)) + 1
    for group in np.unique(groups[groups >= 0]).tolist():
        members = groups == group
        touched = numbers[members]
        touched = touched[touched >= 0]
        first = int(np.minimum.reduce(touched)) if len(touched) else fresh + group
        numbers[members | (np.isin(numbers, touched) if len(touched) else False)] = first
    return numbers


class Units(NamedTuple):
    """Votes as they count: a group is one unit, everybody else is one alone.

    Attributes
    ----------
    number : (n,) int64
        Of each expert the unit.
    side : (n_units,) int8
    forecasts : (n_units,) float64
        Of the first member that votes as its unit does; the threshold where the unit does not vote.
    thresholds : (n_units,) float64, optional
    teams : (n_units,) int64, optional
    """

    number: IntArray
    side: SmallIntArray
    forecasts: FloatArray
    thresholds: FloatArray | None
    teams: IntArray | None

    def majority(self, coin: int) -> MajorityAnswer:
        """The answer of everybody together; unanimity wins."""
        return majority_of(self.side, self.forecasts, coin)

    def leave_one_out(self, coin: int) -> LeaveOneOut:
        """Each expert's own reference answer: that of all units but its own, or those of its team."""
        answers, ties = leave_one_out_of(self.side, self.forecasts, coin, self.teams, self.thresholds)
        return LeaveOneOut(answers[self.number], ties[self.number])


def united(
    side: SmallIntArray, forecasts: FloatArray, thresholds: FloatArray | None, groups: IntArray, teams: IntArray | None
) -> Units:
    """Votes of experts as units.

    Parameters
    ----------
    side : (n,) int8
        +1, -1, 0 for no vote.
    forecasts : (n,) float64
    thresholds : (n,) float64, optional
    groups : (n,) int64
        Experts with equal numbers are one group, negative: in none.
    teams : (n,) int64, optional
        Likewise for teams, of which groups are parts.

    Examples
    --------
    >>> units = united(
    ...     np.array([1, 1, -1, -1], np.int8), np.array([0.9, 0.8, 0.2, 0.3]), None, np.array([0, 0, 0, -1]), None
    ... )
    >>> units.side.tolist(), units.number.tolist()
    ([1, -1], [0, 0, 0, 1])
    """
    number, n_units = team_numbers(groups)
    lead = np.bincount(number, side, n_units)
    unit_side = np.sign(lead).astype(np.int8)
    line = np.full(len(side), 0.5) if thresholds is None else thresholds
    said, lines = np.full(n_units, 0.5), np.full(n_units, 0.5)
    of_unit = np.full(n_units, NONE, np.int64)
    speaks = (side == unit_side[number]) & (side != 0)
    said[number[::-1]] = lines[number[::-1]] = line[::-1]
    said[number[speaks][::-1]], lines[number[speaks][::-1]] = forecasts[speaks][::-1], line[speaks][::-1]
    if teams is not None:
        of_unit[number] = teams
    return Units(number, unit_side, said, None if thresholds is None else lines, None if teams is None else of_unit)
