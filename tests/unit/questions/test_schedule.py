from stream_peer.questions.schedule import Terms, close_of, regular_boundaries
from stream_peer.settings.feed.model import FeedSettings


def test_intervals_double_after_every_eight_boundaries_and_end_after_thirty_two() -> None:
    boundaries = regular_boundaries(100, 10_000, 10)

    steps = [later - earlier for earlier, later in zip([100, *boundaries], boundaries, strict=False)]
    assert steps == [10] * 8 + [20] * 8 + [40] * 8 + [80] * 8


def test_the_close_is_no_regular_boundary() -> None:
    assert regular_boundaries(0, 30, 10) == [10, 20]


def test_without_an_interval_there_is_no_regular_boundary() -> None:
    assert regular_boundaries(0, 10_000, None) == []


def test_the_earliest_of_what_may_end_a_question_ends_it() -> None:
    assert close_of(opens=100, stated=None, cut=None, max_open=50) == 150
    assert close_of(opens=100, stated=140, cut=120, max_open=50) == 120
    assert close_of(opens=None, stated=None, cut=120, max_open=50) == 120
    assert close_of(opens=None, stated=None, cut=None, max_open=50) is None


def test_terms_are_those_of_the_settings() -> None:
    assert Terms.of(FeedSettings(quorum=3, grace=5, round_every=7, max_open=9)) == Terms(7, 3, 5, 9)
