"""Formulas that only a replay can choose: other learners, error rates and mixers than a worker serves.

- ``learners``: AdaHedge, fixed share, leaders and committees
- ``regret_sums``: regrets in three parts that today's error rates price
- ``gradients``, ``five_mixers``: mixers linearised at their own forecasts, and five under one that learns which to use
- ``three_references``: error rates of three reference answers
"""

from stream_peer.numerics.variants.five_mixers import FIVE_MIXERS_PRIOR, FiveMixerSums, FiveMixerWeights, hybrid_sums
from stream_peer.numerics.variants.gradients import (
    SlopeSums,
    denoised_answers,
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
    ThreeReferenceClassSolution,
    ThreeReferenceClassSums,
    ThreeReferenceRates,
    ThreeReferenceSums,
    three_reference_class_solution,
    three_reference_solution,
)

__all__ = [
    "FIVE_MIXERS_PRIOR",
    "FiveMixerSums",
    "FiveMixerWeights",
    "RegretSums",
    "SlopeSums",
    "ThreeReferenceClassSolution",
    "ThreeReferenceClassSums",
    "ThreeReferenceRates",
    "ThreeReferenceSums",
    "ada_hedge",
    "ada_hedge_rate",
    "denoised_answers",
    "fixed_share",
    "follow_the_leader",
    "gradient_hedge",
    "gradient_normal_hedge",
    "hybrid_sums",
    "mixability_gap",
    "outcome_gradients",
    "peer_gradients",
    "shared_with_all",
    "three_reference_class_solution",
    "three_reference_solution",
    "top_committee",
]
