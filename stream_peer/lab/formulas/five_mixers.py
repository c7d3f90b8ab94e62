"""A mixer over mixers that need more or less truth, and never has to be told how much will come. For replay.

Five of them run side by side on every question, each with sums of its own; outcomes alone decide among them. The live
service has the four shadows and the outer layer instead, which are as good, do not depend on the order, and are safer.
"""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.gradients import (
    SLOPES,
    SlopeSums,
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
    shared_with_all,
)
from stream_peer.lab.formulas.regret_sums import REGRET_SUMS, RegretSums
from stream_peer.numerics.arguments import (
    ANSWERS,
    AWAKE,
    COUNT,
    FORECASTS,
    RATE,
    Answers,
    BoolArray,
    Each,
    Fields,
    FloatArray,
    Numbers,
    Optional,
    check_same,
    checked,
    unchecked,
)
from stream_peer.numerics.peer_losses import Rate, unbiased_peer_loss

__all__ = ["FIVE_MIXERS_PRIOR", "FiveMixerSums", "FiveMixerWeights", "hybrid_sums"]

FIVE_MIXERS_PRIOR = (0.20, 0.35, 0.15, 0.10, 0.20)
"""Shares before any outcome: plain mean, peer `gradient_hedge`, peer `gradient_normal_hedge`, the latter on outcomes
alone, and on both (`hybrid_sums`)."""

_TRUTH_FACTOR = 3.0
_PEER_SHARE = 0.5
_HYBRID_SHARE = 0.3
_HEDGE, _NORMAL, _TRUTH, _HYBRID = 1, 2, 3, 4
_OUTCOMES_ONLY = (0.0, 0.0)


@checked(truth=REGRET_SUMS, peer=REGRET_SUMS, slope=Numbers("...", 0.0, 1.0))
def hybrid_sums(truth: RegretSums, peer: RegretSums, slope: float | FloatArray) -> RegretSums:
    """Regrets from outcomes and from reference answers: the first three times, the others by what they are worth.

    ``3·truth + b·peer``: for `gradient_normal_hedge` at today's rates, with a uniform share of .3.

    Parameters
    ----------
    truth : RegretSums
        Of the questions with an outcome.
    peer : RegretSums
        Of those without.
    slope : float, or array of shape (..., 1)
        b, as of `SlopeSums.estimate`.

    Returns
    -------
    RegretSums

    Examples
    --------
    >>> import numpy as np
    >>> even, forecasts = np.array([0.5, 0.5]), np.array([0.9, 0.3])
    >>> truth = outcome_gradients(even, forecasts, 1, rates=(0.1, 0.1))
    >>> peer = peer_gradients(even, forecasts, 1, rates=(0.1, 0.1))
    >>> hybrid_sums(truth, peer, slope=0.5).priced(0.1, 0.1).round(3)
    array([ 0.702, -0.702])
    """
    return truth.scaled(_TRUTH_FACTOR).merge(peer.scaled(slope))


class FiveMixerWeights(NamedTuple):
    """What `FiveMixerSums` says about a question: facts of it, once forecasts have been made with them.

    Attributes
    ----------
    mixers : (..., 5, n) float64
        Weights of the five mixers, in the order of `FIVE_MIXERS_PRIOR`; each sums to 1 over the experts that are awake.
    shares : (..., 5) float64
        How much of the mix each gets.
    """

    mixers: FloatArray
    shares: FloatArray

    @property
    def mix(self) -> FloatArray:
        """(..., n): the weights to combine forecasts with, ``Σ_k m_k·w_k``."""
        return np.asarray(np.add.reduce(self.shares[..., None] * self.mixers, axis=-2), dtype=np.float64)


_WEIGHTS = Fields(
    FiveMixerWeights,
    {"mixers": Numbers("... 5 n", 0.0, 1.0), "shares": Numbers("... 5", 0.0, 1.0)},
)


def _check_shapes(sums: "FiveMixerSums") -> None:
    """Refuse sums of which some are of other experts than the rest."""
    for name, check in (("slope", replace(SLOPES, kind=SlopeSums)), ("above", REGRET_SUMS)):
        check.admit(name, check.read(name, getattr(sums, name)))
    of_experts = (sums.hedge, sums.normal, sums.truth, sums.hybrid_truth, sums.hybrid_peer)
    shapes = {each.outcome.shape for each in of_experts}
    shapes |= {(*each, 0) for each in (np.shape(sums.slope.products), sums.above.outcome.shape[:-1])}
    if len({shape[:-1] for shape in shapes}) > 1 or len({each.outcome.shape for each in of_experts}) > 1:
        msg = f"sums have the shapes {sorted(shapes)}, which do not fit one another"
        raise FormulaInputError(msg)


def _check_rates(self: "FiveMixerSums", rates: tuple[Rate, Rate], **_: object) -> None:
    """Refuse rates with more axes than the sums have."""
    if max(map(np.ndim, rates)) > self.truth.outcome.ndim or any(
        np.shape(rate)[-1:] not in ((), (1,)) for rate in rates
    ):
        msg = f"rates have the shapes {[np.shape(rate) for rate in rates]}, not (..., 1)"
        raise FormulaInputError(msg)


def _check_outcome(outcome: Answers | None = None, **_: object) -> None:
    """Refuse more than one outcome of a question."""
    if outcome is not None and np.shape(outcome)[-1:] not in ((), (1,)):
        msg = f"outcome has the shape {np.shape(outcome)}, not (..., 1)"
        raise FormulaInputError(msg)


_COLUMNS = Fields(
    None,
    dict.fromkeys(("hedge", "normal", "truth", "hybrid_truth", "hybrid_peer"), REGRET_SUMS),
    _check_shapes,
)


@dataclass(frozen=True, slots=True, eq=False)
class FiveMixerSums:
    """Sums of five mixers and of the layer above them. Contributions of questions add up in any order.

    Attributes
    ----------
    hedge, normal : RegretSums
        Of the two peer mixers; they stay when the outcome comes.
    truth : RegretSums
        Of the mixer that learns from outcomes alone.
    hybrid_truth, hybrid_peer : RegretSums
        Of the one that learns from both: a question's peer regrets until its outcome comes.
    slope : SlopeSums
        What peer regrets have been worth where the outcome is known.
    above : RegretSums
        Of the five mixers' forecasts, from outcomes alone; (..., 5).

    Examples
    --------
    >>> import numpy as np
    >>> forecasts, sums = np.array([0.9, 0.3]), FiveMixerSums.nothing(2)
    >>> for outcome in (None, 1, 1):
    ...     weights = sums.weights((0.1, 0.1), n_experts=2)
    ...     facts = weights, forecasts, np.array([0, 1]), (0.1, 0.1)
    ...     sums = sums.merge(FiveMixerSums.contribution(*facts, outcome=outcome))
    >>> sums.weights((0.1, 0.1), n_experts=2).mix.round(3)
    array([0.584, 0.416])
    """

    hedge: RegretSums
    normal: RegretSums
    truth: RegretSums
    hybrid_truth: RegretSums
    hybrid_peer: RegretSums
    slope: SlopeSums
    above: RegretSums

    @classmethod
    def nothing(cls, *shape: int) -> Self:
        """Sums over no question, of the shape (..., n)."""
        none, above = RegretSums.nothing(*shape), RegretSums.nothing(*shape[:-1], len(FIVE_MIXERS_PRIOR))
        return cls(none, none, none, none, none, SlopeSums.nothing(*shape[:-1]), above)

    @classmethod
    @checked(
        _check_outcome,
        weights=_WEIGHTS,
        forecasts=FORECASTS,
        reference_answers=ANSWERS,
        rates=Each(RATE, 2),
        awake=AWAKE,
        outcome=Optional(ANSWERS),
    )
    def contribution(
        cls,
        weights: FiveMixerWeights,
        forecasts: FloatArray,
        reference_answers: Answers,
        rates: tuple[Rate, Rate],
        awake: BoolArray | None = None,
        outcome: Answers | None = None,
    ) -> Self:
        """The sums of one question; with its outcome they take the place of those without.

        Parameters
        ----------
        weights : FiveMixerWeights
            With which it was forecast.
        forecasts : (..., n) float64
            p, in [0, 1]; of those that were absent any.
        reference_answers : float or (..., n) array
            Each expert's own ŷ.
        rates : (η0, η1)
            Of the time, their sum below 1: floats, or arrays of shape (..., 1).
        awake : (..., n) bool, optional
            Who took part; everybody if left out.
        outcome : float, or array of shape (..., 1), optional
            y, if it is known.

        Returns
        -------
        FiveMixerSums
        """
        hedged, normal, true, hybrid = (weights.mixers[..., k, :] for k in (_HEDGE, _NORMAL, _TRUTH, _HYBRID))
        of_peers = (forecasts, reference_answers, rates, 1.0, awake)
        peers = unchecked(peer_gradients)(hedged, *of_peers), unchecked(peer_gradients)(normal, *of_peers)
        doubted, none = unchecked(peer_gradients)(hybrid, *of_peers), cls.nothing(*hedged.shape)
        if outcome is None:
            return cls(*peers, none.truth, none.hybrid_truth, doubted, none.slope, none.above)
        resolved = unchecked(outcome_gradients)(hybrid, forecasts, outcome, rates, awake=awake)
        expected = unchecked(unbiased_peer_loss)(doubted.against, doubted.if_one, doubted.if_zero, *rates)
        slope = SlopeSums.contribution(resolved.outcome, expected)
        true_regrets = unchecked(outcome_gradients)(true, forecasts, outcome, rates, awake=awake)
        mixed = np.clip(np.add.reduce(weights.mixers * forecasts[..., None, :], axis=-1), 0.0, 1.0)
        above = unchecked(outcome_gradients)(weights.shares, mixed, outcome)
        return cls(*peers, true_regrets, resolved, none.hybrid_peer, slope, above)

    def merge(self, other: Self) -> Self:
        """Sums of both."""
        check_same(self, other)
        return type(self)(*(getattr(self, f.name).merge(getattr(other, f.name)) for f in fields(self)))

    @checked(_check_rates, self=_COLUMNS, rates=Each(RATE, 2), n_experts=COUNT, awake=AWAKE)
    def weights(self, rates: tuple[Rate, Rate], n_experts: int, awake: BoolArray | None = None) -> FiveMixerWeights:
        """Weights of the five mixers at today's error rates, and how much of the mix each gets.

        Parameters
        ----------
        rates : (η0, η1)
            Floats, or arrays of shape (..., 1); their sum below 1.
        n_experts : int
            N ≥ 1, all experts seen.
        awake : (..., n) bool, optional
            Who may get weight; everybody if left out.

        Returns
        -------
        FiveMixerWeights
        """
        both = unchecked(hybrid_sums)(self.hybrid_truth, self.hybrid_peer, self.slope.estimate()[..., None])
        mixers = (
            unchecked(shared_with_all)(np.zeros(self.truth.outcome.shape), 1.0, awake),
            unchecked(gradient_hedge)(self.hedge, rates, n_experts, _PEER_SHARE, awake),
            unchecked(gradient_normal_hedge)(self.normal, rates, _PEER_SHARE, awake=awake),
            unchecked(gradient_normal_hedge)(self.truth, _OUTCOMES_ONLY, 0.0, awake=awake),
            unchecked(gradient_normal_hedge)(both, rates, _HYBRID_SHARE, awake=awake),
        )
        shares = unchecked(gradient_normal_hedge)(self.above, _OUTCOMES_ONLY, 0.0, np.array(FIVE_MIXERS_PRIOR))
        return FiveMixerWeights(np.stack(mixers, axis=-2), shares)
