"""What three reference answers say of one another: closed forms of their error rates, and how uncertain these are.

Shares are (c1, c2, c3, c12, c13, c23, c123): of the questions that each, each two and all three answer with yes.
Central moments are (c1, c2, c3, q12, q13, q23, T), with the covariances q and the third central moment T.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import ALIGNED, Numbers, checked

SUBSETS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
"""Whose shares these are, in their order."""

SIGNS = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
"""``2·ln a_k = Σ SIGNS[k]·ln G`` with G of the pairs 12, 13, 23."""

_UNIONS = np.array([[SUBSETS.index(tuple(sorted({*one, *two}))) for two in SUBSETS] for one in SUBSETS])
_ROUNDING = 1e-12


class ThreeReferenceClassSolution(NamedTuple):
    """Class-dependent error rates of three reference answers, nothing cut.

    Attributes
    ----------
    zero, one : (3,) float64
        η0 and η1 of each.
    share_of_zeros : float
        P0, in (0, 1).
    """

    zero: FloatArray
    one: FloatArray
    share_of_zeros: float


@checked(g12=ALIGNED, g13=ALIGNED, g23=ALIGNED)
def three_reference_solution(g12: float, g13: float, g23: float) -> tuple[float, float, float] | None:
    """Error rates of three reference answers from G = 2·agreement - 1 of each two: ``a_1 = √(G12·G13/G23)``.

    η_1 = (1 - a_1)/2, likewise for the others. G_jk is a_j·a_k, whatever the share of zeros; the agreement of two
    answers is the share of questions to which both are the same.

    Parameters
    ----------
    g12, g13, g23 : float
        2·agreement - 1, in [-1, 1].

    Returns
    -------
    (float, float, float) or None
        η of each, not cut at 0. None if some G ≤ 0 (1e-12): no agreement beyond chance, no signal.

    Raises
    ------
    FormulaInputError
        If a G is not in [-1, 1].

    Notes
    -----
    Not in the paper, whose two groups need P0 ≠ ½ (Erratum E14).

    Examples
    --------
    >>> [round(rate, 12) for rate in three_reference_solution(0.48, 0.32, 0.24) or ()]
    [0.1, 0.2, 0.3]
    """
    if not min(g12, g13, g23) > _ROUNDING:
        return None
    alignments = (math.sqrt(g12 / g23 * g13), math.sqrt(g12 / g13 * g23), math.sqrt(g13 / g12 * g23))
    first, second, third = (0.5 * (1.0 - a) for a in alignments)
    return first, second, third


@checked(shares=Numbers("7", 0.0, 1.0))
def three_reference_class_solution(shares: FloatArray) -> ThreeReferenceClassSolution | None:
    """The class-dependent error rates of three reference answers from how often they say yes, alone and together.

    From the covariances q_jk and the third central moment T: ``α_1 = √(q12·q13/q23)``, likewise the others,
    ``r = T/(α_1·α_2·α_3) = (1 - 2·P1)/√(P1·P0)``, ``P1 = ½(1 - r/√(4 + r²))``, ``a_k = α_k/√(P1·P0)``,
    ``η0 = c_k - P1·a_k``, ``η1 = 1 - c_k - P0·a_k``.

    Parameters
    ----------
    shares : (7,) float64
        c1, c2, c3, c12, c13, c23, c123: shares of questions that each, each two and all three answer with yes.

    Returns
    -------
    ThreeReferenceClassSolution or None
        None if some q ≤ 0 (1e-12).

    Raises
    ------
    FormulaInputError
        If these are not seven shares in [0, 1].

    Notes
    -----
    Not in the paper, which maps class-dependent errors to symmetric ones by flipping answers at random; that changes
    nothing (Erratum E16).

    Examples
    --------
    >>> import numpy as np
    >>> found = three_reference_class_solution(np.array([0.375, 0.3875, 0.4625, 0.2175, 0.25875, 0.24625, 0.18225]))
    >>> found and [np.round(found.zero, 9).tolist(), np.round(found.one, 9).tolist(), round(found.share_of_zeros, 9)]
    [[0.2, 0.25, 0.3], [0.1, 0.2, 0.05], 0.75]
    """
    central = central_moments(shares)
    if not float(central[3:6].min()) > _ROUNDING:
        return None
    rates, _ = class_rates(central)
    return ThreeReferenceClassSolution(rates[:3], rates[3:], share_of_zeros(central))


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
