"""Learners: whom to follow? Regrets in, selection weights out.

Weights are for following one expert drawn from them; `mixers` combine forecasts. All learners read regrets, positive
where following the weights lost more than the expert did, along the last axis; leading axes are independent runs.

========================  ==========================================  ======================================
learner                   reads                                       an expert behind by D leads again after
========================  ==========================================  ======================================
`ada_normal_hedge`        R, A = Σ|r|; no rate, no horizon (default)  (D + 2·`normal_hedge_regret`)/g
`hedge`, `hedge_rate`     R, rate √(8 ln N/T) or √(8 ln N/t)          (D + ln N/rate)/g
`ada_hedge`               R, Σ of `mixability_gap`                    as Hedge, at its rate
`fixed_share`             yesterday's weights, r of one question      ⌈ln(N²/share)/(rate·g)⌉ + 1, whatever D
`follow_the_leader`       R                                           D/g
`top_committee`           R; size k                                   D/g, or sooner: it needs the k-th place
========================  ==========================================  ======================================

It counts questions until the expert has more than half of all weight; g is what it now gains on each of the others per
question (for `fixed_share`, much more than share/rate). Where sums fade (`error_rates.block_factors`, memory M), D is
at most g'·M, however long it lost g' per question, and it is level after M·ln(1 + g'/g) questions and two blocks more.

Regrets are kept as `RegretSums`, in three parts that today's error rates price. An expert that is asleep gets no weight
and leaves the ratios of the others alone: pass the awake ones only, or a mask. One that is new has no regrets; its
weight follows from its prior, 1 like everybody's.
"""

from stream_peer.numerics.learners.ada_hedge import ada_hedge, ada_hedge_rate, mixability_gap
from stream_peer.numerics.learners.committees import follow_the_leader, top_committee
from stream_peer.numerics.learners.hedge import fixed_share, hedge, hedge_rate
from stream_peer.numerics.learners.normal_hedge import ada_normal_hedge, ada_normal_hedge_logs
from stream_peer.numerics.learners.regret_sums import RegretSums
from stream_peer.numerics.learners.softmax import softmax

__all__ = [
    "RegretSums",
    "ada_hedge",
    "ada_hedge_rate",
    "ada_normal_hedge",
    "ada_normal_hedge_logs",
    "fixed_share",
    "follow_the_leader",
    "hedge",
    "hedge_rate",
    "mixability_gap",
    "softmax",
    "top_committee",
]
