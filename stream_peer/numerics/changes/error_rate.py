"""Did the error rate of a feed change? From agreement alone, and from the answers that turned out to be wrong."""

from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.changes.scan import Earlier, scan_for_changes
from stream_peer.numerics.error_rates.moments import MOMENT_SUMS, MomentSums
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import AT_LEAST_0, Numbers, Optional, checked, unchecked

RATE_LIMIT = 4.5
"""A change of more standard deviations is no chance, however often one looks: see `agreement_change`."""


_ALIGNED = Numbers("n", -1.0, 1.0)
_WEIGHTS = Numbers("n", 0.0, 1.0)


class RateChange(NamedTuple):
    """The likeliest change of an error rate.

    Attributes
    ----------
    z : float
        Its standard deviations, positive if ``now`` is above ``before``; 0 if nothing can be said.
    before, now : float
        Error rates before it and from then on.
    cut : int
        First question of the new state.
    """

    z: float
    before: float
    now: float
    cut: int


@checked(pair=_ALIGNED, rest=_ALIGNED, weights=_WEIGHTS, earlier=Optional(MOMENT_SUMS))
def agreement_change(
    pair: FloatArray, rest: FloatArray, weights: FloatArray, earlier: MomentSums | None = None
) -> RateChange | None:
    """Scan the two moments that the symmetric error rate is read from, ``pair`` and ``rest``, for a change.

    `scan_for_changes` of each, with the largest distance from their mean as the span; of the two the one whose absolute
    z is larger. If all experts err more, both fall; if there are fewer experts, only ``rest`` does. The rates before
    and after are those of `MomentSums`, each with its 20 pseudo-questions; z has the sign of their difference.

    With everything that came before the window before every cut, a slow drift shows as well, as a window that is
    unlike all the past.

    Notes
    -----
    Not in the paper, whose rates do not change. The distance ``ln rest - ½·ln pair`` of which the rate is made has less
    power: with 12 experts it finds a step of the rate from .10 to .35 half as often.

    Parameters
    ----------
    pair, rest : (n_questions,) float64
        Of a question's mean over its rounds, the oldest first.
    weights : (n_questions,) float64
        In [0, 1]; 0 leaves a question out.
    earlier : MomentSums, optional
        Of all questions before these.

    Returns
    -------
    RateChange or None
        None if all weights are 0.

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> new = np.repeat([0.0, 1.0], 100)
    >>> wave = np.tile([-0.1, 0.1], 100)
    >>> found = agreement_change(0.3 - 0.2 * new + wave, 0.5 - 0.3 * new - wave, np.ones(200))
    >>> round(found.z, 2), round(found.before, 3), round(found.now, 3), found.cut
    (10.0, 0.071, 0.195, 100)
    """
    if not weights.any():
        return None
    moments = np.stack((pair, rest), axis=1)
    found = unchecked(scan_for_changes)(
        moments, np.stack((weights, weights), axis=1), _spans(moments, weights), _of_moments(earlier)
    )
    larger = int(np.abs(found.z).argmax())
    cut = int(found.cuts[larger])
    before = _sums_of(pair[:cut], rest[:cut], weights[:cut])
    now = _sums_of(pair[cut:], rest[cut:], weights[cut:])
    before = before if earlier is None else earlier.merge(before)
    rate_before, rate_now = (unchecked(MomentSums.estimate)(sums).zero for sums in (before, now))
    return _signed(abs(float(found.z[larger])), rate_before, rate_now, cut)


def _check_earlier(earlier_wrong: float, earlier: float, **_: object) -> None:
    """Refuse more wrong answers than there were."""
    if earlier_wrong > earlier:
        msg = f"earlier_wrong is {earlier_wrong!r}, more than earlier, {earlier!r}"
        raise FormulaInputError(msg)


@checked(_check_earlier, wrong=_WEIGHTS, weights=_WEIGHTS, earlier_wrong=AT_LEAST_0, earlier=AT_LEAST_0)
def measured_change(wrong: FloatArray, weights: FloatArray, earlier_wrong: float, earlier: float) -> RateChange | None:
    """Scan the shares of wrong reference answers of resolved questions for a change.

    `scan_for_changes` with a span of 1. Of earlier questions the mean square of the shares is taken to be their mean,
    the largest possible, and each to weigh 1.

    Parameters
    ----------
    wrong : (n_questions,) float64
        Share of wrong ones among the reference answers to a question, in [0, 1], the oldest first.
    weights : (n_questions,) float64
        In [0, 1]; 0: its outcome is not known.
    earlier_wrong, earlier : float
        Of all resolved questions before these, Σw·wrong and Σw.

    Returns
    -------
    RateChange or None
        None if all weights are 0. Rates are plain shares, before NaN if nothing was before.

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> wrong = np.concatenate((np.tile([1.0, 0.0, 0.0, 0.0, 0.0], 40), np.tile([1.0, 0.0], 100)))
    >>> found = measured_change(wrong, np.ones(400), earlier_wrong=20.0, earlier=100.0)
    >>> round(found.z, 2), round(found.before, 2), found.now, found.cut
    (6.24, 0.2, 0.5, 200)
    """
    if not weights.any():
        return None
    past = np.array([earlier]), np.array([earlier]), np.array([earlier_wrong]), np.array([earlier_wrong])
    found = unchecked(scan_for_changes)(wrong[:, None], weights[:, None], np.ones(1), Earlier(*past))
    cut = int(found.cuts[0])
    weighted = weights * wrong
    first = earlier + float(np.add.reduce(weights[:cut]))
    first_wrong = earlier_wrong + float(np.add.reduce(weighted[:cut]))
    second, second_wrong = float(np.add.reduce(weights[cut:])), float(np.add.reduce(weighted[cut:]))
    before = first_wrong / first if first > 0.0 else float("nan")
    now = second_wrong / second if second > 0.0 else float("nan")
    return RateChange(float(found.z[0]), before, now, cut)


def _signed(surprise: float, before: float, now: float, cut: int) -> RateChange:
    return RateChange(surprise if now >= before else -surprise, before, now, cut)


def _spans(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Largest distance from the mean, of each series."""
    means = np.add.reduce(weights[:, None] * values, axis=0) / np.add.reduce(weights)
    distances = np.where(weights[:, None] > 0.0, np.abs(values - means), 0.0)
    spans: FloatArray = np.maximum.reduce(distances, axis=0)
    return spans


def _of_moments(sums: MomentSums | None) -> Earlier | None:
    if sums is None:
        return None
    weight, weight2 = np.array([sums.weight] * 2), np.array([sums.weight2] * 2)
    return Earlier(weight, weight2, np.array([sums.pair, sums.rest]), np.array([sums.pair2, sums.rest2]))


def _sums_of(pair: FloatArray, rest: FloatArray, weights: FloatArray) -> MomentSums:
    columns = (weights, weights * weights, weights * pair, weights * rest)
    squares = (weights * pair * pair, weights * rest * rest, weights * pair * rest)
    return MomentSums(*(float(np.add.reduce(column)) for column in (*columns, *squares)))
