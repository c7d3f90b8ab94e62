import pytest

from stream_peer.engine.rates import Rates
from stream_peer.engine.trust import certifies, next_trust
from stream_peer.events.feed_settings import FeedSettings
from stream_peer.events.outputs import ErrorRateStatus, TrustState
from stream_peer.numerics.error_rates import Contradiction, ErrorRate, RevealShift

SETTINGS = FeedSettings()


def rates(questions: float, rate: float = 0.2, status: ErrorRateStatus = "ok") -> Rates:
    estimate = ErrorRate(rate, rate, 0.1, 0.3, questions, "ok" if questions >= 50 else "insufficient", 0.01)
    return Rates(0, estimate, rate, rate, estimate.status if status == "ok" else status, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("before", "questions", "expected"),
    [
        ("warming-up", 0.0, "warming-up"),
        ("warming-up", 199.0, "warming-up"),
        ("warming-up", 200.0, "ok"),
        ("ok", 181.0, "ok"),
        ("ok", 179.0, "warming-up"),
    ],
)
def test_warming_up_ends_at_its_limit_and_returns_well_below(
    before: TrustState, questions: float, expected: TrustState
) -> None:
    assert next_trust(before, rates(questions), 10.0, SETTINGS).state == expected


@pytest.mark.parametrize(
    ("before", "rate", "expected"),
    [
        ("ok", 0.39, "ok"),
        ("ok", 0.41, "uninformative"),
        ("uninformative", 0.39, "uninformative"),
        ("uninformative", 0.37, "ok"),
    ],
)
def test_uninformative_is_left_below_its_limit(before: TrustState, rate: float, expected: TrustState) -> None:
    assert next_trust(before, rates(500.0, rate), 10.0, SETTINGS).state == expected


@pytest.mark.parametrize("status", ["uninformative", "contradicted"])
def test_class_rates_that_votes_do_not_give_alarm(status: ErrorRateStatus) -> None:
    trust = next_trust("ok", rates(500.0, status=status), 10.0, SETTINGS)

    assert trust.state == status
    assert trust.reasons
    assert next_trust(trust.state, rates(500.0), 10.0, SETTINGS).state == "ok"


def test_error_rates_of_few_questions_do_not_condemn_a_feed() -> None:
    assert next_trust("warming-up", rates(10.0, 0.475), 10.0, SETTINGS).state == "warming-up"


@pytest.mark.parametrize(
    ("before", "voters", "expected"),
    [
        ("ok", 2.9, "low-evidence"),
        ("ok", 3.1, "ok"),
        ("low-evidence", 3.1, "low-evidence"),
        ("low-evidence", 3.3, "ok"),
    ],
)
def test_low_evidence_is_left_a_quarter_voter_above(before: TrustState, voters: float, expected: TrustState) -> None:
    assert next_trust(before, rates(500.0), voters, SETTINGS).state == expected


def test_nothing_is_low_before_the_first_question() -> None:
    trust = next_trust("warming-up", rates(0.0), None, SETTINGS)

    assert trust.state == "warming-up"
    assert trust.reasons == ("0 of 200 effective questions",)


def test_a_state_that_was_reached_stays_while_nothing_changes() -> None:
    for before in ("ok", "warming-up", "low-evidence", "uninformative"):
        for questions in (0.0, 60.0, 190.0, 500.0):
            for rate in (0.1, 0.38, 0.45):
                for voters in (2.0, 3.1, 5.0):
                    reached = next_trust(before, rates(questions, rate), voters, SETTINGS)
                    assert next_trust(reached.state, rates(questions, rate), voters, SETTINGS) == reached


def test_only_ok_and_warming_up_certify() -> None:
    assert [certifies(state) for state in ("ok", "warming-up", "low-evidence", "uninformative")] == [
        True,
        True,
        False,
        False,
    ]


def contradicted_by(z: float) -> Rates:
    return rates(500.0)._replace(contradiction=Contradiction(0.3, 0.2, 400.0, z))


@pytest.mark.parametrize(
    ("before", "z", "expected"),
    [
        ("ok", 2.9, "ok"),
        ("ok", 3.1, "contradicted"),
        ("contradicted", 2.1, "contradicted"),
        ("contradicted", 1.9, "ok"),
    ],
)
def test_what_outcomes_contradict_is_believed_again_well_below_the_limit(
    before: TrustState, z: float, expected: TrustState
) -> None:
    trust = next_trust(before, contradicted_by(z), 10.0, SETTINGS)

    assert trust.state == expected
    assert bool(trust.reasons) == (expected == "contradicted")
    assert next_trust(trust.state, contradicted_by(z), 10.0, SETTINGS) == trust


def test_outcomes_contradict_even_where_they_may_not_speak_for_all_and_that_is_said() -> None:
    biased = contradicted_by(5.0)._replace(status="biased-reveal", shifts=(RevealShift(0.6, 0.2, 9.0), None))

    trust = next_trust("ok", biased, 10.0, SETTINGS)

    assert trust.state == "contradicted"
    assert len(trust.reasons) == 2
    assert next_trust("ok", biased._replace(contradiction=None), 10.0, SETTINGS).state == "ok"


def test_a_contradicted_feed_certifies_nothing() -> None:
    assert not certifies("contradicted")
