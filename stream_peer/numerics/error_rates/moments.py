"""Symmetric error rate of leave-one-out reference answers, from agreement alone. The default.

It does not depend on how frequent the outcomes are; it is too low where experts share errors. `vote_counts` are the
four numbers of a round from which all moments of its votes follow.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    ALIGNED,
    AT_LEAST_0,
    BITS,
    CONFIDENCE,
    VOTES,
    AddingSums,
    Fields,
    SmallIntArray,
    checked,
    columns_of,
)
from stream_peer.numerics.error_rates.rate import (
    HIGHEST_RATE,
    PRIOR_RATE,
    PSEUDO_QUESTIONS,
    UNKNOWN_VARIANCE,
    ErrorRate,
    check_sums,
    effective_size,
    interval_of_distance,
    status_of,
)

__all__ = ["MomentSums", "MomentTerms", "moment_terms"]


class VoteCounts(NamedTuple):
    """How the voters of a round and their own reference answers stand.

    Attributes
    ----------
    voters : int
        Experts with a vote; only they count below.
    yes : int
        Whose vote is yes.
    answers : int
        Whose own reference answer is 1.
    both : int
        Of whom both is true.
    """

    voters: int
    yes: int
    answers: int
    both: int


def vote_counts(votes: SmallIntArray, reference_answers: SmallIntArray) -> VoteCounts:
    """Count votes and reference answers.

    Parameters
    ----------
    votes : (n_experts,) int8
        +1, -1, or 0 for no vote.
    reference_answers : (n_experts,) int8
        Each expert's own ŷ_i, 0 or 1.

    Returns
    -------
    VoteCounts

    Examples
    --------
    >>> vote_counts(np.array([1, 1, -1, 0], np.int8), np.array([0, 1, 1, 1], np.int8))
    VoteCounts(voters=3, yes=2, answers=2, both=1)
    """
    answered = votes * reference_answers
    return VoteCounts(
        int(np.count_nonzero(votes)),
        int(np.count_nonzero(votes > 0)),
        int(np.count_nonzero(answered)),
        int(np.count_nonzero(answered > 0)),
    )


_PSEUDO_PAIR = 0.1
_PSEUDO_REST = (1.0 - 2.0 * PRIOR_RATE) * math.sqrt(_PSEUDO_PAIR)


class MomentTerms(NamedTuple):
    """What one round says about agreement.

    Attributes
    ----------
    pair : float
        Mean of v_i·v_j over the ordered pairs of different voters, in [-1/(n-1), 1].
    rest : float
        Mean of v_i·R_i over the voters, R_i = ±1 each one's own reference answer, in [-1, 1].
    """

    pair: float
    rest: float


def _check(sums: "MomentSums") -> None:
    """Refuse sums that no questions have."""
    check_sums(columns_of(sums), ((sums.pair, sums.pair2), (sums.rest, sums.rest2)), -1.0)
    if sums.pair_rest**2 > (sums.pair2 + 1e-6) * (sums.rest2 + 1e-6) * (1.0 + 1e-6):
        msg = f"pair_rest is {sums.pair_rest!r}, pair2 {sums.pair2!r} and rest2 {sums.rest2!r}: no questions have these"
        raise FormulaInputError(msg)


_SOUND = Fields(None, {}, _check)


@dataclass(frozen=True, slots=True)
class MomentSums(AddingSums):
    """Sums over questions, with weights w, for the symmetric error rate of leave-one-out answers.

    Over questions, not over rounds: the rounds of a question are averaged first.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw².
    pair, rest : float
        Σw·pair and Σw·rest, of a question's mean over its rounds.
    pair2, rest2, pair_rest : float
        Σw·pair², Σw·rest², Σw·pair·rest.

    Examples
    --------
    >>> agreed = MomentSums.contribution(MomentTerms(pair=0.5, rest=1.0))
    >>> agreed.merge(MomentSums.contribution(MomentTerms(pair=0.0, rest=0.5), weight=0.5))
    MomentSums(weight=1.5, weight2=1.25, pair=0.5, rest=1.25, pair2=0.25, rest2=1.125, pair_rest=0.5)
    """

    weight: float = 0.0
    weight2: float = 0.0
    pair: float = 0.0
    rest: float = 0.0
    pair2: float = 0.0
    rest2: float = 0.0
    pair_rest: float = 0.0

    @classmethod
    @checked(terms=Fields(MomentTerms, dict.fromkeys(MomentTerms._fields, ALIGNED)), weight=AT_LEAST_0)
    def contribution(cls, terms: MomentTerms, weight: float = 1.0) -> Self:
        """The sums of a single question.

        Raises
        ------
        FormulaInputError
            If the weight is negative, infinite or NaN.
        """
        pair, rest = weight * terms.pair, weight * terms.rest
        return cls(weight, weight * weight, pair, rest, pair * terms.pair, rest * terms.rest, pair * terms.rest)

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rate of leave-one-out reference answers, the same for both classes, from agreement alone.

        ``η̂ = ½·(1 - mean(rest) / √mean(pair))``, clamped to [0, .475]; .475 where mean(pair) ≤ 0. The means include 20
        pseudo-questions of η = .25 and pair = .1 (so rest = ½·√.1).

        Interval: ``ln a ± z·sd`` with a = 1 - 2η and, by the delta method,
        ``sd² = [Var(rest)/rest² + Var(pair)/(4·pair²) - Cov(rest, pair)/(rest·pair)] / n_eff``, n_eff = (Σw)²/Σw².
        The pseudo-questions count here as well, each with weight 1 and with mean squares of pair and of rest of 1, the
        widest that votes of ±1 allow: the interval is wide while there is little data, and they fade as 20/n_eff.
        Then ±.005 is added, since √pair falls short of the mean a when experts differ, and it is cut at [0, .475]. With
        no data, or where the delta method says nothing (mean pair or mean rest ≤ 0), it is all of [0, .475].

        Notes
        -----
        Replaces the two-group estimator of Theorem 7 of Liu & Helmbold, whose printed solution has a wrong quadratic
        (Erratum E12), and which cannot tell the groups' rates apart where both outcomes are equally frequent
        (Errata E14, E15). This one does not depend on their frequency. It is right if experts err independently given
        the outcome, and too low if they share errors.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ErrorRate

        Raises
        ------
        FormulaInputError
            If the sums are such as no questions have.

        Examples
        --------
        >>> sums = MomentSums(weight=1000, weight2=1000, pair=250, rest=400, pair2=160, rest2=300, pair_rest=150)
        >>> rate = sums.estimate()
        >>> round(rate.zero, 4), round(rate.low, 4), round(rate.high, 4), rate.status
        (0.1024, 0.0726, 0.1307, 'ok')
        >>> MomentSums().estimate()[:6]
        (0.25, 0.25, 0.0, 0.475, 0.0, 'insufficient')
        """
        mean_pair, mean_rest = _shrunk_means(self)
        effective = effective_size(self.weight, self.weight2)
        alignment = mean_rest / math.sqrt(mean_pair) if mean_pair > 0.0 else 0.0
        rate = min(max(0.5 * (1.0 - alignment), 0.0), HIGHEST_RATE)
        low, high, variance = 0.0, HIGHEST_RATE, UNKNOWN_VARIANCE
        if alignment > 0.0:
            log_variance = _log_variance(self)
            variance = min(0.25 * alignment * alignment * log_variance, UNKNOWN_VARIANCE)
            if effective > 0.0:
                low, high = interval_of_distance(rate, alignment, math.sqrt(log_variance), confidence)
        return ErrorRate(rate, rate, low, high, effective, status_of(effective, rate, rate), variance)


MOMENT_SUMS = Fields(MomentSums, {}, _check)


@checked(votes=VOTES, reference_answers=BITS)
def moment_terms(votes: SmallIntArray, reference_answers: SmallIntArray) -> MomentTerms | None:
    """Agreement of a round's voters with one another and with their leave-one-out references.

    With n voters, v_i = ±1, R_i = 2ŷ_i - 1: ``pair = ((Σv)² - n) / (n(n-1))``, ``rest = (1/n) Σ v_i·R_i``.
    If voters err independently given the outcome, with a_i = 1 - 2·(error of i): E[pair] is the mean of a_i·a_j over
    pairs and E[rest] the mean of a_i times 1 - 2·(error of R_i), whatever the share of zeros.

    Parameters
    ----------
    votes : (n_experts,) int8
        +1, -1, or 0 for no vote.
    reference_answers : (n_experts,) int8
        Each expert's own ŷ_i, 0 or 1.

    Returns
    -------
    MomentTerms or None
        None with fewer than two voters.

    Examples
    --------
    >>> import numpy as np
    >>> moment_terms(np.array([1, 1, -1, 0], dtype=np.int8), np.array([0, 1, 1, 1], dtype=np.int8)).rest
    -0.3333333333333333
    """
    return agreement_of(vote_counts(votes, reference_answers))


def agreement_of(counts: VoteCounts) -> MomentTerms | None:
    """`moment_terms` of votes that are counted: ``Σv = 2·yes - n``, ``Σ v·R = 2·(2·both - answers) - Σv``."""
    n_voters = counts.voters
    if n_voters < 2:
        return None
    total = 2 * counts.yes - n_voters
    with_reference = 2 * (2 * counts.both - counts.answers) - total
    return MomentTerms(
        pair=(total * total - n_voters) / (n_voters * (n_voters - 1)),
        rest=with_reference / n_voters,
    )


def _shrunk_means(sums: MomentSums) -> tuple[float, float]:
    total = sums.weight + PSEUDO_QUESTIONS
    return (
        (sums.pair + PSEUDO_QUESTIONS * _PSEUDO_PAIR) / total,
        (sums.rest + PSEUDO_QUESTIONS * _PSEUDO_REST) / total,
    )


def _log_variance(sums: MomentSums) -> float:
    """Variance of ln(rest/√pair), both means positive, pseudo-questions included."""
    total = sums.weight + PSEUDO_QUESTIONS
    pair, rest = _shrunk_means(sums)
    relative_pair = (sums.pair2 + PSEUDO_QUESTIONS) / total / (pair * pair) - 1.0
    relative_rest = (sums.rest2 + PSEUDO_QUESTIONS) / total / (rest * rest) - 1.0
    product = (sums.pair_rest + PSEUDO_QUESTIONS * _PSEUDO_PAIR * _PSEUDO_REST) / total
    relative_both = product / (rest * pair) - 1.0
    effective = total * total / (sums.weight2 + PSEUDO_QUESTIONS)
    return max(relative_rest + 0.25 * relative_pair - relative_both, 0.0) / effective
