"""What the agreement of two groups' answers says: the algebra, its uncertainty, and when to doubt it."""

import math
from typing import NamedTuple

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates.rate import LEAST_Z, PRIOR_RATE, PSEUDO_QUESTIONS
from stream_peer.numerics.losses.arguments import SHARE, checked

PRIOR_SIGNAL = (1.0 - 2.0 * PRIOR_RATE) ** 2
"""G = 2·agree - 1 of two answers that err at `PRIOR_RATE`."""

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


class Agreement(NamedTuple):
    """Shares of questions with a yes, as seen, and how much they weigh.

    Attributes
    ----------
    effective : float
        Number of questions behind them.
    c1, c2, c3 : float
        Shares of questions that A, that B, and that both answer with yes.
    share : float
        Of these questions, not pseudo-questions, in ``signal``.
    pseudo_variance : float
        Variance of ``signal`` due to pseudo-questions.
    """

    effective: float
    c1: float
    c2: float
    c3: float
    share: float = 1.0
    pseudo_variance: float = 0.0

    @property
    def u(self) -> float:
        """By how much more than every second answer of A is yes."""
        return self.c1 - 0.5

    @property
    def v(self) -> float:
        """By how much more than every second answer of B is yes."""
        return self.c2 - 0.5

    @property
    def agree(self) -> float:
        """Share of questions with the same answers."""
        return 1.0 - self.c1 - self.c2 + 2.0 * self.c3

    @property
    def signal(self) -> float:
        """G, pseudo-questions included."""
        return self.share * (2.0 * self.agree - 1.0) + (1.0 - self.share) * PRIOR_SIGNAL

    @property
    def signal_variance(self) -> float:
        """Of ``signal``."""
        own = 4.0 * self.share * self.share * self.agree * (1.0 - self.agree) / self.effective
        return max(own, 0.0) + self.pseudo_variance


def agreement(weight: float, weight2: float, c1: float, c2: float, c3: float) -> Agreement:
    """Shares of questions from sums of weights, with 20 pseudo-questions; ``weight`` > 0."""
    total = weight + PSEUDO_QUESTIONS
    return Agreement(
        weight * weight / weight2,
        c1 / weight,
        c2 / weight,
        c3 / weight,
        weight / total,
        PSEUDO_QUESTIONS / (total * total),
    )


def log_variances(seen: Agreement) -> tuple[float, float]:
    """Variances of ln a and of ln b, where G > 0 and uv > 0. With an infinite number of questions: times t."""
    questions = seen.effective if math.isfinite(seen.effective) else 1.0
    u, v, g, signal = seen.u, seen.v, seen.agree, seen.signal
    from_signal = (4.0 * seen.share * seen.share * g * (1.0 - g) / questions + seen.pseudo_variance) / (signal * signal)
    from_shares = seen.c1 * (1.0 - seen.c1) / (u * u) + seen.c2 * (1.0 - seen.c2) / (v * v)
    together = from_shares - 2.0 * (seen.c3 - seen.c1 * seen.c2) / (u * v)
    across = 4.0 * seen.share * ((seen.c3 - seen.c1 * g) / (signal * u) - (seen.c3 - seen.c2 * g) / (signal * v))
    both = from_signal + together / questions
    return 0.25 * max(both + across / questions, 0.0), 0.25 * max(both - across / questions, 0.0)


def vary_together(c1: float, c2: float, c3: float, effective: float) -> bool:
    """Whether two answers go together beyond chance: w = c3 - c1·c2 is more than three standard deviations above 0.

    Var(w) = [E((x1 - c1)²(x2 - c2)²) - w²]/n. Answers that are (nearly) always the same do not.
    """
    together = c3 - c1 * c2
    squares = c1 * c1 * c2 * (1.0 - c2) + c2 * c2 * c1 * (1.0 - 2.0 * c1) + (1.0 - 2.0 * c1) * (1.0 - 2.0 * c2) * c3
    deviation = math.sqrt(max(squares - together * together, 0.0) / effective)
    return together > LEAST_Z * deviation + _ROUNDING


def lean(seen: Agreement) -> int:
    """1 if both groups lean beyond chance to the same answer, -1 if to different ones, 0 if one of them to none."""
    sure = LEAST_Z / math.sqrt(seen.effective)
    first = abs(seen.u) > sure * math.sqrt(max(seen.c1 * (1.0 - seen.c1), 0.0))
    second = abs(seen.v) > sure * math.sqrt(max(seen.c2 * (1.0 - seen.c2), 0.0))
    if not (first and second):
        return 0
    return 1 if seen.u * seen.v > 0.0 else -1


def _check_shares(c1: float, c2: float, c3: float) -> None:
    fits = 0.0 <= c1 <= 1.0 and 0.0 <= c2 <= 1.0
    if not (fits and max(c1 + c2 - 1.0, 0.0) - _ROUNDING <= c3 <= min(c1, c2) + _ROUNDING):
        msg = f"shares of yes are {c1!r} and {c2!r}, of both {c3!r}: no two answers have these"
        raise FormulaInputError(msg)
