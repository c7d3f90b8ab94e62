"""Formulas that only a replay can choose: other learners, error rates and mixers than a worker serves.

- ``learners``: AdaHedge, fixed share, leaders and committees
- ``regret_sums``: regrets in three parts that today's error rates price
- ``gradients``, ``five_mixers``: mixers linearised at their own forecasts, and five under one that learns which to use
- ``three_references``: error rates of three reference answers
"""

from stream_peer.numerics.variants.five_mixers import FIVE_MIXERS_PRIOR, FiveMixerSums, FiveMixerWeights, hybrid_sums
from stream_peer.numerics.variants.gradients import (
    SlopeSums,
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
    shared_with_all,
)
from stream_peer.numerics.variants.learners import (
    ada_hedge,
    ada_hedge_rate,
    fixed_share,
    follow_the_leader,
    mixability_gap,
    top_committee,
)
from stream_peer.numerics.variants.regret_sums import RegretSums
from stream_peer.numerics.variants.three_references import (
    ThreeReferenceClassSums,
    ThreeReferenceRates,
    ThreeReferenceSums,
)

__all__ = [
    "FIVE_MIXERS_PRIOR",
    "FiveMixerSums",
    "FiveMixerWeights",
    "RegretSums",
    "SlopeSums",
    "ThreeReferenceClassSums",
    "ThreeReferenceRates",
    "ThreeReferenceSums",
    "ada_hedge",
    "ada_hedge_rate",
    "fixed_share",
    "follow_the_leader",
    "gradient_hedge",
    "gradient_normal_hedge",
    "hybrid_sums",
    "mixability_gap",
    "outcome_gradients",
    "peer_gradients",
    "shared_with_all",
    "top_committee",
]
