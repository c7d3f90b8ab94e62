"""Error rates of three reference answers from one another, whatever the share of zeros: symmetric, and one a class.

Right if the three err independently given the outcome. Both kinds of estimate read the same sums. Shares are (c1, c2,
c3, c12, c13, c23, c123): of the questions that each, each two and all three answer with yes. Central moments are (c1,
c2, c3, q12, q13, q23, T), with the covariances q and the third central moment T.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    BIT,
    CONFIDENCE,
    AddingSums,
    Fields,
    FloatArray,
    Optional,
    checked,
    columns_of,
    unchecked,
)
from stream_peer.numerics.error_rates.groups import (
    PRIOR_SIGNAL,
    doubted_rate,
    no_signal,
    symmetric_rate,
    unbelieved,
    vary_together,
)
from stream_peer.numerics.error_rates.rate import (
    HIGHEST_RATE,
    LEAST_Z,
    MODEL_ALLOWANCE,
    PSEUDO_QUESTIONS,
    UNKNOWN_VARIANCE,
    ErrorRate,
    check_sums,
    effective_size,
    interval_of_distance,
    status_of,
)

__all__ = [
    "ThreeReferenceClassSums",
    "ThreeReferenceRates",
    "ThreeReferenceSums",
]

SUBSETS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
"""Whose shares these are, in their order."""

SIGNS = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
"""``2·ln a_k = Σ SIGNS[k]·ln G`` with G of the pairs 12, 13, 23."""

_UNIONS = np.array([[SUBSETS.index(tuple(sorted({*one, *two}))) for two in SUBSETS] for one in SUBSETS])
_ROUNDING = 1e-12


def agreement_of_pairs(shares: FloatArray) -> FloatArray:
    """G12, G13, G23, (3,)."""
    c1, c2, c3, c12, c13, c23, _ = shares.tolist()
    return 1.0 - 2.0 * np.array([c1 + c2 - 2.0 * c12, c1 + c3 - 2.0 * c13, c2 + c3 - 2.0 * c23])


def agreement_covariance(signals: FloatArray) -> FloatArray:
    """Covariance of the three agreements of one question, (3, 3); the product of two of them is the third."""
    g12, g13, g23 = signals.tolist()
    products = np.array([[1.0, g23, g13], [g23, 1.0, g12], [g13, g12, 1.0]])
    covariance: FloatArray = products - np.outer(signals, signals)
    return covariance


def share_covariance(shares: FloatArray) -> FloatArray:
    """Covariance of the seven shares of one question, (7, 7); a product of answers is an answer of the union."""
    covariance: FloatArray = shares[_UNIONS] - np.outer(shares, shares)
    return covariance


def central_moments(shares: FloatArray) -> FloatArray:
    """(c1, c2, c3, q12, q13, q23, T) of the seven shares."""
    c1, c2, c3, c12, c13, c23, c123 = shares.tolist()
    third = c123 - c1 * c23 - c2 * c13 - c3 * c12 + 2.0 * c1 * c2 * c3
    return np.array([c1, c2, c3, c12 - c1 * c2, c13 - c1 * c3, c23 - c2 * c3, third])


def central_slopes(shares: FloatArray) -> FloatArray:
    """Derivatives of the central moments by the shares, (7, 7)."""
    c1, c2, c3, c12, c13, c23, _ = shares.tolist()
    slopes = np.eye(7)
    slopes[3, :2], slopes[4, [0, 2]], slopes[5, 1:3] = (-c2, -c1), (-c3, -c1), (-c3, -c2)
    slopes[6, :6] = 2.0 * c2 * c3 - c23, 2.0 * c1 * c3 - c13, 2.0 * c1 * c2 - c12, -c3, -c2, -c1
    return slopes


def class_rates(central: FloatArray) -> tuple[FloatArray, FloatArray]:
    """η0 of each, then η1 of each, (6,), and their derivatives by the central moments, (6, 7); all q > 0."""
    means, pairs = central[:3], central[3:6]
    scale, odds = _scale(central), _root_odds(central)
    width = odds + 1.0 / odds
    skew_slope = np.zeros(7)
    skew_slope[3:6], skew_slope[6] = -0.5 * _skew(central) / pairs, 1.0 / math.sqrt(float(np.multiply.reduce(pairs)))
    log_scale = np.zeros((3, 7))
    log_scale[:, 3:6] = 0.5 * SIGNS / pairs
    own = np.eye(3, 7)
    zero = own - (scale * odds)[:, None] * (log_scale - skew_slope / width)
    one = -own - (scale / odds)[:, None] * (log_scale + skew_slope / width)
    return np.concatenate([means - scale * odds, 1.0 - means - scale / odds]), np.concatenate([zero, one])


def share_of_zeros(central: FloatArray) -> float:
    """P0, in (0, 1); all q > 0."""
    odds = _root_odds(central)
    return 1.0 / (1.0 + odds * odds)


def _scale(central: FloatArray) -> FloatArray:
    """α_k = a_k·√(P1·P0), (3,)."""
    q12, q13, q23 = central[3:6].tolist()
    return np.array([math.sqrt(q12 / q23 * q13), math.sqrt(q12 / q13 * q23), math.sqrt(q13 / q12 * q23)])


def _skew(central: FloatArray) -> float:
    """``r = (1 - 2·P1)/√(P1·P0)``."""
    return float(central[6]) / math.sqrt(float(np.multiply.reduce(central[3:6])))


def _root_odds(central: FloatArray) -> float:
    """√(P1/P0) = (√(4 + r²) - r)/2, without cancellation."""
    skew = _skew(central)
    larger = 0.5 * (math.hypot(2.0, skew) + abs(skew))
    return 1.0 / larger if skew > 0.0 else larger


_PSEUDO_CENTRAL = np.array([0.0, 0.0, 0.0, *[0.25 * PRIOR_SIGNAL] * 3, 0.0])
_PSEUDO_COVARIANCE = np.diag([0.0, 0.0, 0.0, *[1.0 / 16.0] * 3, 1.0 / 64.0])


class ThreeReferenceRates(NamedTuple):
    """Estimated error rates of three reference answers.

    Attributes
    ----------
    rates : (ErrorRate, ErrorRate, ErrorRate)
        Of each. They have the same share of data and doubt, but maybe not the same status.
    share_of_zeros : float or None
        P0, in (0, 1); None where it cannot be told, and for symmetric rates, which do not need it.
    """

    rates: tuple[ErrorRate, ErrorRate, ErrorRate]
    share_of_zeros: float | None


def _check(sums: "_AnswerTripleSums") -> None:
    """Refuse sums that no questions have."""
    shares = columns_of(sums)[2:]
    check_sums(columns_of(sums), [(one, one) for one in shares])
    room = 1e-6 * (1.0 + sums.weight)
    c1, c2, c3, c12, c13, c23, c123 = shares
    pairs = ((c1, c2, c12), (c1, c3, c13), (c2, c3, c23))
    fits = all(one + two - sums.weight - room <= both <= min(one, two) + room for one, two, both in pairs)
    triples = ((c12, c13, c1), (c12, c23, c2), (c13, c23, c3))
    if not (fits and all(one + two - all_of - room <= c123 <= min(one, two) + room for one, two, all_of in triples)):
        msg = f"sums are {columns_of(sums)}: no three answers have these"
        raise FormulaInputError(msg)


_SOUND = Fields(None, {}, _check)


@dataclass(frozen=True, slots=True)
class _AnswerTripleSums(AddingSums):
    """Sums over questions, with weights w, of three reference answers."""

    weight: float = 0.0
    weight2: float = 0.0
    c1: float = 0.0
    c2: float = 0.0
    c3: float = 0.0
    c12: float = 0.0
    c13: float = 0.0
    c23: float = 0.0
    c123: float = 0.0

    @classmethod
    @checked(first=Optional(BIT), second=Optional(BIT), third=Optional(BIT), weight=AT_LEAST_0)
    def contribution(cls, first: int | None, second: int | None, third: int | None, weight: float = 1.0) -> Self:
        """The sums of a single question; nothing if a reference has no answer (None).

        Raises
        ------
        FormulaInputError
            If an answer is neither 0 nor 1, or the weight negative, infinite or NaN.
        """
        if first is None or second is None or third is None:
            return cls()
        answers = (first, second, third)
        products = [float(all(answers[k] for k in subset)) for subset in SUBSETS]
        return cls(weight, weight * weight, *[weight * product for product in products])


@dataclass(frozen=True, slots=True)
class ThreeReferenceSums(_AnswerTripleSums):
    """Sums over questions, with weights w, for the symmetric error rates of three reference answers.

    The question counts, not the round; as in `TwoGroupSums`.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw².
    c1, c2, c3, c12, c13, c23, c123 : float
        Σw over the questions that each, each two and all three answer with yes.

    Examples
    --------
    >>> one = ThreeReferenceSums.contribution(1, 0, 1)
    >>> one.c1, one.c12, one.c13, one.c123
    (1.0, 0.0, 1.0, 0.0)
    """

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rate of the first reference's answer, see `estimate_references`."""
        return unchecked(ThreeReferenceSums.estimate_references)(self, confidence).rates[0]

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate_references(self, confidence: float = 0.95) -> ThreeReferenceRates:
        """Error rates of all three references' answers, with no outcome known, the same for both classes.

        ``a_1 = √(G12·G13/G23)`` of G = 2·agreement - 1 of each two, over those seen and 20 pseudo-questions of η = .25
        (every G = ¼); η_1 = (1 - a_1)/2. Statuses, the first that applies, with fallbacks and the interval of ``ln a``
        as in `TwoGroupSums.estimate_groups`: ``insufficient`` below 50 effective questions; ``uninformative`` if some G
        ≤ 0 (.475), if some two answers do not vary together beyond doubt (.25), or above .4; ``contradicted`` if a rate
        is below -.02 by three standard deviations; else ``ok``.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ThreeReferenceRates

        Examples
        --------
        >>> many = ThreeReferenceSums(1e6, 1e6, 5e5, 5e5, 5e5, 3.7e5, 3.3e5, 3.1e5, 2.57e5).estimate_references()
        >>> [round(rate.zero, 3) for rate in many.rates], many.rates[0].status
        ([0.1, 0.2, 0.3], 'ok')
        >>> ThreeReferenceSums().estimate()[:6]
        (0.25, 0.25, 0.0, 0.475, 0.0, 'insufficient')
        """
        seen = _Seen.of(self)
        if seen is None:
            return _alike(doubted_rate(0.0))
        agreement = agreement_of_pairs(seen.shares)
        signals = seen.share * agreement + (1.0 - seen.share) * PRIOR_SIGNAL
        if not float(signals.min()) > 0.0:
            return _alike(no_signal(seen.effective))
        if not _all_vary_together(seen):
            return _alike(doubted_rate(seen.effective))
        noise = seen.share * seen.share / seen.effective * agreement_covariance(agreement)
        relative = (noise + seen.pseudo * np.eye(3)) / np.outer(signals, signals)
        variances = 0.25 * np.einsum("ki,ij,kj->k", SIGNS, relative, SIGNS)
        alignments = np.sqrt(np.multiply.reduce(signals) / signals[::-1] ** 2)
        first, second, third = (
            symmetric_rate(alignment, max(variance, 0.0), seen.effective, confidence)
            for alignment, variance in zip(alignments.tolist(), variances.tolist(), strict=True)
        )
        return ThreeReferenceRates((first, second, third), None)


@dataclass(frozen=True, slots=True)
class ThreeReferenceClassSums(_AnswerTripleSums):
    """Sums over questions, with weights w, for the class-dependent error rates of three reference answers.

    Attributes
    ----------
    weight, weight2, c1, c2, c3, c12, c13, c23, c123 : float
        As in `ThreeReferenceSums`.

    Examples
    --------
    >>> ThreeReferenceClassSums.contribution(1, None, 1) == ThreeReferenceClassSums()
    True
    """

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rates of the first reference's answer, see `estimate_references`."""
        return unchecked(ThreeReferenceClassSums.estimate_references)(self, confidence).rates[0]

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate_references(self, confidence: float = 0.95) -> ThreeReferenceRates:
        """Error rates of all three references' answers for either class, with no outcome known.

        The closed form of `class_rates` of the shares seen, where the covariances and the third moment include 20
        pseudo-questions of η = .25 and equally frequent outcomes. Statuses, the first that applies: ``insufficient``
        below 50 effective questions; ``uninformative`` if some two answers do not vary together beyond doubt (.25,
        anything possible), or if η0 + η1 > .8; ``contradicted`` if a rate leaves [0, 1] by .02 and three standard
        deviations (cut, anything possible); else ``ok``. Interval of (η0+η1)/2: ``ln d ± z·sd``, d = 1 - η0 - η1, by
        the delta method, then ±.005, cut at [0, .475].

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ThreeReferenceRates

        Examples
        --------
        >>> shares = [0.375, 0.3875, 0.4625, 0.2175, 0.25875, 0.24625, 0.18225]
        >>> found = ThreeReferenceClassSums(1e6, 1e6, *[1e6 * share for share in shares]).estimate_references()
        >>> [(round(rate.zero, 3), round(rate.one, 3)) for rate in found.rates], round(found.share_of_zeros or 0.0, 3)
        ([(0.2, 0.1), (0.25, 0.2), (0.3, 0.05)], 0.75)
        """
        seen = _Seen.of(self)
        if seen is None:
            return _alike(doubted_rate(0.0))
        if not _all_vary_together(seen):
            return _alike(doubted_rate(seen.effective))
        scale = np.array([1.0, 1.0, 1.0, *[seen.share] * 4])
        central = scale * central_moments(seen.shares) + (1.0 - scale) * _PSEUDO_CENTRAL
        slopes = scale[:, None] * central_slopes(seen.shares)
        noise = np.einsum("ij,jk,lk->il", slopes, share_covariance(seen.shares) / seen.effective, slopes)
        rates, gradient = class_rates(central)
        joint = np.einsum("ij,jk,lk->il", gradient, noise + seen.pseudo * _PSEUDO_COVARIANCE, gradient)
        first, second, third = (
            _class_rate(rates[k::3], joint[k::3, k::3], seen.effective, confidence) for k in range(3)
        )
        return ThreeReferenceRates((first, second, third), share_of_zeros(central))


class _Seen(NamedTuple):
    """Shares of yes, as seen, the questions behind them, and what pseudo-questions add."""

    shares: FloatArray
    effective: float
    share: float
    pseudo: float

    @classmethod
    def of(cls, sums: _AnswerTripleSums) -> Self | None:
        effective = effective_size(sums.weight, sums.weight2)
        if not effective > 0.0:
            return None
        total = sums.weight + PSEUDO_QUESTIONS
        shares = np.array(columns_of(sums)[2:]) / sums.weight
        return cls(shares, effective, sums.weight / total, PSEUDO_QUESTIONS / (total * total))


def _alike(rate: ErrorRate) -> ThreeReferenceRates:
    return ThreeReferenceRates((rate, rate, rate), None)


def _all_vary_together(seen: _Seen) -> bool:
    c1, c2, c3, c12, c13, c23, _ = seen.shares.tolist()
    pairs = ((c1, c2, c12), (c1, c3, c13), (c2, c3, c23))
    return all(vary_together(one, two, both, seen.effective) for one, two, both in pairs)


def _class_rate(raw: FloatArray, covariance: FloatArray, effective: float, confidence: float) -> ErrorRate:
    """Of η0 and η1, not cut, and their covariance."""
    zero, one = (min(max(rate, 0.0), HIGHEST_RATE) for rate in raw.tolist())
    variances = np.maximum(covariance.diagonal(), 0.0)
    distance = 1.0 - float(np.add.reduce(raw))
    relative = math.sqrt(max(float(np.add.reduce(covariance, axis=None)), 0.0)) / distance
    low, high = interval_of_distance(0.5 * (zero + one), distance, relative, confidence)
    variance = min(float(variances.max()), UNKNOWN_VARIANCE)
    found = ErrorRate(zero, one, low, high, effective, status_of(effective, zero, one), variance)
    room = MODEL_ALLOWANCE + LEAST_Z * np.sqrt(variances)
    impossible = bool(np.any((raw < -room) | (raw > 1.0 + room)))
    return unbelieved(found, "contradicted") if impossible else found
