from itertools import pairwise

import pytest

from stream_peer.events.outputs import ErrorRateStatus, TrustState
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.rates import Rates
from stream_peer.feeds.reading.trust import (
    PEER_STEP,
    PEER_TRUST,
    SHRINK,
    SHRINK_STEP,
    NamedGroup,
    Signs,
    certifies,
    next_peer_trust,
    next_shrink,
    next_trust,
)
from stream_peer.feeds.reading.weights import PeerTrust
from stream_peer.numerics.dependence import Dependence, RankAgreement
from stream_peer.numerics.error_rates import Contradiction, ErrorRate, RevealShift
from stream_peer.settings.feed.model import FeedSettings, TrustSettings

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


# --- experts who depend on each other ---


def votes_of(z: float | None, questions: float = 500.0) -> Dependence:
    return Dependence(0.01, 0.01, z, False, questions, "ok")


def signs(
    z: float | None = 0.0,
    questions: float = 500.0,
    ranks: RankAgreement | None = None,
    groups: list[NamedGroup] | None = None,
) -> Signs:
    return Signs(votes_of(z, questions), ranks, groups or [])


@pytest.mark.parametrize(
    ("before", "z", "questions", "expected"),
    [
        ("ok", 2.9, 500.0, "ok"),
        ("ok", 3.1, 500.0, "dependent"),
        ("ok", -9.0, 500.0, "ok"),
        ("ok", None, 500.0, "ok"),
        ("dependent", 2.1, 500.0, "dependent"),
        ("dependent", 1.9, 500.0, "ok"),
        ("warming-up", 9.0, 199.0, "warming-up"),
        ("warming-up", 9.0, 200.0, "dependent"),
        ("dependent", 9.0, 181.0, "dependent"),
        ("dependent", 9.0, 179.0, "warming-up"),
    ],
)
def test_votes_unlike_independent_ones_alarm_and_are_believed_again_well_below_the_limit(
    before: TrustState, z: float | None, questions: float, expected: TrustState
) -> None:
    found = signs(z, questions)

    trust = next_trust(before, rates(questions), 10.0, SETTINGS, found)

    assert trust.state == expected
    assert next_trust(trust.state, rates(questions), 10.0, SETTINGS, found) == trust
    if expected == "dependent":
        assert f"z = {z:.1f}" in trust.reasons[0]


COPIES = [NamedGroup(["ann", "bea", "cat"])]


@pytest.mark.case("C16")
@pytest.mark.parametrize("warm_up", [0.0, 200.0])
def test_a_group_that_is_found_early_is_suspected_until_there_are_questions_enough(warm_up: float) -> None:
    settings = FeedSettings(trust=TrustSettings(warm_up_questions=warm_up))
    early = next_trust("warming-up", rates(120.0), 10.0, settings, signs(questions=120.0, groups=COPIES))
    late = next_trust(early.state, rates(200.0), 10.0, settings, signs(questions=200.0, groups=COPIES))

    assert early.state == "warming-up"
    assert early.reasons == ("120 of 200 effective questions", "so far ann, bea, cat say the same")
    assert late == ("dependent", ("ann, bea, cat say the same",))


def test_reasons_name_some_of_a_large_group_and_say_what_a_follower_follows() -> None:
    large = NamedGroup([f"e{k:02}" for k in range(14)])

    trust = next_trust("ok", rates(500.0), 10.0, SETTINGS, signs(groups=[large, NamedGroup(["dan"], "follower")]))

    assert trust.reasons[0].startswith("e00, e01, ")
    assert trust.reasons[0].endswith(", e09 and 4 more say the same")
    assert trust.reasons[1] == "dan say what the crowd had said before"


def test_a_group_comes_before_outcomes_and_outcomes_before_votes_but_all_of_them_are_said() -> None:
    denied = contradicted_by(5.0)

    grouped = next_trust("ok", denied, 10.0, SETTINGS, signs(9.0, groups=COPIES))
    alone = next_trust("ok", denied, 10.0, SETTINGS, signs(9.0))

    assert (grouped.state, len(grouped.reasons)) == ("dependent", 3)
    assert (alone.state, len(alone.reasons)) == ("contradicted", 2)
    assert alone.reasons == grouped.reasons[1:]


# --- outcomes ---


def measured(share: float, resolved: float) -> Rates:
    wrong, right = share * resolved / 2, (1.0 - share) * resolved / 2
    return rates(500.0)._replace(right_zero=right, wrong_zero=wrong, right_one=right, wrong_one=wrong)


@pytest.mark.parametrize(
    ("before", "share", "resolved", "expected"),
    [
        ("ok", 0.6, 49.0, "ok"),
        ("ok", 0.34, 400.0, "contradicted"),
        ("ok", 0.31, 400.0, "ok"),
        ("ok", 0.31, 4000.0, "contradicted"),
        ("contradicted", 0.31, 400.0, "contradicted"),
        ("contradicted", 0.29, 400.0, "ok"),
    ],
)
def test_too_many_wrong_answers_contradict_whatever_was_expected(
    before: TrustState, share: float, resolved: float, expected: TrustState
) -> None:
    trust = next_trust(before, measured(share, resolved), 10.0, SETTINGS, signs())

    assert trust.state == expected
    assert next_trust(trust.state, measured(share, resolved), 10.0, SETTINGS, signs()) == trust
    if expected == "contradicted":
        assert f"{share:.1%} of the reference answers to {resolved:.0f} resolved questions" in trust.reasons[0]


@pytest.mark.parametrize(("share", "resolved", "said"), [(0.5, 12.0, True), (0.5, 8.0, False), (0.4, 12.0, False)])
def test_few_outcomes_are_no_alarm_but_a_reason_while_little_is_known(
    share: float, resolved: float, said: bool
) -> None:
    found = measured(share, resolved)
    few = found._replace(estimate=rates(108.0).estimate)

    trust = next_trust("warming-up", few, 10.0, SETTINGS, signs())

    assert trust.state == "warming-up"
    assert len(trust.reasons) == 1 + said
    assert not said or trust.reasons[1].startswith("so far 50.0% of the reference answers to 12 resolved questions")


@pytest.mark.parametrize(
    ("before", "correlation", "experts", "expected"),
    [
        ("ok", 0.15, 8, "ok"),
        ("ok", -0.2, 8, "ok"),
        ("ok", -0.8, 8, "contradicted"),
        ("ok", 0.1, 60, "ok"),
        ("ok", -0.1, 60, "contradicted"),
        ("contradicted", 0.0, 60, "contradicted"),
        ("contradicted", 0.1, 60, "ok"),
        ("ok", 0.1, 900, "contradicted"),
    ],
)
def test_ranks_that_outcomes_deny_contradict_as_soon_as_chance_does_not_explain_them(
    before: TrustState, correlation: float, experts: int, expected: TrustState
) -> None:
    found = signs(ranks=RankAgreement(correlation, experts))

    trust = next_trust(before, rates(500.0), 10.0, SETTINGS, found)

    assert trust.state == expected
    assert next_trust(trust.state, rates(500.0), 10.0, SETTINGS, found) == trust
    if expected == "contradicted":
        assert f"{experts} experts with a correlation of {correlation:.2f}" in trust.reasons[0]


def test_limits_are_settings() -> None:
    limits = TrustSettings(dependence_z=10.0, measured_error_rate=0.45, rank_correlation=-0.5)
    lenient = FeedSettings(trust=limits)
    found = signs(9.0, ranks=RankAgreement(-0.3, 60))

    assert next_trust("ok", measured(0.4, 400.0), 10.0, lenient, found).state == "ok"
    assert next_trust("ok", measured(0.4, 400.0), 10.0, SETTINGS, found).state == "contradicted"


# --- what a state does ---


@pytest.mark.case("C18")
def test_shrinking_moves_by_a_step_a_record_towards_the_share_of_the_state_and_back() -> None:
    share, states = 0.0, [*["dependent"] * 15, *["uninformative"] * 20, *["ok"] * 25]
    path = [share := next_shrink(share, state, Method()) for state in states]  # type: ignore[arg-type] # of a list

    assert max(abs(after - before) for before, after in zip([0.0, *path], path, strict=False)) <= SHRINK_STEP + 1e-12
    assert (path[14], path[34], path[-1]) == (SHRINK["dependent"], SHRINK["uninformative"], 0.0)
    assert path[17] == 0.25


def test_heeding_moves_the_prior_share_by_a_step_a_record_towards_that_of_the_state() -> None:
    states = [*["warming-up"] * 12, *["ok"] * 20, *["dependent"] * 20, *["contradicted"] * 20, *["uninformative"] * 9]
    trust, path = PeerTrust(), list[PeerTrust]()
    for state in states:
        path.append(trust := next_peer_trust(trust, state, 1.0, 0.35, 0.0))  # type: ignore[arg-type] # of a list

    shares = [0.0, *(0.35 * trusted.prior for trusted in path)]
    steps = [abs(after - before) for before, after in pairwise(shares)]
    stretches = [abs(after.stretch - before.stretch) for before, after in pairwise(path)]
    assert max(*steps, *stretches) <= PEER_STEP + 1e-9
    assert [path[at] for at in (11, 31, 51, 71, 80)] == [
        *(PEER_TRUST[state] for state in ("warming-up", "ok", "dependent", "contradicted", "uninformative"))
    ]


def test_votes_that_agree_by_chance_are_not_heeded_in_any_state() -> None:
    for state in PEER_TRUST:
        assert next_peer_trust(PeerTrust(), state, 0.0, 0.35, 100.0) == PeerTrust(0.0, 0.0)


def test_with_outcomes_the_stretch_by_peers_counts_in_every_state() -> None:
    for state, trust in PEER_TRUST.items():
        few, many = (next_peer_trust(trust, state, 1.0, 0.35, resolved) for resolved in (1.0, 1e6))

        assert (few.prior, many.prior) == (trust.prior, trust.prior)
        assert few.stretch == pytest.approx(max(trust.stretch, 1.0 / 41.0))
        assert many.stretch == pytest.approx(min(trust.stretch + PEER_STEP, 1.0))


def test_only_alarms_shrink_and_never_under_the_preset_paper() -> None:
    states: list[TrustState] = ["ok", "warming-up", "low-evidence", "dependent", "contradicted", "uninformative"]

    assert [next_shrink(0.0, state, Method()) for state in states] == [0.0] * 3 + [SHRINK_STEP] * 3
    assert {next_shrink(0.0, state, Method(adjusts=False)) for state in states} == {0.0}
