import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import (
    FeedLogRecord,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    Source,
)
from stream_peer.events.partitioning import partition_of
from stream_peer.events.topics import MAX_RECORD_BYTES
from stream_peer.questions.history import StandingForecasts
from stream_peer.questions.rounds import content_digest, reconcile, refresh_emitted
from stream_peer.questions.state import QuestionState, Truth
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import (
    CLOSE,
    DAY,
    GRACE,
    HOUR,
    T0,
    Partition,
    closed,
    event,
    forecast,
    opened,
    question,
    records,
    said,
    tick,
)


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
    question.history.drop({"zoe"})

    refresh_emitted(question, question.plan())

    assert emitted(question, 105) == []
    assert list(question.emitted) == [40, 80, 100]


def test_a_round_at_which_nobody_is_left_was_never_emitted() -> None:
    question = known(("zoe", 1, 0.9), ("ann", 50, 0.5))
    emitted(question, 105)
    question.history.drop({"zoe"})

    refresh_emitted(question, question.plan())

    assert list(question.emitted) == [80, 100]
    assert emitted(question, 105) == []


def test_a_round_is_emitted_once_its_boundary_and_the_grace_have_passed() -> None:
    partition = opened()

    too_early = partition.pass_to(CLOSE + GRACE - 1)
    in_time = partition.pass_to(CLOSE + GRACE)
    afterwards = partition.pass_to(CLOSE + 2 * GRACE)

    assert too_early == afterwards == []
    assert in_time == [
        Round(
            src=Source("forecast-events", 0, 0, 4, 0),
            feed="econ",
            question_id="q",
            boundary=CLOSE,
            final=True,
            experts=["ann", "bob"],
            probabilities=[0.7, 0.2],
        )
    ]


def test_a_round_goes_to_the_partition_of_its_feed_with_the_time_of_its_cause() -> None:
    partition = opened()

    (output,) = partition.send(tick(CLOSE + GRACE), now=CLOSE + DAY)

    assert output.topic == topics.FEED_LOG
    assert output.key == b"econ"
    assert output.partition == partition_of("econ", 4)
    assert output.timestamp == CLOSE + DAY


def test_boundaries_come_every_round_every_and_at_the_close() -> None:
    partition = opened(round_every="18h")

    partition.pass_to(CLOSE + GRACE)

    assert list(partition.told.forecasts()) == [T0 + 18 * HOUR, T0 + 36 * HOUR, CLOSE]


def test_the_quorum_makes_a_boundary_of_its_own() -> None:
    partition = opened(quorum=3)

    partition.send(forecast("cyd", 0.5, T0 + 5 * HOUR), now=T0 + 5 * HOUR)
    partition.pass_to(T0 + 6 * HOUR)

    assert partition.told.forecasts() == {T0 + 5 * HOUR: {"ann": 0.7, "bob": 0.2, "cyd": 0.5}}


def test_an_earlier_quorum_found_late_replaces_the_one_emitted() -> None:
    partition = opened(quorum=3)
    partition.send(forecast("cyd", 0.5, T0 + 5 * HOUR), now=T0 + 5 * HOUR)
    partition.pass_to(T0 + 6 * HOUR)

    partition.send(forecast("dee", 0.4, T0 + 3 * HOUR))

    assert partition.told.forecasts() == {T0 + 3 * HOUR: {"ann": 0.7, "bob": 0.2, "dee": 0.4}}


def test_a_withdrawn_forecast_is_absent() -> None:
    partition = opened()

    partition.send(forecast("ann", None, T0 + 2 * HOUR), now=T0 + 2 * HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert partition.told.forecasts() == {CLOSE: {"bob": 0.2}}


def test_nothing_is_emitted_where_nobody_stands_and_a_round_that_loses_everybody_is_withdrawn() -> None:
    partition = Partition()
    partition.send(question(opens_at=T0, closes_at=CLOSE))
    empty = partition.pass_to(CLOSE + GRACE)
    partition.send(forecast("ann", 0.7, CLOSE - HOUR))

    emptied = records(partition.send(forecast("ann", None, CLOSE - HOUR)))

    assert empty == []
    assert [type(record) for record in emptied] == [RoundWithdrawn]
    assert partition.told.rounds == {}


def test_many_forecasts_of_one_message_are_the_same_as_one_each() -> None:
    one_each = opened()
    together = Partition()
    together.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    many = event("forecasts", question_id="q", at=T0 + HOUR, forecasts={"bob": 0.2, "ann": 0.7})
    together.send(many, now=T0 + HOUR)

    one_each.pass_to(CLOSE + GRACE)
    together.pass_to(CLOSE + GRACE)

    assert one_each.told.rounds == together.told.rounds


def test_a_forecast_may_come_before_its_question() -> None:
    partition = Partition()
    partition.send(forecast("ann", 0.7, T0))

    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), now=T0 + HOUR)
    partition.pass_to(CLOSE + GRACE)

    assert partition.told.rounds == {("econ", "q", CLOSE): (True, 1.0, {"ann": 0.7})}


def test_without_a_stated_opening_the_first_forecast_opens() -> None:
    partition = Partition(round_every="1d")
    partition.send(forecast("ann", 0.7, T0 - 2 * HOUR), forecast("bob", 0.4, T0 - 3 * HOUR))

    partition.pass_to(T0 + DAY)

    assert partition.told.forecasts() == {T0 + 21 * HOUR: {"ann": 0.7, "bob": 0.4}}


def test_the_weight_of_a_question_is_in_its_rounds() -> None:
    partition = closed()

    (changed,) = records(partition.send(question(weight=0.25)))

    assert isinstance(changed, Round)
    assert changed.weight == 0.25


@pytest.mark.case("C27")
def test_a_round_over_the_limit_of_the_broker_is_split_by_expert() -> None:
    partition = Partition()
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    names = [f"{number:0200d}" for number in range(9_000)]
    for start in range(0, 9_000, 3_000):
        many = dict.fromkeys(names[start : start + 3_000], 0.25)
        partition.send(event("forecasts", question_id="q", at=T0, forecasts=many))

    outputs = partition.send(tick(CLOSE + GRACE), now=CLOSE + GRACE)

    rounds = [record for record in records(outputs) if isinstance(record, Round)]
    assert [name for record in rounds for name in record.experts] == names
    assert [(record.part, record.parts, record.src.index) for record in rounds] == [(0, 3, 0), (1, 3, 1), (2, 3, 2)]
    assert all(len(output.value or b"") <= MAX_RECORD_BYTES for output in outputs)
    assert all(record.final for record in rounds)
