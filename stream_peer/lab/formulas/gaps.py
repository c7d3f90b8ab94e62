"""What forecasting something else than what one believes costs, in expectation, against noisy reference answers."""

import numpy as np

from stream_peer.numerics.arguments import EACH_FORECAST, HALF_RATE, RATE, FloatArray, checked, unchecked
from stream_peer.numerics.peer_losses import Rate


@checked(forecasts=EACH_FORECAST, rate0=RATE, rate1=RATE)
def noisy_probability(forecasts: FloatArray, rate0: Rate, rate1: Rate) -> FloatArray:
    """Probability that the reference answer is 1, from that of the outcome: a forecast sent through the channel.

    ``p̂ = η0 + (1 - η0 - η1)·p``; with one rate ``(1 - 2η)·p + η``, section "A peer prediction function and its regret"
    of Liu & Helmbold.
    The peer loss is the squared loss of the forecast sent through:
    ``(ŷ - p̂)² = (1 - 2η)·s + η²`` with s of `peer_loss`.

    Parameters
    ----------
    forecasts : (..., n) float64
        Probabilities that the outcome is 1, in [0, 1].
    rate0, rate1 : float or array
        η0 = P(ŷ=1 | y=0) and η1 = P(ŷ=0 | y=1), in [0, 1].

    Returns
    -------
    (..., n) float64
        Probabilities between η0 and 1 - η1.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If a rate is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> noisy_probability(np.array([0.0, 0.5, 1.0]), 0.1, 0.3).round(6)
    array([0.1, 0.4, 0.7])
    """
    through: FloatArray = rate0 * (1.0 - forecasts) + (1.0 - rate1) * forecasts
    return through


@checked(forecasts=EACH_FORECAST, believed=EACH_FORECAST, error_rate=HALF_RATE)
def calibration_gap(forecasts: FloatArray, believed: FloatArray | float, error_rate: Rate) -> FloatArray:
    """Expected peer loss of a forecast, less that of forecasting the true probability.

    ``g(q, p) = E[s(q, ŷ)] - E[s(p, ŷ)] = (1 - 2η)·(p - q)²`` if the outcome is 1 with probability p, for s of
    `peer_loss`: it is smallest, and 0, at q = p. Divided by 1 - 2η it is the same gap of the true losses (ψ⁻¹).

    Notes
    -----
    Erratum E5: Theorem 4 of Liu & Helmbold prints ``g - F(η, p) - 2η·p·(1 - p)``, which is not 0 at q = p.
    Erratum E10: of the two maps in its proof ``ψ(x) = (1 - 2η)·x`` leads to g and ``ψ⁻¹(x) = x/(1 - 2η)`` back.

    Parameters
    ----------
    forecasts : (..., n) float64
        q, in [0, 1].
    believed : float or array
        p, the true probability, in [0, 1].
    error_rate : float or array
        η, in [0, ½].

    Returns
    -------
    (..., n) float64
        In [0, 1].

    Raises
    ------
    ForecastRangeError
        If a probability is NaN or outside [0, 1].
    FormulaInputError
        If the error rate is outside [0, ½].

    Examples
    --------
    >>> import numpy as np
    >>> calibration_gap(np.array([0.4, 0.7]), 0.7, error_rate=0.2).round(6)
    array([0.054, 0.   ])
    """
    distance = forecasts - believed
    gap: FloatArray = (1.0 - 2.0 * error_rate) * (distance * distance)
    return gap


@checked(forecasts=EACH_FORECAST, believed=EACH_FORECAST, error_rate=HALF_RATE)
def noisy_label_gap(forecasts: FloatArray, believed: FloatArray | float, error_rate: Rate) -> FloatArray:
    """Expected squared loss against reference answers as they are, less that of forecasting the true probability.

    ``E[ℓ(q, ŷ)] - E[ℓ(p, ŷ)] = (1 - 2η)·(p - q)² - 2η·q·(1 - q) + 2η·p·(1 - p)`` if the outcome is 1 with probability
    p. Negative where naive labels prefer a wrong forecast: they are best met by ``(1 - 2η)·p + η``, nearer to ½.

    Notes
    -----
    Erratum E4: the lemma before Theorem 4 of Liu & Helmbold has ``-F(η, p)`` as its last term. Its proof starts with
    the gap to p̂ instead of p (for which the term is +F), and errs in the sign. Erratum E6: the third display line
    of that proof has ``-2η·p + η`` too much, which is gone in the next.

    Parameters
    ----------
    forecasts : (..., n) float64
        q, in [0, 1].
    believed : float or array
        p, the true probability, in [0, 1].
    error_rate : float or array
        η, in [0, ½].

    Returns
    -------
    (..., n) float64
        In [-¼, 1].

    Raises
    ------
    ForecastRangeError
        If a probability is NaN or outside [0, 1].
    FormulaInputError
        If the error rate is outside [0, ½].

    Examples
    --------
    >>> import numpy as np
    >>> noisy_label_gap(np.array([0.4, 0.62, 0.7]), 0.7, error_rate=0.2).round(6)
    array([ 0.042 , -0.0064,  0.    ])
    """
    truth = np.asarray(believed, dtype=np.float64)
    naive = unchecked(calibration_gap)(forecasts, truth, error_rate)
    moved: FloatArray = naive - 2.0 * error_rate * (forecasts * (1.0 - forecasts) - truth * (1.0 - truth))
    return moved
