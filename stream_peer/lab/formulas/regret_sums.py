"""Regrets, kept so that they can be priced later: three parts that the newest error rates put together."""

from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    ANSWERS,
    AT_LEAST_0,
    AWAKE,
    EACH_FORECAST,
    RATE,
    SIZE,
    WEIGHTS,
    Answers,
    BoolArray,
    Each,
    Fields,
    FloatArray,
    Has,
    Numbers,
    check_same,
    checked,
    unchecked,
)
from stream_peer.numerics.losses import SQUARED, ProperLoss, read_linearly
from stream_peer.numerics.peer_losses import unit_peer_loss

__all__ = ["LossParts", "RegretSums", "loss_parts"]


class LossParts(NamedTuple):
    """The three losses of which every peer loss is made, in the order in which the forms below take them.

    Attributes
    ----------
    against, if_one, if_zero : (..., n) float64
        ℓ(p, ŷ), ℓ(p, 1) and ℓ(p, 0), divided by the loss's largest value: in [0, 1].
    """

    against: FloatArray
    if_one: FloatArray
    if_zero: FloatArray


@checked(forecasts=EACH_FORECAST, reference_answer=ANSWERS, loss=Has(("scaled_sides",)))
def loss_parts(forecasts: FloatArray, reference_answer: Answers, loss: ProperLoss = SQUARED) -> LossParts:
    """Losses of forecasts from which their peer loss is priced at any error rates, now or later.

    ``ℓ(p, ŷ) = ŷ·ℓ(p, 1) + (1 - ŷ)·ℓ(p, 0)``: a soft reference answer is read linearly, which leaves every identity
    of peer losses as it is. Its error rates are η0 = E[ŷ | y=0] and η1 = E[1 - ŷ | y=1].

    Parameters
    ----------
    forecasts : (..., n) float64
        Probabilities that the outcome is 1, in [0, 1].
    reference_answer : float or array
        ŷ: 0, 1, or between; one for all, or broadcast to the forecasts' shape.
    loss : ProperLoss
        By default the squared loss, as in the section "Application to Square Loss" of Liu & Helmbold.

    Returns
    -------
    LossParts
        On the scale [0, 1]; times ``loss.upper`` on the loss's own.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1].
    FormulaInputError
        If a reference answer is NaN or outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> parts = loss_parts(np.array([0.9, 0.5]), reference_answer=1)
    >>> unit_peer_loss(*parts, 0.2, 0.2).round(6)
    array([-0.154,  0.15 ])
    """
    sides = loss.scaled_sides(forecasts)
    return LossParts(read_linearly(sides, reference_answer), *sides)


def _check_factor(self: "_Sums", factor: float | FloatArray) -> None:
    """Refuse a factor for other experts."""
    shape = np.shape(_values(self)[0])
    try:
        fits = np.broadcast_shapes(np.shape(factor), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        msg = f"factor has the shape {np.shape(factor)}, which does not fit {shape}"
        raise FormulaInputError(msg)


class _Sums:
    """Values that add up field by field."""

    __slots__ = ()

    def merge(self, other: Self) -> Self:
        """Sums of both."""
        check_same(self, other)
        return type(self)(*(one + two for one, two in zip(_values(self), _values(other), strict=True)))

    @checked(_check_factor, factor=Numbers("..."))
    def scaled(self, factor: float | FloatArray) -> Self:
        """Sums as they count when read, for instance a bucket of them at its factor (`error_rates.bucket_factors`)."""
        return type(self)(*(factor * value for value in _values(self)))

    @checked(n_experts=SIZE)
    def joined(self, n_experts: int) -> Self:
        """Room for newcomers, who have done nothing yet. With as many experts as there are, or fewer, nothing happens.

        An expert joins once, at its own place along the last axis, which it keeps whether it comes or not.
        """
        return type(self)(*(_padded(value, n_experts) for value in _values(self)))


def _values(sums: _Sums) -> list[FloatArray]:
    return [getattr(sums, field.name) for field in fields(sums)]  # type: ignore[arg-type]  # its subclasses are dataclasses


def _padded(values: FloatArray, n_experts: int) -> FloatArray:
    missing = max(n_experts - values.shape[-1], 0)
    return np.concatenate([values, np.zeros((*values.shape[:-1], missing))], axis=-1)


def check_columns(sums: object) -> None:
    """Refuse sums of which some are of other experts than the rest.

    Raises
    ------
    FormulaInputError
    """
    shapes = {np.shape(getattr(sums, field.name)) for field in fields(sums)}  # type: ignore[arg-type]
    if len(shapes) > 1:
        msg = f"sums have the shapes {sorted(shapes)}, which do not fit one another"
        raise FormulaInputError(msg)


_COLUMN = Numbers("... n")
_SQUARES = Numbers("... n", low=0.0)
_REGRETS = Fields(
    None,
    {
        **dict.fromkeys(("against", "if_one", "if_zero", "outcome", "frozen"), _COLUMN),
        "absolute": Numbers("... n", low=-1e-6),
        "questions": _SQUARES,
    },
    check_columns,
)
_PARTS = Fields(LossParts, dict.fromkeys(LossParts._fields, Numbers("... n", where="awake")), where="awake")


@dataclass(frozen=True, slots=True, eq=False)
class RegretSums(_Sums):
    """Sums over questions of each expert's regret, in parts.

    The regret of a part X is ``r = Σ_j w_j·X_j - X_i``, w the weights that were followed; positive if they did worse
    than the expert. It is 0 in questions that the expert was absent from, so that absence neither helps nor harms, and
    who returns finds its sums as it left them.

    Attributes
    ----------
    against, if_one, if_zero : (..., n) float64
        RL, RC1, RC0: of ℓ(p, ŷ), ℓ(p, 1), ℓ(p, 0), over questions without an outcome.
    outcome : (..., n) float64
        RH: of ℓ(p, y), over questions with one.
    frozen : (..., n) float64
        Regret on the unit scale, priced at the rates of each question's time.
    absolute : (..., n) float64
        A: Σ|r| at the rates of the time; with an outcome |r| of the true losses.
    questions : (..., n) float64
        How many questions the expert took part in, by weight.

    Examples
    --------
    >>> import numpy as np
    >>> parts = LossParts(np.array([0.01, 0.49]), np.array([0.01, 0.49]), np.array([0.81, 0.09]))
    >>> sums = RegretSums.contribution(np.array([0.5, 0.5]), parts, rates=(0.2, 0.2))
    >>> sums.priced(0.2, 0.2), sums.priced(0.0, 0.0)
    (array([ 0.264, -0.264]), array([ 0.24, -0.24]))
    """

    against: FloatArray
    if_one: FloatArray
    if_zero: FloatArray
    outcome: FloatArray
    frozen: FloatArray
    absolute: FloatArray
    questions: FloatArray

    @classmethod
    def nothing(cls, *shape: int) -> Self:
        """Sums over no question, of the shape (..., n)."""
        return cls(*(np.zeros(shape) for _ in fields(cls)))

    @classmethod
    @checked(weights=WEIGHTS, losses=_PARTS, rates=Each(RATE, 2), weight=AT_LEAST_0, awake=AWAKE)
    def contribution(
        cls,
        weights: FloatArray,
        losses: LossParts,
        rates: tuple[float | FloatArray, float | FloatArray],
        weight: float = 1.0,
        awake: BoolArray | None = None,
    ) -> Self:
        """The sums of one question without an outcome.

        Parameters
        ----------
        weights : (..., n) float64
            w as followed, summing to 1; 0 for those that were absent.
        losses : LossParts
            Means over the question's rounds, as of `peer_losses.loss_parts`; of those that were absent any number.
        rates : (η0, η1)
            Of the time, for ``frozen`` and ``absolute``: floats, or arrays of shape (..., 1).
        weight : float
            Of the question, ≥ 0.
        awake : (..., n) bool, optional
            Who took part; everybody if left out.

        Returns
        -------
        RegretSums
        """
        against, if_one, if_zero = (_regret(weights, part, awake) for part in losses)
        priced = unchecked(unit_peer_loss)(against, if_one, if_zero, *rates)
        nothing, present = np.zeros(against.shape), _present(against, awake)
        parts = (against, if_one, if_zero, nothing, priced, np.abs(priced), present)
        return cls(*(weight * part for part in parts))

    @classmethod
    @checked(
        weights=WEIGHTS, losses=Numbers("... n", where="awake"), rates=Each(RATE, 2), weight=AT_LEAST_0, awake=AWAKE
    )
    def outcome_contribution(
        cls,
        weights: FloatArray,
        losses: FloatArray,
        rates: tuple[float | FloatArray, float | FloatArray],
        weight: float = 1.0,
        awake: BoolArray | None = None,
    ) -> Self:
        """The sums of one question whose outcome is known; they take the place of `contribution`.

        Parameters
        ----------
        weights : (..., n) float64
            w as followed, summing to 1; 0 for those that were absent.
        losses : (..., n) float64
            ℓ(p, y), mean over the question's rounds.
        rates, weight, awake
            As in `contribution`; the rates of the time bring the regret to the unit scale in ``frozen``.

        Returns
        -------
        RegretSums
        """
        regret = _regret(weights, losses, awake)
        informative = 1.0 - rates[0] - rates[1]
        nothing, present = np.zeros(regret.shape), _present(regret, awake)
        parts = (nothing, nothing, nothing, regret, informative * regret, np.abs(regret), present)
        return cls(*(weight * part for part in parts))

    @checked(self=_REGRETS, rate0=RATE, rate1=RATE)
    def priced(self, rate0: float | FloatArray, rate1: float | FloatArray) -> FloatArray:
        """Regrets on the unit scale at these error rates: ``RL - η0·RC1 - η1·RC0 + (1 - η0 - η1)·RH``.

        The same as if every question had been priced at them from the start; ``frozen`` is what one gets otherwise.
        Re-pricing heals the past when the rates were wrong at first. The rates must then be means over the same
        questions, and with the same memory, as the sums: the newest value of a drifting rate would misprice the past.

        Parameters
        ----------
        rate0, rate1 : float, or array of shape (..., 1)
            η0 and η1, in [0, 1].

        Returns
        -------
        (..., n) float64
        """
        informative = 1.0 - rate0 - rate1
        peer: FloatArray = unchecked(unit_peer_loss)(self.against, self.if_one, self.if_zero, rate0, rate1)
        return peer + informative * self.outcome


REGRET_SUMS = Fields(RegretSums, _REGRETS.fields, check_columns)


def _regret(weights: FloatArray, part: FloatArray, awake: BoolArray | None) -> FloatArray:
    if awake is None:
        return np.add.reduce(weights * part, axis=-1, keepdims=True) - part
    present = np.where(awake, part, 0.0)
    return np.where(awake, np.add.reduce(weights * present, axis=-1, keepdims=True) - present, 0.0)


def _present(like: FloatArray, awake: BoolArray | None) -> FloatArray:
    return np.ones(like.shape) if awake is None else np.broadcast_to(awake, like.shape).astype(np.float64)
