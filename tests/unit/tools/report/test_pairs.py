"""Pairs of experts who agree more than their skills explain, and a map in which groups of them stand together."""

import numpy as np
import pytest

from stream_peer.errors import FormulaInputError
from stream_peer.events import topics
from stream_peer.numerics.arguments import SmallIntArray
from stream_peer.tools.replay.history import FeedHistory, ReplayHistory
from stream_peer.tools.report.pairs import FEWEST_COMMON, MOST_EXPERTS, neighbourly_order, pair_map, pair_residuals
from tests.unit.numerics.dependence.worlds import world
from tests.unit.tools.report.sample_history import FEED, _error_rates, add, losses


def independent(rng: np.random.Generator, questions: int, errors: list[float]) -> SmallIntArray:
    right = np.where(rng.random((questions, 1)) < 0.5, -1, 1)
    return np.where(rng.random((questions, len(errors))) < errors, -right, right).astype(np.int8)


def test_skills_are_found_without_any_outcome() -> None:
    errors = [0.1, 0.2, 0.3, 0.4, 0.45]

    found = pair_residuals(independent(np.random.default_rng(1), 50_000, errors))

    assert found.alignments == pytest.approx(1 - 2 * np.array(errors), abs=0.02)


def test_residuals_are_distances_in_standard_deviations() -> None:
    votes = independent(np.random.default_rng(2), 400, [0.2] * 6)

    found = pair_residuals(votes)

    agreement = float((votes[:, 1] * votes[:, 4]).mean())
    expected = found.alignments[1] * found.alignments[4]
    assert found.z[1, 4] == pytest.approx((agreement - expected) / np.sqrt((1 - expected**2) / 400))
    assert np.array_equal(found.z, found.z.T)
    assert not found.z.diagonal().any()


@pytest.mark.parametrize("n_experts", [12, 40])
@pytest.mark.parametrize(("kind", "flagged"), [("none", False), ("clusters", True), ("shock", False)])
def test_clusters_are_flagged_by_pairs_and_nothing_else_is(kind: str, flagged: bool, n_experts: int) -> None:
    """The mean square is above 1.3 in all runs with clusters and in none without."""
    found = [pair_residuals(world(kind, np.random.default_rng([run, n_experts]), n_experts)) for run in range(5)]

    assert [(residuals.mean_square or 0.0) > 1.3 for residuals in found] == [flagged] * 5


@pytest.mark.parametrize("kind", ["difficulty", "herding"])
def test_pairs_do_not_see_what_all_share(kind: str) -> None:
    found = [pair_residuals(world(kind, np.random.default_rng(run), 40)).mean_square or 2.0 for run in range(10)]

    assert np.mean([mean_square > 1.3 for mean_square in found]) <= 0.2


@pytest.mark.case("C16")
def test_copies_of_one_bad_expert_are_named_within_two_hundred_questions() -> None:
    """Six experts whose votes are alike in 99 % of the cases, error .35, among four good ones."""
    rng = np.random.default_rng(4)
    votes = independent(rng, 200, [0.15] * 4 + [0.35])
    copies = np.where(rng.random((200, 5)) < 0.01, -votes[:, 4:5], votes[:, 4:5])

    found = pair_residuals(np.hstack([votes, copies]).astype(np.int8))

    alike, others = found.z[4:, 4:], found.z[:4, :]
    off_diagonal = alike[~np.eye(6, dtype=bool)]
    assert (found.mean_square or 0.0) > 1.3
    assert off_diagonal.mean() > others[:, 4:].mean() + 1.0


def test_pairs_without_common_questions_are_left_out() -> None:
    votes = independent(np.random.default_rng(5), 300, [0.2] * 6)
    votes[:290, 0] = 0

    found = pair_residuals(votes)

    assert not found.z[0].any()
    assert found.mean_square is not None


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (100, 0), (100, 1), (100, 3)])
def test_too_few_pairs_have_no_mean_square(shape: tuple[int, int]) -> None:
    found = pair_residuals(np.ones(shape, dtype=np.int8))

    assert found.mean_square is None
    assert np.isfinite(found.z).all()


@pytest.mark.parametrize("vote", [-1, 0, 1])
def test_everybody_alike_gives_numbers(vote: int) -> None:
    found = pair_residuals(np.full((100, 6), vote, dtype=np.int8))

    assert np.isfinite(found.z).all()
    assert np.isfinite(found.alignments).all()


def test_votes_of_a_single_question_are_refused() -> None:
    with pytest.raises(FormulaInputError, match=r"\(3,\)"):
        pair_residuals(np.ones(3, dtype=np.int8))


def test_a_chain_is_put_in_its_order() -> None:
    chain = np.array([0, 3, 1, 4, 2])
    similarity = -np.abs(chain[:, None] - chain[None, :]).astype(np.float64)

    ordered = chain[neighbourly_order(similarity)].tolist()

    assert ordered in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])


def test_of_nobody_there_is_no_order() -> None:
    assert neighbourly_order(np.zeros((0, 0))).size == 0


@pytest.mark.parametrize("similarity", [np.zeros((2, 3)), np.full((2, 2), np.nan)])
def test_what_is_no_table_of_pairs_is_refused(similarity: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    with pytest.raises(FormulaInputError):
        neighbourly_order(similarity)


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
