"""When a feed with ``vote_rule: auto`` changes the rule by which a forecast is a vote.

Votes at 1/2 are the better ones unless next to all of them are alike: then reference answers hardly ever differ, and
only where a forecast lies among the expert's own says something.
"""

from stream_peer.feeds.columns import VoteRule

FEWEST_VOTES = 200.0
"""Votes at 1/2 below which the rule stays as it is."""

_EXTREME = 0.15
_MODERATE = 0.20


def next_vote_rule(before: VoteRule, yes: float, votes: float) -> VoteRule:
    """The vote rule in force after a record, given that before it.

    ``own-median`` from a share of votes for yes below .15 or above .85; ``half`` again from .20 to .80.

    Parameters
    ----------
    before : {"half", "own-median"}
    yes, votes : float
        Votes at 1/2 for yes, and all, of the questions that count: weighted, means over a question's rounds.

    Examples
    --------
    >>> next_vote_rule("half", yes=29.0, votes=200.0), next_vote_rule("half", yes=30.0, votes=200.0)
    ('own-median', 'half')
    >>> next_vote_rule("own-median", yes=39.0, votes=200.0), next_vote_rule("own-median", yes=160.0, votes=200.0)
    ('own-median', 'half')
    """
    if votes < FEWEST_VOTES:
        return before
    rarer = min(yes, votes - yes)
    if before == "half":
        return "own-median" if rarer < _EXTREME * votes else "half"
    return "half" if rarer >= _MODERATE * votes else "own-median"
