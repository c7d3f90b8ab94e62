"""The paper's way to use outcomes revealed with a known probability, corrected; for comparison with `truth`."""

import math
from dataclasses import dataclass
from typing import Self

from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    CHANCE,
    CONFIDENCE,
    LARGEST,
    SHARE,
    AddingSums,
    Fields,
    Optional,
    checked,
    columns_of,
)
from stream_peer.numerics.error_rates.rate import (
    HIGHEST_RATE,
    PRIOR_RATE,
    UNKNOWN_VARIANCE,
    ErrorRate,
    check_sums,
    effective_size,
    normal_quantile,
    status_of,
)


def _check(sums: "HorvitzThompsonSums") -> None:
    """Refuse sums that no questions have."""
    check_sums(columns_of(sums), ((sums.inflated, sums.inflated2),), 0.0, LARGEST)


_SOUND = Fields(None, {}, _check)


@dataclass(frozen=True, slots=True)
class HorvitzThompsonSums(AddingSums):
    """Sums over all questions, resolved or not, of wrong answers over the probability of being revealed.

    For comparison: `TruthSums` is never worse and needs no reveal probability.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw², over all questions.
    inflated, inflated2 : float
        Σw·z and Σw·z² with z = 1(ŷ ≠ y)/p* where the outcome is revealed, else 0.

    Examples
    --------
    >>> seen = HorvitzThompsonSums.contribution(wrong_share=1.0, reveal_probability=0.2)
    >>> seen.merge(HorvitzThompsonSums.contribution(wrong_share=None, reveal_probability=0.2))
    HorvitzThompsonSums(weight=2.0, weight2=2.0, inflated=5.0, inflated2=25.0)
    """

    weight: float = 0.0
    weight2: float = 0.0
    inflated: float = 0.0
    inflated2: float = 0.0

    @classmethod
    @checked(wrong_share=Optional(SHARE), reveal_probability=CHANCE, weight=AT_LEAST_0)
    def contribution(cls, wrong_share: float | None, reveal_probability: float, weight: float = 1.0) -> Self:
        """The sums of a single question; ``wrong_share`` None if its outcome is not revealed.

        Raises
        ------
        FormulaInputError
            If the reveal probability p* is not in (0, 1], or the weight negative, infinite or NaN.
        """
        value = (wrong_share or 0.0) / reveal_probability
        return cls(weight, weight * weight, weight * value, weight * value * value)

    @checked(self=_SOUND, confidence=CONFIDENCE)
    def estimate(self, confidence: float = 0.95) -> ErrorRate:
        """Error rate of reference answers, the same for both classes, unbiased whatever was revealed.

        ``η̂ = Σw·z / Σw``, clamped to [0, .475], with variance ``(mean z² - η̂²)/n_eff``; in expectation
        (η/p* - η²)/t. Interval: normal; it has no width
        before the first wrong answer is seen.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ErrorRate
            Without data .25 and all of [0, .475]. ``effective_questions`` counts all questions, revealed or not.

        Notes
        -----
        The paper's estimator with its indicator turned round (Erratum E1): as printed it averages 1(ŷ = y)/p*, whose
        mean is 1 - η.

        Examples
        --------
        >>> seen = HorvitzThompsonSums(weight=1000.0, weight2=1000.0, inflated=300.0, inflated2=1500.0)
        >>> [round(value, 4) for value in seen.estimate()[:4]]
        [0.3, 0.3, 0.2264, 0.3736]
        """
        effective = effective_size(self.weight, self.weight2)
        if not effective > 0.0:
            return ErrorRate(PRIOR_RATE, PRIOR_RATE, 0.0, HIGHEST_RATE, 0.0, "insufficient", UNKNOWN_VARIANCE)
        mean = self.inflated / self.weight
        variance = max(self.inflated2 / self.weight - mean * mean, 0.0) / effective
        rate = min(mean, HIGHEST_RATE)
        reach = normal_quantile(confidence) * math.sqrt(variance)
        low, high = min(max(mean - reach, 0.0), rate), max(min(mean + reach, HIGHEST_RATE), rate)
        return ErrorRate(
            rate, rate, low, high, effective, status_of(effective, rate, rate), min(variance, UNKNOWN_VARIANCE)
        )
