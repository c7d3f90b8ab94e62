"""Bounds: what can be promised about the regret of following the selection weights.

- ``online``: what a learner promises on the losses that it was fed;
- ``apriori``: what follows for the unseen losses, before anything has been seen: Theorems 3 and 6 of Liu & Helmbold as
  printed, the same repaired, and a direct bound;
- ``estimation``: what unknown error rates add to these;
- ``heterogeneous``: where the error rate changes from question to question (Theorem 9);
- ``certificate``: what follows from what was observed, at every moment: the live certificate, and its terms apart.

A-priori bounds are `RegretBound`s: infinite where they say no more than that regret is at most the number of questions.
"""

from stream_peer.numerics.bounds.apriori import (
    RegretBound,
    direct_bound,
    martingale_gap,
    printed_bound,
    printed_sigma,
    repaired_bound,
)
from stream_peer.numerics.bounds.certificate import (
    LEAST_INFORMATION,
    CertificateTerms,
    certificate_terms,
    live_bounds,
    live_certificate,
    noise_boundary,
    own_answer_spread,
    shared_answer_spread,
)
from stream_peer.numerics.bounds.estimation import (
    estimation_frozen,
    estimation_printed,
    estimation_repriced,
    limited_truth_regret,
    limited_truth_regret_printed,
    no_truth_regret,
    no_truth_regret_printed,
)
from stream_peer.numerics.bounds.heterogeneous import (
    heterogeneous_bound,
    heterogeneous_bound_printed,
    order_kept_beyond,
)
from stream_peer.numerics.bounds.online import (
    ada_hedge_regret,
    anytime_hedge_regret,
    hedge_regret,
    normal_hedge_regret,
)

__all__ = [
    "LEAST_INFORMATION",
    "CertificateTerms",
    "RegretBound",
    "ada_hedge_regret",
    "anytime_hedge_regret",
    "certificate_terms",
    "direct_bound",
    "estimation_frozen",
    "estimation_printed",
    "estimation_repriced",
    "hedge_regret",
    "heterogeneous_bound",
    "heterogeneous_bound_printed",
    "limited_truth_regret",
    "limited_truth_regret_printed",
    "live_bounds",
    "live_certificate",
    "martingale_gap",
    "no_truth_regret",
    "no_truth_regret_printed",
    "noise_boundary",
    "normal_hedge_regret",
    "order_kept_beyond",
    "own_answer_spread",
    "printed_bound",
    "printed_sigma",
    "repaired_bound",
    "shared_answer_spread",
]
