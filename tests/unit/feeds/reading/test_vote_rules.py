import pytest

from stream_peer.feeds.columns import VoteRule
from stream_peer.feeds.reading.rates import next_vote_rule


@pytest.mark.parametrize(
    ("before", "yes", "votes", "after"),
    [
        ("half", 29.9, 200.0, "own-median"),
        ("half", 30.0, 200.0, "half"),
        ("half", 170.0, 200.0, "half"),
        ("half", 170.1, 200.0, "own-median"),
        ("own-median", 39.9, 200.0, "own-median"),
        ("own-median", 40.0, 200.0, "half"),
        ("own-median", 160.0, 200.0, "half"),
        ("own-median", 160.1, 200.0, "own-median"),
        ("half", 0.0, 199.9, "half"),
        ("own-median", 100.0, 199.9, "own-median"),
        ("half", 0.0, 0.0, "half"),
    ],
)
def test_the_rule_changes_at_the_extremes_and_returns_well_inside(
    before: VoteRule, yes: float, votes: float, after: VoteRule
) -> None:
    assert next_vote_rule(before, yes, votes) == after
