"""Do experts err independently given the outcome? Every error rate estimated without outcomes takes that for granted.

- ``fourth_moment``: a gap in the moments of the votes; sees herding, clusters and questions of different difficulty
- ``class_errors``: do they err alike on both outcomes?
- ``copies``: experts who say the same, far beyond what their error rates allow, found in bounded work for thousands of
  experts; with ``suspicion``
- ``blocks``: experts who say the same in part, found by what all pairs of them have in common beyond others
- ``followers``: experts whose forecasts are those of the crowd, or what was published of them before
- ``rank_agreement``: do losses against the others rank experts as losses against outcomes do?

Shocks that everybody shares take the place of the outcome; only outcomes show them (`error_rates.contradiction`).
"""

from stream_peer.numerics.dependence.blocks import find_blocks
from stream_peer.numerics.dependence.class_errors import ClassErrors, class_errors
from stream_peer.numerics.dependence.copies import Copies, find_copies
from stream_peer.numerics.dependence.followers import (
    CrowdDistances,
    CrowdSums,
    crowd_distances,
    crowd_sums,
    find_followers,
    find_repeaters,
)
from stream_peer.numerics.dependence.fourth_moment import (
    ALARMING_Z,
    FEWEST_QUESTIONS,
    N_SUBSAMPLES,
    Dependence,
    DependenceSums,
    VoteMoments,
)
from stream_peer.numerics.dependence.rank_agreement import RankAgreement, rank_agreement

__all__ = [
    "ALARMING_Z",
    "FEWEST_QUESTIONS",
    "N_SUBSAMPLES",
    "ClassErrors",
    "Copies",
    "CrowdDistances",
    "CrowdSums",
    "Dependence",
    "DependenceSums",
    "RankAgreement",
    "VoteMoments",
    "class_errors",
    "crowd_distances",
    "crowd_sums",
    "find_blocks",
    "find_copies",
    "find_followers",
    "find_repeaters",
    "rank_agreement",
]
