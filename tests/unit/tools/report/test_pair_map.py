import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.tools.replay.history import FeedHistory, ReplayHistory
from stream_peer.tools.report.plots import FEWEST_COMMON, MOST_EXPERTS, pair_map
from tests.unit.tools.report.sample_history import FEED, _error_rates, add, losses


def crowd(n_questions: int, n_experts: int, copies: int = 0, level: float = 0.5) -> FeedHistory:
    """Independent experts that are right in three of four, the last ones copies of the first."""
    rng = np.random.default_rng(4)
    history = ReplayHistory()
    for number in range(n_questions):
        outcome = int(rng.integers(2))
        right = rng.random(n_experts) < 0.75
        right[n_experts - copies :] = right[0]
        yes = np.where(right, outcome, 1 - outcome)
        said = {f"e{place:02d}": float(level + 0.2 * (vote - 0.5)) for place, vote in enumerate(yes)}
        add(history, topics.PEER_LOSSES, losses(f"q{number}", number + 1, said, outcome))
    return history.feeds[FEED]


def test_copies_are_the_pairs_that_agree_most_and_stand_together() -> None:
    found = pair_map(crowd(300, 20, copies=2))

    assert found is not None
    together = {"e00", "e18", "e19"}
    assert [{pair.one, pair.other} <= together for pair in found.pairs[:4]] == [True, True, True, False]
    places = sorted(found.experts.index(name) for name in together)
    assert places[2] - places[0] == 2
    assert found.pairs[0].agreed == 1.0
    assert found.pairs[2].z > 6.0
    assert found.pairs[3].z < 4.0


def test_independent_experts_agree_as_their_skills_say() -> None:
    found = pair_map(crowd(300, 10))

    assert found is not None
    assert max(abs(pair.z) for pair in found.pairs) < 4
    assert found.pairs[0].expected == pytest.approx(0.625, abs=0.1)


def test_only_those_with_the_most_forecasts_are_drawn() -> None:
    found = pair_map(crowd(FEWEST_COMMON, MOST_EXPERTS + 5))

    assert found is not None
    assert len(found.experts) == MOST_EXPERTS


def test_with_too_few_common_questions_there_is_no_map() -> None:
    assert pair_map(crowd(FEWEST_COMMON - 1, 5)) is None
    assert pair_map(FeedHistory(FEED)) is None


def test_where_the_feed_votes_by_own_medians_so_does_the_map() -> None:
    """All forecasts are far below one half: at one half everybody would always agree."""
    feed = crowd(300, 6, level=0.2)
    rates = _error_rates(300)

    at_half = pair_map(feed)
    feed.error_rates = type(rates)(
        **{**{n: getattr(rates, n) for n in rates.__struct_fields__}, "vote_rule": "own-median"}
    )
    at_median = pair_map(feed)

    assert at_half is not None
    assert at_half.pairs[0].agreed == 1.0
    assert at_median is not None
    assert at_median.pairs[0].agreed < 0.9
