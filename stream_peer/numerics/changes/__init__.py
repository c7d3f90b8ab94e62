"""Are error rates and experts still what they were? Looked for in the last questions of a feed.

- ``scan``: the likeliest change of the mean of a series, and how many standard deviations it is
- ``error_rate``: of the agreement that the symmetric rate is read from, and of the share of answers found wrong
- ``experts``: of each expert's agreement with its own reference answers, beside that of the others

What of the past still counts in an error rate is another question: sums that forget are in ``error_rates.drift``.
"""

from stream_peer.numerics.changes.error_rate import RATE_LIMIT, RateChange, agreement_change, measured_change
from stream_peer.numerics.changes.experts import ExpertChanges, expert_changes, expert_limit
from stream_peer.numerics.changes.scan import Changes, Earlier, scan_for_changes, scan_of_sums

__all__ = [
    "RATE_LIMIT",
    "Changes",
    "Earlier",
    "ExpertChanges",
    "RateChange",
    "agreement_change",
    "expert_changes",
    "expert_limit",
    "measured_change",
    "scan_for_changes",
    "scan_of_sums",
]
