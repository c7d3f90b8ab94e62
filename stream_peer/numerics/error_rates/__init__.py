"""How often reference answers are wrong: with no outcome known, with some, and as a price.

- ``rate``: what an estimate is, and rates as prices
- ``moments``: symmetric, from agreement with the others (the default)
- ``class_moments``, ``vote_mixture``: one rate for each class, from three moments of the number of yes votes
- ``truth``: measured on resolved questions, and combined with an estimate made without them

Tests of dependence among experts are beside this package, in ``dependence``.
"""

from stream_peer.numerics.error_rates.class_moments import (
    ClassMomentSums,
    ClassMomentTerms,
    class_moment_terms,
)
from stream_peer.numerics.error_rates.moments import MomentSums, MomentTerms, moment_terms
from stream_peer.numerics.error_rates.rate import (
    ErrorRate,
    ErrorRateSums,
    EstimateStatus,
    PricedRates,
    interval_ends,
    priced,
)
from stream_peer.numerics.error_rates.truth import combine_with_truth
from stream_peer.numerics.error_rates.vote_mixture import VoteMixture, vote_mixture

__all__ = [
    "ClassMomentSums",
    "ClassMomentTerms",
    "ErrorRate",
    "ErrorRateSums",
    "EstimateStatus",
    "MomentSums",
    "MomentTerms",
    "PricedRates",
    "VoteMixture",
    "class_moment_terms",
    "combine_with_truth",
    "interval_ends",
    "moment_terms",
    "priced",
    "vote_mixture",
]
