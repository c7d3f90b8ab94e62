"""Learners that follow peer losses in many runs at once, and the estimates of error rates that price them."""

import numpy as np

from stream_peer.numerics.arguments import BoolArray, FloatArray, unchecked
from stream_peer.numerics.error_rates import TruthSums, TwoGroupSums
from stream_peer.numerics.learners import ada_normal_hedge, hedge, hedge_rate
from stream_peer.numerics.peer_losses import unit_peer_loss


def fixed_hedge(cumulative: FloatArray, horizon: int) -> FloatArray:
    """Weights of Hedge with the rate that suits a horizon known in advance; (..., n_experts) cumulative losses."""
    return hedge(-cumulative, hedge_rate(cumulative.shape[-1], horizon))


def any_time_hedge(cumulative: FloatArray, question: int) -> FloatArray:
    """Weights of Hedge for the question of that number, 1 being the first; (..., n_experts) cumulative losses."""
    return hedge(-cumulative, hedge_rate(cumulative.shape[-1], question))


class Hedge:
    """Any-time Hedge on losses kept in three parts, priced by the rates of the day.

    Parameters
    ----------
    shape : (..., n_experts)
        Of the losses of a question; rates may have further axes in front.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._parts = np.zeros((3, *shape))
        self._question = 1

    def weights(self, rate: FloatArray) -> FloatArray:
        """Selection weights for the next question; ``rate`` broadcasts over experts."""
        against, if_one, if_zero = self._parts
        return any_time_hedge(unit_peer_loss(against, if_one, if_zero, rate, rate), self._question)

    def observe(self, parts: FloatArray, weights: FloatArray, rate: FloatArray) -> None:
        """Add a question's losses: against the reference answer, 1 and 0."""
        del weights, rate
        self._parts += parts
        self._question += 1


class AdaNormal:
    """AdaNormalHedge on regrets kept in three parts, priced by the rates of the day.

    Parameters
    ----------
    shape : (..., n_experts)
        Of the weights.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.regrets = np.zeros((3, *shape))
        self._absolute = np.zeros(shape)

    def weights(self, rate: FloatArray) -> FloatArray:
        """Selection weights for the next question; ``rate`` broadcasts over experts."""
        against, if_one, if_zero = self.regrets
        return ada_normal_hedge(unit_peer_loss(against, if_one, if_zero, rate, rate), self._absolute)

    def observe(self, parts: FloatArray, weights: FloatArray, rate: FloatArray) -> None:
        """Add a question's regrets under the weights that were in force."""
        ahead = np.stack([np.add.reduce(weights * own, axis=-1, keepdims=True) - own for own in parts])
        self.regrets += ahead
        self._absolute += np.abs(unit_peer_loss(ahead[0], ahead[1], ahead[2], rate, rate))


def revealed_rates(
    right: FloatArray, wrong: FloatArray, before: FloatArray | None = None, changed: BoolArray | None = None
) -> FloatArray:
    """Hájek's ratio for every run, both outcomes taken together; only where counts changed since ``before``."""
    rates = np.empty(right.shape) if before is None else before.copy()
    places = np.ndindex(right.shape) if changed is None else zip(*np.nonzero(changed), strict=True)
    for place in places:
        sums = TruthSums(right_zero=float(right[place]), wrong_zero=float(wrong[place]))
        rates[place] = unchecked(TruthSums.estimate)(sums).zero
    return rates


def two_group_rates(yes: FloatArray, questions: int) -> FloatArray:
    """Error rate of group A's answer for every run, from how often both groups, A and B said yes: (3, runs)."""
    n = float(questions)
    return np.array([TwoGroupSums(n, n, c1, c2, c3).estimate().zero for c3, c1, c2 in yes.T.tolist()])
