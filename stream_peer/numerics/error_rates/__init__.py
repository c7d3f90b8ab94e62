"""How often reference answers are wrong: with no outcome known, with some, and as a price.

- ``rate``: what an estimate is, and rates as prices
- ``moments``: symmetric, from agreement with the others (the default)
- ``vote_counts``: the numbers of a round from which moments follow
- ``team_votes``: the same moments where experts are in teams
- ``class_moments``, ``vote_mixture``: one rate for each class, from three moments of the number of yes votes
- ``groups``, ``group_agreement``: the paper's two groups, and a shortcut for equal ones
- ``three_references``, ``three_answers``: three references, symmetric and one rate for each class
- ``truth``: measured on resolved questions, and combined with an estimate made without them
- ``truth_checks``: whether outcomes bear the others out, and were revealed at random
- ``drift``: sums that forget

Tests of dependence among experts are beside this package, in ``dependence``; whether rates changed is found in
``changes``.
"""

from stream_peer.numerics.error_rates.class_moments import (
    ClassMomentSums,
    ClassMomentTerms,
    class_moment_terms,
)
from stream_peer.numerics.error_rates.drift import block_factors, block_size, discounted, forgetting_factor
from stream_peer.numerics.error_rates.group_agreement import TwoGroupSolution, two_group_deviations, two_group_solution
from stream_peer.numerics.error_rates.groups import EqualGroupSums, TwoGroupRates, TwoGroupSums
from stream_peer.numerics.error_rates.moments import MomentSums, MomentTerms, moment_terms
from stream_peer.numerics.error_rates.rate import (
    ErrorRate,
    ErrorRateSums,
    EstimateStatus,
    PricedRates,
    interval_ends,
    known_error_rate,
    priced,
)
from stream_peer.numerics.error_rates.team_votes import (
    TeamVotes,
    agreement_of_teams,
    class_terms_of_teams,
    share_of_ones,
    team_votes,
)
from stream_peer.numerics.error_rates.three_answers import (
    ThreeReferenceClassSolution,
    three_reference_class_solution,
    three_reference_solution,
)
from stream_peer.numerics.error_rates.three_references import (
    ThreeReferenceClassSums,
    ThreeReferenceRates,
    ThreeReferenceSums,
)
from stream_peer.numerics.error_rates.truth import TruthSums, combine_with_truth
from stream_peer.numerics.error_rates.truth_checks import Contradiction, RevealShift, contradiction, reveal_shift
from stream_peer.numerics.error_rates.vote_mixture import VoteMixture, vote_mixture

__all__ = [
    "ClassMomentSums",
    "ClassMomentTerms",
    "Contradiction",
    "EqualGroupSums",
    "ErrorRate",
    "ErrorRateSums",
    "EstimateStatus",
    "MomentSums",
    "MomentTerms",
    "PricedRates",
    "RevealShift",
    "TeamVotes",
    "ThreeReferenceClassSolution",
    "ThreeReferenceClassSums",
    "ThreeReferenceRates",
    "ThreeReferenceSums",
    "TruthSums",
    "TwoGroupRates",
    "TwoGroupSolution",
    "TwoGroupSums",
    "VoteMixture",
    "agreement_of_teams",
    "block_factors",
    "block_size",
    "class_moment_terms",
    "class_terms_of_teams",
    "combine_with_truth",
    "contradiction",
    "discounted",
    "forgetting_factor",
    "interval_ends",
    "known_error_rate",
    "moment_terms",
    "priced",
    "reveal_shift",
    "share_of_ones",
    "team_votes",
    "three_reference_class_solution",
    "three_reference_solution",
    "two_group_deviations",
    "two_group_solution",
    "vote_mixture",
]
