"""How often reference answers are wrong: with no outcome known, with some, and as a price.

- ``rate``: what an estimate is, and rates as prices
- ``moments``: symmetric, from agreement with the others (the default)
- ``team_votes``: the same moments where experts are in teams
- ``class_moments``: one rate for each class, from three moments of the number of yes votes
- ``groups``: the paper's two groups
- ``truth``: measured on resolved questions, combined with an estimate made without them, and compared with it
- ``forgetting``: sums that forget

Tests of dependence among experts are beside this package, in ``dependence``; whether rates changed is found in
``drift``.
"""

from stream_peer.numerics.error_rates.class_moments import (
    ClassMomentSums,
    ClassMomentTerms,
    class_moment_terms,
)
from stream_peer.numerics.error_rates.forgetting import bucket_factors, bucket_size, forgetting_factor
from stream_peer.numerics.error_rates.groups import (
    TwoGroupRates,
    TwoGroupSums,
)
from stream_peer.numerics.error_rates.moments import MomentSums, MomentTerms, moment_terms
from stream_peer.numerics.error_rates.rate import (
    ErrorRate,
    EstimateStatus,
    PricedRates,
    interval_ends,
    priced,
)
from stream_peer.numerics.error_rates.team_votes import (
    TeamVotes,
    agreement_of_teams,
    class_terms_of_teams,
    share_of_ones,
    team_votes,
)
from stream_peer.numerics.error_rates.truth import (
    Contradiction,
    RevealShift,
    TruthSums,
    combine_with_truth,
    contradiction,
    early_contradiction,
    reveal_shift,
)

__all__ = [
    "ClassMomentSums",
    "ClassMomentTerms",
    "Contradiction",
    "ErrorRate",
    "EstimateStatus",
    "MomentSums",
    "MomentTerms",
    "PricedRates",
    "RevealShift",
    "TeamVotes",
    "TruthSums",
    "TwoGroupRates",
    "TwoGroupSums",
    "agreement_of_teams",
    "bucket_factors",
    "bucket_size",
    "class_moment_terms",
    "class_terms_of_teams",
    "combine_with_truth",
    "contradiction",
    "early_contradiction",
    "forgetting_factor",
    "interval_ends",
    "moment_terms",
    "priced",
    "reveal_shift",
    "share_of_ones",
    "team_votes",
]
