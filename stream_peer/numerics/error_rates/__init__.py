"""How often reference answers are wrong: with no outcome known, with some, and as a price.

- ``rate``: what an estimate is, and rates as prices
- ``moments``: symmetric, from agreement with the others (the default)
- ``truth``: measured on resolved questions, and combined with an estimate made without them

Tests of dependence among experts are beside this package, in ``dependence``.
"""

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

__all__ = [
    "ErrorRate",
    "ErrorRateSums",
    "EstimateStatus",
    "MomentSums",
    "MomentTerms",
    "PricedRates",
    "combine_with_truth",
    "interval_ends",
    "moment_terms",
    "priced",
]
