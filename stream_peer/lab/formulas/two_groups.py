"""Error rates of two groups' answers in closed form, and of groups that are equally good by construction.

`two_group_solution` is the plain algebra of Theorem 7, corrected. `TwoGroupSums` say what may be believed of it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import CONFIDENCE, SHARE, checked
from stream_peer.numerics.error_rates.groups import (
    PAIR_SUMS,
    Agreement,
    AnswerPairSums,
    believable,
    equal_rate,
    log_variances,
)
from stream_peer.numerics.error_rates.rate import ErrorRate

__all__ = ["EqualGroupSums", "TwoGroupSolution", "two_group_deviations", "two_group_solution"]

_ROUNDING = 1e-9


class TwoGroupSolution(NamedTuple):
    """Error rates of two groups and the share of zeros that explain how often the groups say yes.

    Attributes
    ----------
    first, second : float
        η_A and η_B, in [0, ½).
    share_of_zeros : float
        P0, in [0, 1].
    """

    first: float
    second: float
    share_of_zeros: float


@checked(c1=SHARE, c2=SHARE, c3=SHARE)
def two_group_solution(c1: float, c2: float, c3: float) -> TwoGroupSolution | None:
    """The error rates of two groups from how often each says yes and both do: Theorem 7 of Liu & Helmbold, corrected.

    With u = c1 - ½, v = c2 - ½ and G = 2·agree - 1, agree = 1 - c1 - c2 + 2·c3, which is (1 - 2η_A)(1 - 2η_B):
    ``a = √(G·u/v)``, ``b = √(G·v/u)``, ``η_A = (1 - a)/2``, ``η_B = (1 - b)/2``, ``P0 = ½ - sign(u)·√(uv/G)``.
    Where uv ≤ 0 the groups cannot be told apart, and ``a = b = √G``, P0 = ½. a, b above 1 are cut to 1, P0 to [0, 1].

    Parameters
    ----------
    c1, c2, c3 : float
        Shares of questions that A, that B, and that both answer with yes, in [0, 1].

    Returns
    -------
    TwoGroupSolution or None
        None if G ≤ 0: no agreement beyond chance, no signal.

    Raises
    ------
    FormulaInputError
        If there are no two answers with such shares.

    Notes
    -----
    Erratum E12: the paper's ``1 - η_A = (P0 - 2 - c1)/(2P0 - 1)`` should be ``(P0 - c1)/(2P0 - 1)``. Then its quadratic
    in P0 becomes ``Λ·P0² - Λ·P0 + w = 0``, Λ = G, w = c3 - c1·c2, whose roots are P0 and 1 - P0. Erratum E13: its
    leading coefficient is no constant above 6 but G, which can be anything from 0 to 1. Errata E14, E15: at P0 = ½
    both c1 and c2 are ½ whatever the rates, and nothing but G is known.

    Examples
    --------
    >>> [round(part, 12) for part in two_group_solution(0.66, 0.62, 0.51) or ()]
    [0.1, 0.2, 0.3]
    """
    _check_shares(c1, c2, c3)
    signal = 1.0 - 2.0 * c1 - 2.0 * c2 + 4.0 * c3
    if not signal > 0.0:
        return None
    u, v = c1 - 0.5, c2 - 0.5
    if not u * v > 0.0:
        rate = 0.5 * (1.0 - min(math.sqrt(signal), 1.0))
        return TwoGroupSolution(rate, rate, 0.5)
    a, b = math.sqrt(signal * (u / v)), math.sqrt(signal * (v / u))
    zeros = 0.5 - math.copysign(math.sqrt(u / signal * v), u)
    return TwoGroupSolution(0.5 * (1.0 - min(a, 1.0)), 0.5 * (1.0 - min(b, 1.0)), min(max(zeros, 0.0), 1.0))


@checked(c1=SHARE, c2=SHARE, c3=SHARE)
def two_group_deviations(c1: float, c2: float, c3: float) -> tuple[float, float]:
    """Standard deviations of `two_group_solution`'s η_A and η_B times √t, for large t, by the delta method.

    ``(a/2)·√Var(ln a)`` with D = G/4, g = agree, w = c3 - c1·c2 and
    ``Var(ln a)·4t = g(1-g)/(4D²) + c1(1-c1)/u² + c2(1-c2)/v² - 2w/(uv) + (c3-c1·g)/(Du) - (c3-c2·g)/(Dv)``; for B the
    last two terms change sign.

    Parameters
    ----------
    c1, c2, c3 : float
        As in `two_group_solution`.

    Returns
    -------
    (float, float)
        For a rate within ±ε (95 %) about (1.96·deviation/ε)² questions are needed. Both inf where G ≤ 0 or uv ≤ 0.

    Raises
    ------
    FormulaInputError
        If there are no two answers with such shares.

    Notes
    -----
    Theorem 8 has a constant instead. It grows like 1/G and like 1/(P0 - ½) (Erratum E13).

    Examples
    --------
    >>> [round(part, 3) for part in two_group_deviations(0.62, 0.6, 0.435)]
    [0.919, 0.814]
    """
    _check_shares(c1, c2, c3)
    seen = Agreement(math.inf, c1, c2, c3)
    if not (seen.signal > 0.0 and seen.u * seen.v > 0.0):
        return math.inf, math.inf
    a, b = math.sqrt(seen.signal * seen.u / seen.v), math.sqrt(seen.signal * seen.v / seen.u)
    first, second = log_variances(seen)
    return 0.5 * a * math.sqrt(first), 0.5 * b * math.sqrt(second)


def _check_shares(c1: float, c2: float, c3: float) -> None:
    fits = 0.0 <= c1 <= 1.0 and 0.0 <= c2 <= 1.0
    if not (fits and max(c1 + c2 - 1.0, 0.0) - _ROUNDING <= c3 <= min(c1, c2) + _ROUNDING):
        msg = f"shares of yes are {c1!r} and {c2!r}, of both {c3!r}: no two answers have these"
        raise FormulaInputError(msg)


@dataclass(frozen=True, slots=True)
class EqualGroupSums(AnswerPairSums):
    """Sums over questions, with weights w, for the error rate that two groups have in common.

    For groups that are drawn for each question, so that they are equally good by construction. With fixed groups
    it reads the geometric mean of a and b, off from either group's however much is seen.

    Attributes
    ----------
    weight, weight2, c1, c2, c3 : float
        As in `TwoGroupSums`.

    Examples
    --------
    >>> EqualGroupSums.contribution(1, 1, weight=0.5)
    EqualGroupSums(weight=0.5, weight2=0.25, c1=0.5, c2=0.5, c3=0.5)
    """

    @checked(self=PAIR_SUMS, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rate of either group's answer, with no outcome known, whatever the share of zeros.

        ``η̂ = (1 - √(2·agree - 1))/2``, agree = 1 - c1 - c2 + 2·c3 = g, standard deviation
        ``√(g(1-g)/(4(2g-1)t))``. Pseudo-questions, fallbacks and the interval of ``ln a`` are those of
        `TwoGroupSums.estimate_groups`; of its statuses ``balanced`` and ``contradicted`` do not occur.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ErrorRate

        Notes
        -----
        Not in the paper, whose groups are drawn once. Drawn for each question it needs fewer questions than Theorem 7
        at any P0.

        Examples
        --------
        >>> rate = EqualGroupSums(weight=10_000, weight2=10_000, c1=5_000, c2=5_000, c3=3_400).estimate()
        >>> [round(part, 3) for part in rate[:4]], rate.status
        ([0.2, 0.2, 0.187, 0.213], 'ok')
        """
        seen = believable(self)
        return seen if isinstance(seen, ErrorRate) else equal_rate(seen, confidence)
