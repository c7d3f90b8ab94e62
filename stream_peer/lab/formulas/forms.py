"""Peer losses as the paper writes them: for the squared loss, for class-dependent rates, for any convex function."""

from stream_peer.numerics.arguments import ANSWERS, EACH_FORECAST, HALF_RATE, RATE, Answers, FloatArray, Has, checked
from stream_peer.numerics.losses import SQUARED, ProperLoss, Sides, read_linearly
from stream_peer.numerics.peer_losses import Rate


@checked(forecasts=EACH_FORECAST, reference_answer=ANSWERS, error_rate=HALF_RATE)
def peer_loss(forecasts: FloatArray, reference_answer: Answers, error_rate: Rate) -> FloatArray:
    """Score forecasts against a noisy reference answer, as if the outcome were known: the paper's form.

    ``s = (ŷ - p)² + 2η·p·(1 - p)``, the definition in Theorem 4 of Liu & Helmbold. The second term cancels the
    part of the label noise that depends on p, so that for either outcome y, ``E[s | y] = (1 - 2η)·(y - p)² + η``.

    Notes
    -----
    Erratum E5: the divergence printed with Theorem 4 is not zero for equal forecasts; see `calibration_gap`.
    Erratum E17: the section "Heterogeneous error rates" prints the second term without its factor 2.
    Erratum E23: for forecasts of 0 and 1 the second term vanishes: s is then the plain loss against the reference
    answer, whatever the error rate.
    The constant η counts once for every question that an expert answered: where experts skip questions, sums of
    this form do not compare, those of `unbiased_peer_loss` do.

    Parameters
    ----------
    forecasts : (..., n) float64
        Each expert's probability that the outcome is 1, in [0, 1].
    reference_answer : float or array
        ŷ, the experts' stand-in for the outcome: 0, 1, or, read linearly, between. With leave-one-out references
        each expert has its own.
    error_rate : float or array
        η = P(ŷ ≠ y), in [0, ½], the same for both outcomes. At ½ the reference answer carries no information.

    Returns
    -------
    (..., n) float64
        Losses in [0, 1]; smaller is better.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If the error rate is outside [0, ½], or a reference answer outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> peer_loss(np.array([0.9, 0.5]), reference_answer=1, error_rate=0.2)
    array([0.046, 0.35 ])
    """
    spread = forecasts * (1.0 - forecasts)
    scored: FloatArray = SQUARED(forecasts, reference_answer) + 2.0 * error_rate * spread
    return scored


@checked(forecasts=EACH_FORECAST, reference_answer=ANSWERS, rate0=RATE, rate1=RATE, loss=Has(("scaled_sides",)))
def natarajan_peer_loss(
    forecasts: FloatArray, reference_answer: Answers, rate0: Rate, rate1: Rate, loss: ProperLoss = SQUARED
) -> FloatArray:
    """Peer loss for class-dependent rates in the form of Natarajan et al.

    ``s = (1 - η_{1-ŷ})·ℓ(p, ŷ) - η_ŷ·ℓ(p, 1-ŷ)``, section "Asymmetric error rate" of Liu & Helmbold, with
    ``E[s | y] = (1 - η0 - η1)·ℓ(p, y)``. It equals `unit_peer_loss`, which is the form to sum.

    Parameters
    ----------
    forecasts : (..., n) float64
        Each expert's probability that the outcome is 1, in [0, 1].
    reference_answer : float or array
        ŷ: 0, 1, or, read linearly, between; one for all, or broadcast to the forecasts' shape.
    rate0, rate1 : float or array
        η0 = P(ŷ=1 | y=0) and η1 = P(ŷ=0 | y=1), in [0, 1].
    loss : ProperLoss
        Scaled to [0, 1].

    Returns
    -------
    (..., n) float64
        Within [-max(η0, η1), 1 - min(η0, η1)] for losses in [0, 1]; smaller is better.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If a rate or a reference answer is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> natarajan_peer_loss(np.array([0.9, 0.5]), 1, 0.2, 0.2).round(6)
    array([-0.154,  0.15 ])
    """
    if_one, if_zero = loss.scaled_sides(forecasts)
    told_one = (1.0 - rate0) * if_one - rate1 * if_zero
    told_zero = (1.0 - rate1) * if_zero - rate0 * if_one
    return read_linearly(Sides(told_one, told_zero), reference_answer)
