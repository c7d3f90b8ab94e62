"""Mixers: how to combine forecasts? Sums in, mixing weights out, and what is done to the combined forecast.

Combining is another task than following one expert: it competes with the best convex combination, so each mixer
works on a loss linearised at a mean forecast. The paper has no such part.

- ``shadows``: three mixers that run beside the plain mean in the live service, on sums that no order changes;
- ``outer_layer``: how much of the mix each of the four gets, by what outcomes have said;
- ``stretch``, ``safety_net``: what is done to the combined forecast, and to the mix where outcomes speak against it;
- ``side_by_side``: the first and the second of the three under several settings at once, to compare;
- ``means``: the mean of log odds, for comparison;
- ``gradients``, ``slopes``, ``five_mixers``: an earlier design, for replay: mixers linearised at their own forecasts,
  how much reference answers are worth beside outcomes, and five mixers under one that learns which to use.

Everything here reads sums; nothing is carried from call to call.
"""

from stream_peer.numerics.mixers.five_mixers import FIVE_MIXERS_PRIOR, FiveMixerSums, FiveMixerWeights, hybrid_sums
from stream_peer.numerics.mixers.gradients import (
    denoised_answers,
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
    shared_with_all,
)
from stream_peer.numerics.mixers.means import logit_mean, median
from stream_peer.numerics.mixers.outer_layer import outer_weights
from stream_peer.numerics.mixers.safety_net import safety_net_step
from stream_peer.numerics.mixers.shadows import peer_mixer, truth_fast, truth_slow
from stream_peer.numerics.mixers.side_by_side import SideBySide, mixers_side_by_side
from stream_peer.numerics.mixers.slopes import SlopeSums
from stream_peer.numerics.mixers.stretch import stretch_factor, stretched

__all__ = [
    "FIVE_MIXERS_PRIOR",
    "FiveMixerSums",
    "FiveMixerWeights",
    "SideBySide",
    "SlopeSums",
    "denoised_answers",
    "gradient_hedge",
    "gradient_normal_hedge",
    "hybrid_sums",
    "logit_mean",
    "median",
    "mixers_side_by_side",
    "outcome_gradients",
    "outer_weights",
    "peer_gradients",
    "peer_mixer",
    "safety_net_step",
    "shared_with_all",
    "stretch_factor",
    "stretched",
    "truth_fast",
    "truth_slow",
]
