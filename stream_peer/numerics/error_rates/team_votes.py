"""Moments of a round's votes where experts are in teams: a team is one voter, its vote the mean of its members'.

Members of a team may copy one another; only what different teams say is taken to be independent given the outcome.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.answers import team_numbers
from stream_peer.numerics.arguments import (
    BITS,
    TEAMS,
    VOTES,
    Fields,
    FloatArray,
    IntArray,
    Numbers,
    SmallIntArray,
    checked,
)
from stream_peer.numerics.error_rates.class_moments import ClassMomentTerms
from stream_peer.numerics.error_rates.moments import MomentTerms

__all__ = ["TeamVotes", "agreement_of_teams", "class_terms_of_teams", "share_of_ones", "team_votes"]


class TeamVotes(NamedTuple):
    """What each team with a voter says; an expert in no team is one by itself.

    Attributes
    ----------
    votes : (n_teams,) float64
        x_T, the mean of the members' votes, in [-1, 1].
    yes : (n_teams,) float64
        u_T, the share of them that are yes.
    agreed : (n_teams,) float64
        Mean over the members of v_i·(2ŷ_i - 1).
    answers : (n_teams,) float64
        Mean of the members' own reference answers; all have the same if the whole team was left out.
    both : (n_teams,) float64
        Share of the members whose vote is yes and whose reference answer is 1.
    """

    votes: FloatArray
    yes: FloatArray
    agreed: FloatArray
    answers: FloatArray
    both: FloatArray

    @property
    def voters(self) -> int:
        """Independent ones: how many teams there are."""
        return len(self.votes)


@checked(votes=VOTES, reference_answers=BITS, teams=Numbers("n", low=-(2**53), high=2**53, kind=np.int64))
def team_votes(votes: SmallIntArray, reference_answers: SmallIntArray, teams: IntArray) -> TeamVotes:
    """Votes and reference answers by team, in O(n).

    Parameters
    ----------
    votes : (n_experts,) int8
        +1, -1, or 0 for no vote; such experts do not count.
    reference_answers : (n_experts,) int8
        Each expert's own ŷ_i, 0 or 1.
    teams : (n_experts,) int64
        Experts with equal numbers are one team; negative: in no team.

    Returns
    -------
    TeamVotes

    Raises
    ------
    FormulaInputError
        If there is not one team number per expert.

    Examples
    --------
    >>> found = team_votes(np.array([1, 1, -1, -1], np.int8), np.array([0, 0, 0, 1], np.int8), np.array([7, 7, 7, -1]))
    >>> found.votes.round(3).tolist(), found.answers.tolist(), found.voters
    ([0.333, -1.0], [0.0, 1.0], 2)
    """
    number, n_teams = team_numbers(teams)
    voting = votes != 0
    yes, answered = votes > 0, votes * reference_answers
    members = np.bincount(number, voting, n_teams)
    sums = (votes, yes, 2 * answered - votes, answered != 0, answered > 0)
    there = members > 0
    members = members[there]
    return TeamVotes(*(np.bincount(number, values, n_teams)[there] / members for values in sums))


_TEAM_VOTES = Fields(
    TeamVotes,
    {
        "votes": Numbers("n", -1.0, 1.0),
        "yes": Numbers("n", 0.0, 1.0),
        "agreed": Numbers("n", -1.0, 1.0),
        "answers": Numbers("n", 0.0, 1.0),
        "both": Numbers("n", 0.0, 1.0),
    },
)


@checked(found=_TEAM_VOTES)
def agreement_of_teams(found: TeamVotes) -> MomentTerms | None:
    """Agreement of a round's teams with one another and with their reference answers.

    With K teams, ``pair = ((Σx)² - Σx²) / (K(K-1))``: the mean of v_i·v_j over experts of different teams, each two
    teams counting alike; ``rest = (1/K) Σ_T mean of v_i·R_i``. Without teams these are the terms of `moment_terms`, bit
    for bit.

    Notes
    -----
    Not in the paper, which knows no teams. Of cross-team pairs that all count alike a team of nine beside three lone
    experts would have nine tenths of the pairs but three quarters of ``rest``: where it is worse than the others, the
    error rate came out .02 too high.

    Parameters
    ----------
    found : TeamVotes

    Returns
    -------
    MomentTerms or None
        None with fewer than two teams.

    Examples
    --------
    >>> same = np.array([1, 1, 1, -1], np.int8), np.array([0, 0, 0, 1], np.int8)
    >>> agreement_of_teams(team_votes(*same, np.array([0, 0, 0, -1])))
    MomentTerms(pair=-1.0, rest=-1.0)
    """
    n = found.voters
    if n < 2:
        return None
    total, squares, agreed = (math.fsum(x.tolist()) for x in (found.votes, found.votes * found.votes, found.agreed))
    return MomentTerms(pair=(total * total - squares) / (n * (n - 1)), rest=agreed / n)


@checked(found=_TEAM_VOTES)
def class_terms_of_teams(found: TeamVotes) -> ClassMomentTerms | None:
    """Moments of the teams' yes votes, and their agreement with the reference answers.

    ``m_k``: the mean over k different teams of u_T·u_U…, so of k-tuples of experts of different teams all of whom say
    yes. With p_k = Σ u^k: ``m2 = (p1² - p2)/(K(K-1))``, ``m3 = (p1³ - 3·p1·p2 + 2·p3)/(K(K-1)(K-2))``. As given
    an outcome teams are independent, ``E[m_k | y]`` is the mean product of k of their chances of a yes, which makes
    votes a mixture of two kinds of questions as without teams; and without teams these are the terms of
    `class_moment_terms`.

    Parameters
    ----------
    found : TeamVotes

    Returns
    -------
    ClassMomentTerms or None
        None with fewer than three teams.

    Examples
    --------
    >>> votes = np.array([1, -1, 1, 1], np.int8), np.array([1, 1, 1, 1], np.int8)
    >>> class_terms_of_teams(team_votes(*votes, np.array([0, 0, -1, -1])))[:3]
    (0.8333333333333334, 0.6666666666666666, 0.5)
    """
    n, yes = found.voters, found.yes
    if n < 3:
        return None
    first, second, third = (math.fsum(power.tolist()) for power in (yes, yes * yes, yes * yes * yes))
    pairs = max(first * first - second, 0.0) / (n * (n - 1))
    triples = max(first * first * first - 3.0 * first * second + 2.0 * third, 0.0) / (n * (n - 1) * (n - 2))
    answers, both = (math.fsum(values.tolist()) / n for values in (found.answers, found.both))
    pairs = min(pairs, first / n)
    return ClassMomentTerms(first / n, pairs, min(triples, pairs), answers, both)


@checked(reference_answers=BITS, teams=TEAMS)
def share_of_ones(reference_answers: SmallIntArray, teams: IntArray | None = None) -> float:
    """How many of the experts' own reference answers are 1, each team counting once.

    Parameters
    ----------
    reference_answers : (n_experts,) int8
        0 or 1, of one expert at least.
    teams : (n_experts,) int64, optional
        As of `team_votes`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    FormulaInputError
        If there are no reference answers, or not one team number per expert.

    Examples
    --------
    >>> answers = np.array([1, 1, 1, 0], np.int8)
    >>> share_of_ones(answers), share_of_ones(answers, np.array([4, 4, 4, -1]))
    (0.75, 0.5)
    """
    if not len(reference_answers):
        msg = "there are no reference answers"
        raise FormulaInputError(msg)
    if teams is None:
        return int(np.count_nonzero(reference_answers)) / len(reference_answers)
    number, n_teams = team_numbers(teams)
    members = np.bincount(number, minlength=n_teams)
    ones = np.bincount(number, reference_answers, n_teams)[members > 0] / members[members > 0]
    return math.fsum(ones.tolist()) / len(ones)
