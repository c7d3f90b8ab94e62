"""Error rates of two groups' answers from how often they say yes and agree: the paper's way, corrected; and a shortcut.

Right if the groups err independently given the outcome. `two_group_solution` is the plain algebra; here stands what
may be believed of it.
"""

import math
from dataclasses import dataclass, fields
from operator import add, attrgetter
from typing import NamedTuple, Self

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates.group_agreement import (
    Agreement,
    agreement,
    lean,
    log_variances,
    vary_together,
)
from stream_peer.numerics.error_rates.rate import (
    HIGHEST_RATE,
    LEAST_Z,
    MODEL_ALLOWANCE,
    PRIOR_RATE,
    UNKNOWN_VARIANCE,
    ErrorRate,
    EstimateStatus,
    check_sums,
    effective_size,
    interval_of_distance,
    status_of,
    unknown_rate,
)
from stream_peer.numerics.losses.arguments import (
    AT_LEAST_0,
    BIT,
    CONFIDENCE,
    Optional,
    Record,
    check_same,
    checked,
    unchecked,
)

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


def _check(sums: "_AnswerPairSums") -> None:
    """Refuse sums that no questions have."""
    check_sums(_COLUMNS(sums), [(one, one) for one in (sums.c1, sums.c2, sums.c3)])
    room = 1e-6 * (1.0 + sums.weight)
    if not sums.c1 + sums.c2 - sums.weight - room <= sums.c3 <= min(sums.c1, sums.c2) + room:
        msg = f"c1 {sums.c1!r}, c2 {sums.c2!r} and c3 {sums.c3!r} of {sums.weight!r}: no two answers have these"
        raise FormulaInputError(msg)


_SOUND = Record(None, {}, _check)


@dataclass(frozen=True, slots=True)
class _AnswerPairSums:
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

    def merge(self, other: Self) -> Self:
        """Sums of both."""
        check_same(self, other)
        return type(self)(*map(add, _COLUMNS(self), _COLUMNS(other)))


_COLUMNS = attrgetter(*(field.name for field in fields(_AnswerPairSums)))


@dataclass(frozen=True, slots=True)
class TwoGroupSums(_AnswerPairSums):
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

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rate of group A's answer, see `estimate_groups`."""
        return unchecked(TwoGroupSums.estimate_groups)(self, confidence).first

    @checked(self=_SOUND, confidence=CONFIDENCE)
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
        seen = _believable(self)
        if isinstance(seen, ErrorRate):
            return TwoGroupRates(seen, seen, None, seen.status)
        side = lean(seen)
        if side > 0:
            return _told_apart(seen, confidence)
        common = _equal_rate(seen, confidence)
        if side < 0:
            rate = unbelieved(common, "contradicted")
            return TwoGroupRates(rate, rate, None, rate.status)
        rate = _balanced(common, seen, confidence)
        zeros = 0.5 - 0.5 * (seen.u + seen.v) / math.sqrt(seen.signal)
        return TwoGroupRates(rate, rate, min(max(zeros, 0.0), 1.0), rate.status)


@dataclass(frozen=True, slots=True)
class EqualGroupSums(_AnswerPairSums):
    """Sums over questions, with weights w, for the error rate that two groups have in common.

    For groups that are drawn anew for each question, so that they are equally good by construction. With fixed groups
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

    @checked(self=_SOUND, confidence=CONFIDENCE)
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
        Not in the paper, whose groups are drawn once. Drawn anew it needs fewer questions than Theorem 7 at any P0.

        Examples
        --------
        >>> rate = EqualGroupSums(weight=10_000, weight2=10_000, c1=5_000, c2=5_000, c3=3_400).estimate()
        >>> [round(part, 3) for part in rate[:4]], rate.status
        ([0.2, 0.2, 0.187, 0.213], 'ok')
        """
        seen = _believable(self)
        return seen if isinstance(seen, ErrorRate) else _equal_rate(seen, confidence)


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


def _believable(sums: _AnswerPairSums) -> Agreement | ErrorRate:
    """What was seen, or the estimate where nothing is to be read from it."""
    effective = effective_size(sums.weight, sums.weight2)
    if not effective > 0.0:
        return doubted_rate(0.0)
    seen = agreement(*_COLUMNS(sums))
    if not seen.signal > 0.0:
        return no_signal(effective)
    return seen if vary_together(seen.c1, seen.c2, seen.c3, effective) else doubted_rate(effective)


def _equal_rate(seen: Agreement, confidence: float) -> ErrorRate:
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
