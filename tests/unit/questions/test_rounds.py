from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, Round, RoundWithdrawn, Source
from stream_peer.questions.history import StandingForecasts
from stream_peer.questions.rounds import content_digest, emitted_anew, reconcile
from stream_peer.questions.state import QuestionState, Truth
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import said


def known(*entries: tuple[str, int, float], close: int = 100, grace: int = 5) -> QuestionState:
    question = QuestionState("q", FeedSettings(grace=grace, round_every=40), foreign=False)
    question.opens, question.closes = (0, 0), (0, close)
    for expert_id, at, probability in entries:
        said(question.history, expert_id, at, probability)
    return question


def emitted(question: QuestionState, now: int, unchanged_before: int = 0) -> list[FeedLogRecord]:
    source = Source("forecast-events", 0, 0, 0, 0)
    return [record for record, _ in reconcile(question, question.plan(), now, lambda: source, unchanged_before)]


def test_a_round_is_told_by_boundary_finality_weight_experts_and_probabilities() -> None:
    standing = StandingForecasts(["a"], [0.5])
    digests = {
        content_digest(1, standing, 1.0, final=False),
        content_digest(2, standing, 1.0, final=False),
        content_digest(1, standing, 1.0, final=True),
        content_digest(1, standing, 0.5, final=False),
        content_digest(1, StandingForecasts(["b"], [0.5]), 1.0, final=False),
        content_digest(1, StandingForecasts(["a"], [0.6]), 1.0, final=False),
    }

    assert len(digests) == 6


def test_what_is_due_is_emitted_and_nothing_twice() -> None:
    question = known(("ann", 1, 0.5))

    first, again, last = emitted(question, 45), emitted(question, 84), emitted(question, 105)

    assert [record.boundary for record in first if isinstance(record, Round)] == [40]
    assert again == []
    assert [(record.boundary, record.final) for record in last if isinstance(record, Round)] == [
        (80, False),
        (100, True),
    ]


def test_boundaries_said_to_be_unchanged_are_not_looked_at() -> None:
    question = known(("ann", 1, 0.5))
    emitted(question, 200)
    said(question.history, "bob", 50, 0.1)

    again = emitted(question, 200, unchanged_before=50)

    assert [record.boundary for record in again if isinstance(record, Round)] == [80, 100]


def test_the_terms_are_those_of_the_first_round() -> None:
    question = known(("ann", 1, 0.5))
    emitted(question, 45)
    question.settings = FeedSettings(grace=50, round_every=10)

    again = emitted(question, 85)

    assert [record.boundary for record in again if isinstance(record, Round)] == [80]


def test_a_resolution_withdraws_what_it_cuts_off_and_comes_last() -> None:
    question = known(("ann", 1, 0.5))
    emitted(question, 105)
    question.truth = Truth(90, 1, 60)

    told = emitted(question, 105)

    assert [type(record) for record in told] == [RoundWithdrawn, RoundWithdrawn, Round, OutcomeRevealed]


def test_rounds_whose_experts_were_let_go_of_count_as_emitted_without_them() -> None:
    question = known(("ann", 1, 0.5), ("zoe", 1, 0.9), ("zoe", 50, 0.8))
    emitted(question, 105)
    question.history.let_go({"zoe"})

    emitted_anew(question, question.plan())

    assert emitted(question, 105) == []
    assert list(question.emitted) == [40, 80, 100]


def test_a_round_at_which_nobody_is_left_was_never_emitted() -> None:
    question = known(("zoe", 1, 0.9), ("ann", 50, 0.5))
    emitted(question, 105)
    question.history.let_go({"zoe"})

    emitted_anew(question, question.plan())

    assert list(question.emitted) == [80, 100]
    assert emitted(question, 105) == []
