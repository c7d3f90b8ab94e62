"""Reference answers: what stands in for an outcome that is not known yet.

A rule turns each expert's forecast into one number, its ballot, and the answer is the side of 0 on which the sum of
the ballots lies. So whoever is asked, everybody, all but one expert, all but its team, or one of two groups, the
answers follow from the same numbers in O(n):

- ``majorities``: the live service's rule, the majority of votes, in its fastest form;
- ``rules``: the rules majority, weighted majority, mean and product, with thresholds of ½ or each expert's own;
- ``scopes``: the answer of everybody, of all others, of two groups.

A sum of exactly 0 is a tie and flagged. It goes to the side on which the voters' forecasts lie on average, as
distances from their thresholds, and if they balance too, to a coin that the caller tossed. Ballots are whole units of
2^-40: sums are exact, so the order of experts cannot change an answer.
"""

from stream_peer.numerics.references.majorities import LeaveOneOut, MajorityAnswer, leave_one_out, majority, votes
from stream_peer.numerics.references.rules import Ballots, ReferenceRule, ballots, vote_weights
from stream_peer.numerics.references.scopes import (
    GroupAnswers,
    ReferenceAnswers,
    answers_of_all,
    answers_of_groups,
    answers_of_other_group,
    answers_of_others,
)

__all__ = [
    "Ballots",
    "GroupAnswers",
    "LeaveOneOut",
    "MajorityAnswer",
    "ReferenceAnswers",
    "ReferenceRule",
    "answers_of_all",
    "answers_of_groups",
    "answers_of_other_group",
    "answers_of_others",
    "ballots",
    "leave_one_out",
    "majority",
    "vote_weights",
    "votes",
]
