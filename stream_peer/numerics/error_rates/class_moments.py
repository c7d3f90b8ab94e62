"""Class-dependent error rates of leave-one-out reference answers, from three moments of the number of yes votes.

For votes whose threshold is not ½ (the expert's own median) or whose outcomes are not equally frequent. Needs three
voters; it is too low where experts share errors. Behind the numbers of yes votes are two kinds of questions, told apart
by how often votes are yes. Central moments are (m1, E[R], C, D, K): mean vote, mean answer, their covariance C, the
covariance D of two voters and the third cumulant K of three, all with different voters.
"""

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple, Self

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    BITS,
    CONFIDENCE,
    SHARE,
    VOTES,
    AddingSums,
    Fields,
    FloatArray,
    Numbers,
    SmallIntArray,
    checked,
    columns_of,
)
from stream_peer.numerics.error_rates.moments import VoteCounts, vote_counts
from stream_peer.numerics.error_rates.rate import (
    HIGHEST_RATE,
    LEAST_Z,
    MODEL_ALLOWANCE,
    PRIOR_RATE,
    PSEUDO_QUESTIONS,
    UNKNOWN_VARIANCE,
    ErrorRate,
    EstimateStatus,
    check_sums,
    effective_size,
    interval_of_distance,
    normal_quantile,
    rate_corners,
    status_of,
    unknown_rate,
)

__all__ = ["ClassMomentSums", "ClassMomentTerms", "class_moment_terms"]

_PSEUDO_MEANS = (0.5, (1.0 - 2.0 * PRIOR_RATE) * math.sqrt(0.1) / 4.0, 0.1 / 4.0, 0.0)  # of E[R], C, D, K
_PSEUDO_COVARIANCE = np.diag([0.0, 1.0 / 4.0, 1.0 / 16.0, 1.0 / 16.0, 1.0 / 64.0])


class ClassReading(NamedTuple):
    """What the moments say, before anything is cut.

    Attributes
    ----------
    rates : (float, float)
        η0 and η1.
    variances : (float, float)
        Of each.
    mean_variance, half_variance : float
        Of (η0+η1)/2 and of (η0-η1)/2.
    stands_out : bool
        Whether the votes vary more from question to question than chance explains: D is three sd above 0.
    impossible : bool
        Whether some rate of yes votes or of errors is outside [0, 1] beyond doubt.
    """

    rates: tuple[float, float]
    variances: tuple[float, float]
    mean_variance: float
    half_variance: float
    stands_out: bool
    impossible: bool


def _central_moments(means: tuple[float, float, float, float, float]) -> tuple[float, float, float, float, float]:
    """(m1, E[R], C, D, K) of the means (m1, m2, m3, E[R], E[R·x])."""
    first, second, third, answer, both = means
    return (
        first,
        answer,
        both - first * answer,
        second - first * first,
        third - 3.0 * first * second + 2.0 * first * first * first,
    )


def class_reading(
    means: tuple[float, float, float, float, float], covariance: FloatArray, weight: float, *, with_pseudo: bool = False
) -> ClassReading | None:
    """Class-dependent rates and their uncertainty, pseudo-questions included; None if D or C ≤ 0.

    ``means`` of (m1, m2, m3, E[R], E[R·x]), ``covariance`` (5, 5) of these means, ``weight`` of the questions.
    ``with_pseudo``: D is compared with its standard deviation with pseudo-questions, as in version 1 of the method.
    """
    share = weight / (weight + PSEUDO_QUESTIONS)
    first, *others = _central_moments(means)
    answer, alignment, spread, skew = (
        share * seen + (1.0 - share) * pseudo for seen, pseudo in zip(others, _PSEUDO_MEANS, strict=True)
    )
    if not (spread > 0.0 and alignment > 0.0):
        return None
    slopes = _central_slopes(means, share)
    seen = np.einsum("ij,jk,lk->il", slopes, covariance, slopes)
    skew = math.copysign(math.sqrt(max(skew * skew - max(float(seen[4, 4]), 0.0), 0.0)), skew)
    above, below = _distances(spread, skew)
    values = (answer - alignment / above, 1.0 - answer - alignment / below, first + above, first - below)
    noise = seen + _PSEUDO_COVARIANCE * (PSEUDO_QUESTIONS / (weight + PSEUDO_QUESTIONS) ** 2)
    gradients = _rate_slopes(alignment, spread, skew)
    joint = np.einsum("ij,jk,lk->il", gradients, noise, gradients)
    of_each, of_both = 0.25 * float(joint[0, 0] + joint[1, 1]), 0.5 * float(joint[0, 1])
    deviations = np.sqrt(np.maximum(joint.diagonal(), 0.0)).tolist()
    return ClassReading(
        (values[0], values[1]),
        (float(joint[0, 0]), float(joint[1, 1])),
        max(of_each + of_both, 0.0),
        max(of_each - of_both, 0.0),
        stands_out=(spread if with_pseudo else share * others[2]) > LEAST_Z * math.sqrt(max(float(seen[3, 3]), 0.0)),
        impossible=any(_outside(value, sd) for value, sd in zip(values, deviations, strict=True)),
    )


def _outside(value: float, deviation: float) -> bool:
    room = MODEL_ALLOWANCE + LEAST_Z * deviation
    return not -room <= value <= 1.0 + room


def _distances(spread: float, skew: float) -> tuple[float, float]:
    """``v1 - m1`` and ``m1 - v0``: their product is D, their difference K/D. Neither is got by cancellation."""
    lean = skew / spread
    longer = 0.5 * (math.sqrt(lean * lean + 4.0 * spread) + abs(lean))
    shorter = spread / longer
    return (longer, shorter) if lean >= 0.0 else (shorter, longer)


def _central_slopes(means: tuple[float, float, float, float, float], share: float) -> FloatArray:
    """Derivatives of the central moments by the means, (5, 5); of all but m1 the share that is not pseudo-questions."""
    first, second, _, answer, _ = means
    slopes = np.array(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [-answer, 0.0, 0.0, -first, 1.0],
            [-2.0 * first, 1.0, 0.0, 0.0, 0.0],
            [6.0 * first * first - 3.0 * second, -3.0 * first, 1.0, 0.0, 0.0],
        ]
    )
    slopes[1:] *= share
    return slopes


def _rate_slopes(alignment: float, spread: float, skew: float) -> FloatArray:
    """Derivatives of (η0, η1, v1, v0) by the central moments, (4, 5)."""
    above, below = _distances(spread, skew)
    lean, width = skew / spread, above + below
    above_by_skew, below_by_skew = above / width / spread, -below / width / spread
    above_by_spread, below_by_spread = 1.0 / width - above_by_skew * lean, 1.0 / width - below_by_skew * lean
    steep_above, steep_below = alignment / (above * above), alignment / (below * below)
    return np.array(
        [
            [0.0, 1.0, -1.0 / above, steep_above * above_by_spread, steep_above * above_by_skew],
            [0.0, -1.0, -1.0 / below, steep_below * below_by_spread, steep_below * below_by_skew],
            [1.0, 0.0, 0.0, above_by_spread, above_by_skew],
            [1.0, 0.0, 0.0, -below_by_spread, -below_by_skew],
        ]
    )


_N_TERMS = 5
_PRODUCT_OF = np.empty((_N_TERMS, _N_TERMS), np.intp)
_UPPER = np.triu_indices(_N_TERMS)
_PRODUCT_OF[_UPPER] = _PRODUCT_OF.T[_UPPER] = np.arange(_N_TERMS * (_N_TERMS + 1) // 2)
"""Where the sum of the products of two terms stands among all of them."""


class ClassMomentTerms(NamedTuple):
    """What one round says about votes for yes and their agreement with reference answers: five means, in [0, 1].

    Attributes
    ----------
    first, second, third : float
        m_k = S(S-1)…(S-k+1) / (n(n-1)…(n-k+1)): the share of k-tuples of different voters who all say yes.
    answer : float
        Mean over the voters of R_i, each one's own reference answer.
    both : float
        Mean over the voters of R_i·x_i, x_i = 1 for a yes vote.
    """

    first: float
    second: float
    third: float
    answer: float
    both: float


@checked(votes=VOTES, reference_answers=BITS)
def class_moment_terms(votes: SmallIntArray, reference_answers: SmallIntArray) -> ClassMomentTerms | None:
    """Factorial moments of a round's yes votes, and their agreement with the leave-one-out references.

    Parameters
    ----------
    votes : (n_experts,) int8
        +1, -1, or 0 for no vote.
    reference_answers : (n_experts,) int8
        Each expert's own ŷ_i, 0 or 1.

    Returns
    -------
    ClassMomentTerms or None
        None with fewer than three voters.

    Examples
    --------
    >>> import numpy as np
    >>> found = class_moment_terms(np.array([1, 1, -1, 1, 0], np.int8), np.array([1, 1, 1, 0, 1], np.int8))
    >>> found
    ClassMomentTerms(first=0.75, second=0.5, third=0.25, answer=0.75, both=0.5)
    """
    return class_terms_of(vote_counts(votes, reference_answers))


def class_terms_of(counts: VoteCounts) -> ClassMomentTerms | None:
    """`class_moment_terms` of votes that are counted."""
    n, yes, answers, both = counts
    if n < 3:
        return None
    pairs, triples = n * (n - 1), n * (n - 1) * (n - 2)
    return ClassMomentTerms(
        yes / n, yes * (yes - 1) / pairs, yes * (yes - 1) * (yes - 2) / triples, answers / n, both / n
    )


def _check(sums: "ClassMomentSums") -> None:
    """Refuse sums that no questions have."""
    means = (sums.first, sums.second, sums.third, sums.answer, sums.both)
    check_sums(columns_of(sums), [(one, one) for one in (*means, *columns_of(sums)[2 + _N_TERMS :])])
    room = 1e-6 * (1.0 + sums.weight)
    falls = sums.third <= sums.second + room <= sums.first + 2.0 * room
    fits = falls and sums.both <= min(sums.first, sums.answer) + room
    if not (fits and np.linalg.eigvalsh(_covariance(sums, sums.weight)).min() >= -1e-6):
        msg = f"sums of first, second, third, answer and both are {means}, products do not fit: no questions have these"
        raise FormulaInputError(msg)


_SOUND = Fields(None, {}, _check)


@dataclass(frozen=True, slots=True)
class ClassMomentSums(AddingSums):
    """Sums over questions, with weights w, for class-dependent error rates of leave-one-out answers.

    Over questions, not over rounds: the rounds of a question are averaged first, then the products taken.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw².
    first, second, third, answer, both : float
        Σw of each term.
    first_first, … both_both : float
        Σw of the products of each two terms, for the interval.

    Examples
    --------
    >>> one = ClassMomentSums.contribution(ClassMomentTerms(0.75, 0.5, 0.25, 0.75, 0.5), weight=0.5)
    >>> both = one.merge(ClassMomentSums.contribution(ClassMomentTerms(0.25, 0.0, 0.0, 0.0, 0.0)))
    >>> both.weight, both.first, both.first_first, both.answer_both
    (1.5, 0.625, 0.34375, 0.1875)
    """

    weight: float = 0.0
    weight2: float = 0.0
    first: float = 0.0
    second: float = 0.0
    third: float = 0.0
    answer: float = 0.0
    both: float = 0.0
    first_first: float = 0.0
    first_second: float = 0.0
    first_third: float = 0.0
    first_answer: float = 0.0
    first_both: float = 0.0
    second_second: float = 0.0
    second_third: float = 0.0
    second_answer: float = 0.0
    second_both: float = 0.0
    third_third: float = 0.0
    third_answer: float = 0.0
    third_both: float = 0.0
    answer_answer: float = 0.0
    answer_both: float = 0.0
    both_both: float = 0.0

    @classmethod
    @checked(terms=Fields(ClassMomentTerms, dict.fromkeys(ClassMomentTerms._fields, SHARE)), weight=AT_LEAST_0)
    def contribution(cls, terms: ClassMomentTerms, weight: float = 1.0) -> Self:
        """The sums of a single question, whose terms are the means over its rounds.

        Raises
        ------
        FormulaInputError
            If the weight is negative, infinite or NaN.
        """
        products = [weight * one * two for one, two in combinations_with_replacement(terms, 2)]
        return cls(weight, weight * weight, *[weight * term for term in terms], *products)

    @checked(self=_SOUND, confidence=CONFIDENCE, with_pseudo=Numbers(kind=np.bool_))
    def estimate(self, confidence: float = 0.95, *, with_pseudo: bool = False) -> ErrorRate:
        """Error rates of leave-one-out reference answers for either class, with no outcome known.

        With D = m2 - m1², K = m3 - 3·m1·m2 + 2·m1³, C = E[R·x] - E[R]·m1, and from K/D and D the distances
        ``above = v1 - m1 = (√((K/D)² + 4D) + K/D)/2``, ``below = m1 - v0 = D/above``:
        ``η̂0 = E[R] - C/above``, ``η̂1 = 1 - E[R] - C/below``, each clamped to [0, .475]. With the rates of
        both kinds of votes this solves E[R] = P1·A1 + P0·A0, E[R·x] = P1·v1·A1 + P0·v0·A0 for η0 = A0, η1 = 1 - A1.

        E[R], C, D and K include 20 pseudo-questions of η = .25, equally frequent outcomes and D = .1/4 (as in
        `MomentSums.estimate`). K² is lessened by the sampling variance of K, not below 0: where K does not stand out
        from noise, the votes are read as if both outcomes were equally frequent, else noise would pass for signal.

        Interval of (η0+η1)/2: ``ln d ± z·sd`` with d = 1 - η0 - η1 and sd by the delta method, from the covariance
        of the five means (hence the products) over n_eff = (Σw)²/Σw². Pseudo-questions have the largest variances
        that votes allow. Then ±.005 as in `MomentSums.estimate`, cut at [0, .475].

        Status: ``insufficient`` below 50 effective questions. ``uninformative`` if D or C ≤ 0 (both rates are .475
        then), if D without pseudo-questions is not above three of its standard deviations, or if η0 + η1 > .8.
        ``contradicted`` if a rate of yes votes or of errors leaves [0, 1] by more than .02 and three standard
        deviations: then these are not two kinds of questions. ``balanced`` does not occur: equal shares of zeros and
        ones are no difficulty here.
        In ``contradicted``, and in ``uninformative`` because of D or C, the rates are the clamped ones, the interval
        is all of [0, .475] and the variance ¼.

        Parameters
        ----------
        confidence : float
            In (0, 1).
        with_pseudo : bool
            Whether D is compared with its standard deviation with pseudo-questions, as in version 1 of the method.

        Returns
        -------
        ErrorRate
            ``variance`` is the larger of those of the two rates.

        Raises
        ------
        FormulaInputError
            If the sums are such as no questions have.

        Notes
        -----
        Not in the paper, which maps class-dependent errors to symmetric ones by flipping answers at random; that
        changes nothing (Erratum E16). Experts may differ; the two rates are means over them, and the closed form is
        then right up to the variance of their skills over n.

        Examples
        --------
        >>> terms = ClassMomentTerms(first=0.35, second=0.19, third=0.134, answer=0.375, both=0.21)
        >>> many = ClassMomentSums.contribution(terms)
        >>> for _ in range(20):
        ...     many = many.merge(many)
        >>> rate = many.estimate()
        >>> round(rate.zero, 3), round(rate.one, 3), rate.status
        (0.2, 0.1, 'ok')
        >>> ClassMomentSums().estimate()[:6]
        (0.25, 0.25, 0.0, 0.475, 0.0, 'insufficient')
        """
        effective = effective_size(self.weight, self.weight2)
        reading = class_reading(_means(self), _covariance(self, effective), self.weight, with_pseudo=with_pseudo)
        if reading is None:
            return unknown_rate(effective)
        zero, one = (min(max(rate, 0.0), HIGHEST_RATE) for rate in reading.rates)
        status = _status(reading, status_of(effective, zero, one))
        if reading.impossible or not reading.stands_out:
            return ErrorRate(zero, one, 0.0, HIGHEST_RATE, effective, status, UNKNOWN_VARIANCE)
        low, high = _mean_interval(reading, confidence)
        variance = min(max(*reading.variances, 0.0), UNKNOWN_VARIANCE)
        return ErrorRate(zero, one, low, high, effective, status, variance)

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def corners(self, confidence: float = 0.95) -> tuple[tuple[float, float], ...]:
        """Corners (η0, η1) of all rates that the votes allow, for `regret_bounds`; no outcome is used.

        The mean of the two is in the interval of `estimate`, and their difference within ``z·sd`` of its estimate.
        Where `estimate` has no interval, both rates may be .475.

        Parameters
        ----------
        confidence : float
            Of either interval, in (0, 1): both together miss with at most twice 1 - ``confidence``.

        Returns
        -------
        tuple of (float, float)

        Examples
        --------
        >>> terms = ClassMomentTerms(first=0.35, second=0.19, third=0.134, answer=0.375, both=0.21)
        >>> many = ClassMomentSums.contribution(terms)
        >>> for _ in range(20):
        ...     many = many.merge(many)
        >>> [(round(zero, 3), round(one, 3)) for zero, one in many.corners()]
        [(0.195, 0.095), (0.195, 0.095), (0.205, 0.105), (0.205, 0.105)]
        """
        effective = effective_size(self.weight, self.weight2)
        reading = class_reading(_means(self), _covariance(self, effective), self.weight)
        if reading is None or reading.impossible or not reading.stands_out:
            return ((HIGHEST_RATE, HIGHEST_RATE),)
        low, high = _mean_interval(reading, confidence)
        zero, one = reading.rates
        half, reach = 0.5 * (zero - one), normal_quantile(confidence) * math.sqrt(reading.half_variance)
        return rate_corners(low, high, half - reach, half + reach)


def _mean_interval(reading: ClassReading, confidence: float) -> tuple[float, float]:
    """Interval of (η0+η1)/2, the rates being those of the estimate: not below 0, not above .475."""
    zero, one = (min(max(rate, 0.0), HIGHEST_RATE) for rate in reading.rates)
    distance = 1.0 - reading.rates[0] - reading.rates[1]
    relative = 2.0 * math.sqrt(reading.mean_variance) / distance
    return interval_of_distance(0.5 * (zero + one), distance, relative, confidence)


def _status(reading: ClassReading, otherwise: EstimateStatus) -> EstimateStatus:
    if otherwise != "ok" or (reading.stands_out and not reading.impossible):
        return otherwise
    return "contradicted" if reading.stands_out else "uninformative"


def _means(sums: ClassMomentSums) -> tuple[float, float, float, float, float]:
    total = sums.weight or 1.0
    return sums.first / total, sums.second / total, sums.third / total, sums.answer / total, sums.both / total


def _covariance(sums: ClassMomentSums, effective: float) -> FloatArray:
    """Of the five means, (5, 5); zero where there is no data."""
    if not effective > 0.0:
        return np.zeros((_N_TERMS, _N_TERMS))
    products = np.array(columns_of(sums)[2 + _N_TERMS :])[_PRODUCT_OF] / sums.weight
    means = np.array(_means(sums))
    covariance: FloatArray = (products - np.multiply.outer(means, means)) / effective
    return covariance
