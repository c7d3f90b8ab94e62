"""Error rates of two groups' answers from how often they say yes and agree: the paper's way, corrected.

Right if the groups err independently given the outcome. `TwoGroupSums` say what may be believed of it, and when to
doubt it; the algebra alone is `two_group_solution` in `lab`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    BIT,
    CONFIDENCE,
    AddingSums,
    Fields,
    Optional,
    checked,
    columns_of,
    unchecked,
)
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
    status_of,
    unknown_rate,
)

__all__ = [
    "TwoGroupRates",
    "TwoGroupSums",
]

PRIOR_SIGNAL = (1.0 - 2.0 * PRIOR_RATE) ** 2
"""G = 2·agree - 1 of two answers that err at `PRIOR_RATE`."""

_ROUNDING = 1e-9


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


_GRAVEST_FIRST: tuple[EstimateStatus, ...] = ("insufficient", "contradicted", "uninformative", "balanced", "ok")


class TwoGroupRates(NamedTuple):
    """Estimated error rates of two groups' answers.

    Attributes
    ----------
    first, second : ErrorRate
        Of A and of B, symmetric.
    share_of_zeros : float or None
        P0, in [0, 1]; None where it cannot be told.
    status : str
        The graver of both rates' statuses.
    """

    first: ErrorRate
    second: ErrorRate
    share_of_zeros: float | None
    status: EstimateStatus


def _check(sums: "AnswerPairSums") -> None:
    """Refuse sums that no questions have."""
    check_sums(columns_of(sums), [(one, one) for one in (sums.c1, sums.c2, sums.c3)])
    room = 1e-6 * (1.0 + sums.weight)
    if not sums.c1 + sums.c2 - sums.weight - room <= sums.c3 <= min(sums.c1, sums.c2) + room:
        msg = f"c1 {sums.c1!r}, c2 {sums.c2!r} and c3 {sums.c3!r} of {sums.weight!r}: no two answers have these"
        raise FormulaInputError(msg)


PAIR_SUMS = Fields(None, {}, _check)


@dataclass(frozen=True, slots=True)
class AnswerPairSums(AddingSums):
    """Sums over questions, with weights w, of two groups' answers."""

    weight: float = 0.0
    weight2: float = 0.0
    c1: float = 0.0
    c2: float = 0.0
    c3: float = 0.0

    @classmethod
    @checked(answer_a=Optional(BIT), answer_b=Optional(BIT), weight=AT_LEAST_0)
    def contribution(cls, answer_a: int | None, answer_b: int | None, weight: float = 1.0) -> Self:
        """The sums of a single question; nothing if a group is empty and has no answer (None).

        Raises
        ------
        FormulaInputError
            If an answer is neither 0 nor 1, or the weight negative, infinite or NaN.
        """
        if answer_a is None or answer_b is None:
            return cls()
        return cls(weight, weight * weight, weight * answer_a, weight * answer_b, weight * (answer_a * answer_b))


@dataclass(frozen=True, slots=True)
class TwoGroupSums(AnswerPairSums):
    """Sums over questions, with weights w, for the error rates of two groups' answers.

    The question counts, not the round. If a question's rounds are averaged, c3 is the mean of the products; the
    intervals are then a little too wide.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw².
    c1, c2, c3 : float
        Σw over the questions that A, that B, and that both answer with yes.

    Examples
    --------
    >>> both = TwoGroupSums.contribution(1, 1).merge(TwoGroupSums.contribution(0, 1, weight=0.5))
    >>> both
    TwoGroupSums(weight=1.5, weight2=1.25, c1=1.0, c2=1.5, c3=1.0)
    >>> both.merge(TwoGroupSums.contribution(None, 1)) == both
    True
    """

    @checked(self=PAIR_SUMS, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rate of group A's answer, see `estimate_groups`."""
        return unchecked(TwoGroupSums.estimate_groups)(self, confidence).first

    @checked(self=PAIR_SUMS, confidence=CONFIDENCE)
    def estimate_groups(self, confidence: float = 0.95) -> TwoGroupRates:
        """Error rates of both groups' answers, with no outcome known, as far as they can be told.

        `two_group_solution` of the shares seen, but G includes 20 pseudo-questions of η = .25 (G = ¼), and three
        questions are asked first. Statuses, the first that applies:

        - ``insufficient`` below 50 effective questions; .25 in the two cases that follow, else the rates as below.
        - No agreement, G ≤ 0: ``uninformative``, .475, anything possible.
        - The answers hardly vary together, w = c3 - c1·c2 not above three standard deviations: ``uninformative``, .25,
          anything possible. Answers that are always the same would otherwise pass for perfect ones.
        - u and v not both three standard deviations from 0: ``balanced``, ``a = b = √G``. Zeros and ones are about
          equally frequent, and only the product of a and b is known. The interval is all that this product allows,
          0 to ½(1 - G), and the chance in G; the variance is that of a uniform one.
        - u and v on different sides: ``contradicted``, a = b = √G, anything possible. No two symmetric rates do that.
        - A rate below -.02 by three standard deviations: ``contradicted``, cut at 0, anything possible.
        - Else ``ok`` (or ``uninformative`` above .4), cut at [0, .475], interval ``ln a ± z·sd`` by the delta method
          of `two_group_deviations`, where pseudo-questions have the largest variance possible, then ±.005.

        Where anything is possible, the interval is [0, .475] and the variance ¼. Where one case follows another the
        rate jumps, mostly by less than .25; the loss of a forecast p, by 2·p(1-p) ≤ ½ times as much.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        TwoGroupRates

        Notes
        -----
        Errata E12 to E15, see `two_group_solution`. Erratum E21: with rates that differ between questions this reads
        √E[(1 - 2η_A)(1 - 2η_B)], not the mean rate.

        Examples
        --------
        >>> sums = TwoGroupSums(weight=10_000, weight2=10_000, c1=6_600, c2=6_200, c3=5_100)
        >>> rates = sums.estimate_groups()
        >>> [round(part, 3) for part in (rates.first.zero, rates.second.zero, rates.share_of_zeros or 0.0)]
        [0.1, 0.2, 0.3]
        >>> [round(end, 3) for end in rates.first[2:4]], rates.status
        ([0.079, 0.12], 'ok')
        >>> TwoGroupSums().estimate()[:6]
        (0.25, 0.25, 0.0, 0.475, 0.0, 'insufficient')
        """
        seen = believable(self)
        if isinstance(seen, ErrorRate):
            return TwoGroupRates(seen, seen, None, seen.status)
        side = lean(seen)
        if side > 0:
            return _told_apart(seen, confidence)
        common = equal_rate(seen, confidence)
        if side < 0:
            rate = unbelieved(common, "contradicted")
            return TwoGroupRates(rate, rate, None, rate.status)
        rate = _balanced(common, seen, confidence)
        zeros = 0.5 - 0.5 * (seen.u + seen.v) / math.sqrt(seen.signal)
        return TwoGroupRates(rate, rate, min(max(zeros, 0.0), 1.0), rate.status)


def doubted_rate(effective: float) -> ErrorRate:
    """The estimate where answers do not vary together beyond doubt: as before there is anything to go by."""
    status: EstimateStatus = "uninformative" if status_of(effective, 0.0, 0.0) == "ok" else "insufficient"
    return ErrorRate(PRIOR_RATE, PRIOR_RATE, 0.0, HIGHEST_RATE, effective, status, UNKNOWN_VARIANCE)


def no_signal(effective: float) -> ErrorRate:
    """The estimate where answers do not agree beyond chance: the highest rate, if there is enough to say so."""
    unknown = unknown_rate(effective)
    return doubted_rate(effective) if unknown.status == "insufficient" else unknown


def unbelieved(rate: ErrorRate, status: EstimateStatus) -> ErrorRate:
    """The same rate with that status, unless there is too little to tell, and with anything possible."""
    known = status if rate.status != "insufficient" else rate.status
    return rate._replace(low=0.0, high=HIGHEST_RATE, status=known, variance=UNKNOWN_VARIANCE)


def symmetric_rate(alignment: float, log_variance: float, effective: float, confidence: float) -> ErrorRate:
    """Of η = (1 - a)/2, a > 0, cut at [0, .475]; ``contradicted`` if a is above 1 beyond doubt."""
    raw = 0.5 * (1.0 - alignment)
    rate = min(max(raw, 0.0), HIGHEST_RATE)
    deviation = math.sqrt(log_variance)
    low, high = interval_of_distance(rate, alignment, deviation, confidence)
    variance = min(0.25 * alignment * alignment * log_variance, UNKNOWN_VARIANCE)
    found = ErrorRate(rate, rate, low, high, effective, status_of(effective, rate, rate), variance)
    impossible = -raw > MODEL_ALLOWANCE + LEAST_Z * 0.5 * alignment * deviation
    return unbelieved(found, "contradicted") if impossible else found


def believable(sums: AnswerPairSums) -> Agreement | ErrorRate:
    """What was seen, or the estimate where nothing is to be read from it."""
    effective = effective_size(sums.weight, sums.weight2)
    if not effective > 0.0:
        return doubted_rate(0.0)
    seen = agreement(*columns_of(sums))
    if not seen.signal > 0.0:
        return no_signal(effective)
    return seen if vary_together(seen.c1, seen.c2, seen.c3, effective) else doubted_rate(effective)


def equal_rate(seen: Agreement, confidence: float) -> ErrorRate:
    """The rate if both groups have the same."""
    signal = seen.signal
    log_variance = 0.25 * seen.signal_variance / (signal * signal)
    return symmetric_rate(math.sqrt(signal), log_variance, seen.effective, confidence)


def _balanced(common: ErrorRate, seen: Agreement, confidence: float) -> ErrorRate:
    """Both groups' rate where only a·b is known: either rate may be as low as 0 or as high as ½(1 - G)."""
    deviation = math.sqrt(seen.signal_variance) / seen.signal
    _, high = interval_of_distance(common.zero, seen.signal, deviation, confidence)
    width = max(0.5 * (1.0 - seen.signal), 0.0)
    variance = min(common.variance + width * width / 12.0, UNKNOWN_VARIANCE)
    status: EstimateStatus = "balanced" if common.status == "ok" else common.status
    return common._replace(low=0.0, high=high, status=status, variance=variance)


def _told_apart(seen: Agreement, confidence: float) -> TwoGroupRates:
    a, b = math.sqrt(seen.signal * seen.u / seen.v), math.sqrt(seen.signal * seen.v / seen.u)
    variances = log_variances(seen)
    first = symmetric_rate(a, variances[0], seen.effective, confidence)
    second = symmetric_rate(b, variances[1], seen.effective, confidence)
    status = next(status for status in _GRAVEST_FIRST if status in {first.status, second.status})
    zeros = None if status == "contradicted" else min(max(0.5 - seen.u / a, 0.0), 1.0)
    return TwoGroupRates(first, second, zeros, status)
