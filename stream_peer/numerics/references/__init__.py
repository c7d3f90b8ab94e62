"""Reference answers: what stands in for an outcome that is not known yet.

A rule turns each expert's forecast into one number, its ballot, and the answer is the side of 0 on which the sum of
the ballots lies. So whoever is asked, everybody, all but one expert, all but its team, or one of two groups, the
answers follow from the same numbers in O(n):

- ``votes``: the live service's rule, the majority of votes, in its fastest form;
- ``ballots``: the rules majority, weighted majority, mean and product, with thresholds of ½ or each expert's own;
- ``scopes``: the answer of everybody, of all others, of two groups;
- ``soft``: answers in [0, 1] instead of 0 or 1.

A sum of exactly 0 is a tie and flagged. It goes to the side on which the voters' forecasts lie on average, as
distances from their thresholds, and if they balance too, to a coin that the caller tossed. Ballots are whole units of
2^-40: sums are exact, so the order of experts cannot change an answer.
"""

from stream_peer.numerics.references.votes import LeaveOneOut, MajorityAnswer, leave_one_out, majority, votes

__all__ = ["LeaveOneOut", "MajorityAnswer", "leave_one_out", "majority", "votes"]
