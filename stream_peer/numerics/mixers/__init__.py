"""Mixers: how to combine forecasts? Sums in, mixing weights out, and what is done to the combined forecast.

Combining is another task than following one expert: it competes with the best convex combination, so each mixer
works on a loss linearised at a mean forecast. Three mixers and the plain mean run side by side as *shadows*; the outer
layer shares weight among them by what outcomes have said.

The paper has no such part. Everything here reads sums; nothing is carried from call to call.
"""

from stream_peer.numerics.mixers.means import logit_mean
from stream_peer.numerics.mixers.outer_layer import outer_weights
from stream_peer.numerics.mixers.safety_net import safety_net_step
from stream_peer.numerics.mixers.shadows import peer_mixer, truth_fast, truth_slow
from stream_peer.numerics.mixers.stretch import stretch_factor, stretched

__all__ = [
    "logit_mean",
    "outer_weights",
    "peer_mixer",
    "safety_net_step",
    "stretch_factor",
    "stretched",
    "truth_fast",
    "truth_slow",
]
