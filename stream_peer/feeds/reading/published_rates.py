"""Error rates as they are published: from version 2 on with what speaks against them."""

import math
from functools import lru_cache
from typing import NamedTuple

from stream_peer.events.outputs import ErrorRateStatus, TrustState
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.rates import Rates
from stream_peer.numerics.arguments import unchecked
from stream_peer.numerics.dependence import ClassErrors
from stream_peer.numerics.error_rates import TruthSums
from stream_peer.numerics.error_rates.rate import HIGHEST_RATE, normal_quantile


class PublishedRates(NamedTuple):
    """What is published of error rates beside the estimate itself.

    Attributes
    ----------
    status : ErrorRateStatus
    high : float
        Upper end of the interval of the mean of both rates.
    measured : float or None
        Of resolved questions; None before the first.
    by_trust : bool
        Whether the status is that of the feed's trust.
    class_errors : ClassErrors, optional
        How often majorities err on each outcome, if votes show that they are misled on one.
    """

    status: ErrorRateStatus
    high: float
    measured: float | None
    by_trust: bool
    class_errors: ClassErrors | None = None


def published_rates(
    rates: Rates,
    state: TrustState,
    stated_error: float | None,
    class_errors: ClassErrors | None,
    confidence: float,
    method: Method,
) -> PublishedRates:
    """What is published of error rates, given the feed's trust.

    From version 2 on: where votes or outcomes have shown that the estimate's assumption does not hold, the status says
    so; and that it is ``contradicted`` where votes show that majorities are misled on one outcome. Unless trust is
    ``ok``, the interval goes up to `rate_by_stated_error` at least. What was measured is the mean over both outcomes,
    as the interval.
    """
    estimate = rates.estimate
    if not method.rates_by_trust:
        return PublishedRates(rates.status, estimate.high, rates.measured, by_trust=False)
    high = estimate.high
    if state != "ok" and method.estimates and method.rate is None:
        high = max(high, rate_by_stated_error(rates, stated_error, confidence))
    if rates.status == "ok" and state in ("dependent", "contradicted"):
        return PublishedRates(state, high, rates.measured_mean, by_trust=True)
    if rates.status == "ok" and class_errors is not None:
        high = max(high, min(class_errors_high(class_errors, confidence), HIGHEST_RATE))
        return PublishedRates("contradicted", high, rates.measured_mean, by_trust=False, class_errors=class_errors)
    return PublishedRates(rates.status, high, rates.measured_mean, by_trust=False)


def class_errors_high(found: ClassErrors, confidence: float) -> float:
    """The upper end of the interval of the mean of both error rates, as three moments of the votes give them."""
    return 0.5 * (found.zero + found.one + normal_quantile(confidence) * math.hypot(*found.deviations))


def class_errors_reason(found: ClassErrors) -> str:
    """That majorities are misled on an outcome."""
    outcome = found.misled_outcome or 0
    return (
        f"votes show that reference answers are wrong in {(found.zero, found.one)[outcome]:.0%} of the"
        f" questions whose outcome is {outcome}, and seldom in the others: rates are not alike"
    )


def rate_by_stated_error(rates: Rates, stated_error: float | None, confidence: float) -> float:
    """How often reference answers are wrong at most if experts know no more than their mean forecast says.

    ``stated_error`` is the mean of ``min(b, 1 - b)`` over questions, b the mean forecast. If all that experts know is
    common to them, that is the chance that the majority errs, as far as b is calibrated. To it comes the normal
    quantile of so many questions. It is no more than the upper end of the interval that outcomes alone give.
    """
    if stated_error is None:
        return HIGHEST_RATE
    reach = normal_quantile(confidence) * math.sqrt(
        stated_error * (1.0 - stated_error) / max(rates.estimate.effective_questions, 1.0)
    )
    by_outcomes = _high_by_outcomes(rates.right_zero, rates.wrong_zero, rates.right_one, rates.wrong_one, confidence)
    return min(stated_error + reach, by_outcomes, HIGHEST_RATE)


@lru_cache(256)  # every record asks, and only an outcome changes it
def _high_by_outcomes(
    right_zero: float, wrong_zero: float, right_one: float, wrong_one: float, confidence: float
) -> float:
    """The upper end of the interval that outcomes alone give."""
    return unchecked(TruthSums.estimate)(TruthSums(right_zero, wrong_zero, right_one, wrong_one), confidence).high
