"""Are error rates and experts still what they were? Looked for in the last questions of a feed.

- ``scan``: the likeliest change of the mean of a series, and how many standard deviations it is
- ``error_rate``: of the agreement that the symmetric rate is read from, and of the share of answers found wrong
- ``experts``: of each expert's agreement with its own reference answers, beside that of the others

What of the past still counts in an error rate is another question: sums that forget are in ``error_rates.drift``.

The limits were chosen by simulation: a window of 512 questions that is looked at after every 25 new ones, 2,500
questions in which nothing changes, independent experts who err .05 to .45 of the time. Of 500 such feeds of six experts
2 raised an alarm for the rate and 3 for an expert, of 500 of twelve none and 3. Questions whose votes depend on those
of others (fifty states in one week) raise more.
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
