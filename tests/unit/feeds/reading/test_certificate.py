"""The certificate of version 2: what questions add to its columns, and what is read off them."""

from dataclasses import replace as changed

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, Verdict
from stream_peer.events.outputs import Weights
from stream_peer.feeds.columns import EXPERT, UNIT
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.facts import Facts, unpack
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.certificate import Certified, read_certificate
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.certificate import regret_bounds
from tests.feed_histories import folded, log_of, newest, outcome, round_of, stage
from tests.unit.feeds.sample_facts import facts_of, scoring_inputs
from tests.unit.feeds.sample_sums import FeedSums, expert_sums, feed_sums, voting

METHOD = Method(bounds_all=True)
CLOSE = replace(facts_of([0.9, 0.6, 0.2, 0.35]), final=True)
CLEAR = replace(facts_of([0.9, 0.6, 0.8, 0.7]), final=True)
FEW = replace(facts_of([0.9, 0.2], under=scoring_inputs(2)), final=True)
ADDED = np.setdiff1d(np.arange(EXPERT.size), EXPERT.former)
REGRETS = EXPERT.span("closed_regret", "closed_regret_if_zero")


def columns_of(*rounds: Facts, evidence: Verdict = "open") -> FloatArray:
    entry = Entry(evidence=evidence)
    for boundary, facts in enumerate(rounds):
        entry.put(replace(facts, boundary=boundary))
    part = contribution(entry, METHOD)
    found = np.zeros((EXPERT.size, 4))
    found[np.ix_(part.rows, part.experts)] = part.columns * UNIT
    return found


def test_answers_that_are_alike_move_the_regret_together() -> None:
    """Both losses of p differ by 1 - 2p: the regret moves by twice the distance from the mean."""
    assert np.unique(CLEAR.answers).tolist() == [1]

    spread = columns_of(CLEAR)[EXPERT.at("closed_reach")]

    np.testing.assert_allclose(spread, np.square(2 * (CLEAR.forecasts - 0.75)), atol=1e-11)


def test_answers_of_ones_own_may_move_it_each_for_itself() -> None:
    assert np.unique(CLOSE.answers).tolist() == [0, 1]
    reach = np.abs(1 - 2 * CLOSE.forecasts)

    spread = columns_of(CLOSE)[EXPERT.at("closed_reach")]

    np.testing.assert_allclose(spread, np.square(reach.mean() + reach / 2), atol=1e-11)


@pytest.mark.parametrize("evidence", ["open", 0, 1])
def test_rounds_of_a_question_are_averaged_before_the_square(evidence: Verdict) -> None:
    one, other, both = (
        np.sqrt(columns_of(*rounds, evidence=evidence)[EXPERT.at("closed_reach")])
        for rounds in ([CLOSE], [CLEAR], [CLOSE, CLEAR])
    )

    np.testing.assert_allclose(both, (one + other) / 2, atol=1e-11)


def test_the_largest_regret_of_a_question_is_that_of_one_outcome_for_all_its_rounds() -> None:
    if_one, if_zero = (
        [columns_of(*rounds)[EXPERT.at(f"published_regret_if_{side}")] for rounds in ([CLOSE, CLEAR],)]
        for side in ("one", "zero")
    )

    np.testing.assert_allclose(
        columns_of(CLOSE, CLEAR)[EXPERT.at("most_regret")], np.maximum(if_one, if_zero)[0], atol=1e-11
    )


@pytest.mark.parametrize("evidence", [0, 1])
def test_a_round_that_does_not_count_has_the_regret_that_its_outcome_shows(evidence: Verdict) -> None:
    assert not FEW.votes.counts

    found = columns_of(FEW, evidence=evidence)

    assert found[EXPERT.at("true_regret")].any()
    np.testing.assert_array_equal(found[EXPERT.at("other_regret")], found[EXPERT.at("true_regret")])
    assert not found[EXPERT.at("closed_reach")].any()
    assert not found[REGRETS].any()


def test_a_round_that_does_not_count_has_the_largest_regret_that_there_can_be_without_outcome() -> None:
    of_outcomes = [columns_of(FEW, evidence=outcome)[EXPERT.at("true_regret")] for outcome in (0, 1)]

    found = columns_of(FEW)

    for bound in ("other_regret", "most_regret"):
        np.testing.assert_allclose(found[EXPERT.at(bound)], np.maximum(*of_outcomes), atol=1e-11)
    assert not found[REGRETS].any()


@pytest.mark.parametrize("rounds", [1, 2])
def test_before_its_final_round_a_question_has_the_largest_regret_that_there_can_be(rounds: int) -> None:
    """Of rounds of one question the answers may err together: a part of them may be further off than all."""
    so_far = [replace(facts, final=False) for facts in (CLOSE, CLEAR)[:rounds]]

    found = columns_of(*so_far)

    assert not found[EXPERT.at("closed_reach")].any()
    assert not found[REGRETS].any()
    np.testing.assert_array_equal(found[EXPERT.at("other_regret")], found[EXPERT.at("most_regret")])
    assert found[EXPERT.at("most_regret")].any()


@pytest.mark.parametrize("evidence", ["open", 0, 1])
def test_from_its_final_round_or_its_outcome_on_all_rounds_of_a_question_are_under_the_bound(evidence: Verdict) -> None:
    found = columns_of(replace(CLOSE, final=False), replace(CLEAR, final=evidence == "open"), evidence=evidence)

    one, other = (columns_of(facts)[REGRETS] for facts in (CLOSE, CLEAR))
    np.testing.assert_allclose(found[REGRETS], (one + other) / 2, atol=1e-11)
    assert not found[EXPERT.at("other_regret")].any()


def sums(reach: float = 40.0, most: float = 500.0) -> FloatArray:
    columns = expert_sums(
        3,
        closed_regret=[3.0, 0.0, 0.0],
        closed_regret_if_one=[1.0, 0.0, 0.0],
        closed_regret_if_zero=[0.0, 2.0, 0.0],
        other_regret=[0.5, 0.0, 0.0],
        true_regret=[-1.0, 3.0, 2.0],
    )
    columns[EXPERT.at("closed_reach")], columns[EXPERT.at("most_regret")] = reach, most
    return columns


def read(columns: FloatArray, feed: FeedSums | None = None, method: Method = METHOD) -> Certified:
    found = read_certificate(voting(1000.0) if feed is None else feed, columns, [0], 3, 1, 0.95, method)
    assert found is not None
    return found


def test_the_bound_adds_up_all_rounds_with_an_outcome_or_without() -> None:
    found, without_others = read(sums()), read(sums() * (np.arange(EXPERT.size) != EXPERT.at("other_regret"))[:, None])

    largest = max(
        regret_bounds(
            np.array([3.0, 0.0, 0.0]),
            np.array([1.0, 0.0, 0.0]),
            np.array([0.0, 2.0, 0.0]),
            np.full(3, 40.0),
            ((zero, one),),
            3,
            0.04,
        ).max()
        for zero in np.linspace(0.0, 0.25, 26)  # both rates lie somewhere here
        for one in np.linspace(0.0, 0.25, 26)
    )
    assert 0.0 < without_others.bound < largest
    assert found.bound == pytest.approx(without_others.bound + 0.5, abs=1e-9)
    assert sum(found.terms.values()) == pytest.approx(found.bound, abs=1e-9)
    assert found.terms["outcomes"] == -1.0  # of the first expert, who decides


def test_outcomes_do_not_move_the_rates_whichever_are_revealed() -> None:
    """Of easy questions all reference answers are right."""
    revealed = voting(1000.0).plus(feed_sums(right_zero=300.0, right_one=300.0, revealed_pair=300.0))

    assert read(sums(), revealed).bound == read(sums()).bound


def test_no_question_without_outcome_has_a_larger_regret_than_there_can_be() -> None:
    found = read(sums(most=0.5))

    assert found.bound == 3.5
    assert found.terms == {"estimate": 0.5, "noise": 0.0, "outcomes": 3.0}


def test_with_all_outcomes_the_bound_is_the_regret_itself() -> None:
    assert read(sums(most=0.0)).bound == 3.0


def test_where_the_rates_are_not_known_there_is_a_bound_all_the_same() -> None:
    assert read(sums(most=20.0), voting(3.0)).bound == 23.0
    assert read_certificate(voting(3.0), sums()[:, :0], [0], 3, 1, 0.95, METHOD) is None


def test_a_rule_that_may_come_into_use_has_its_share_of_the_error_probability_before() -> None:
    fixed, open_ = (read(sums(), method=changed(METHOD, vote_rule=rule)).bound for rule in ("half", "auto"))

    assert fixed < open_ < 1.15 * fixed


def world(questions: int) -> tuple[list[FeedLogRecord], BoolArray, FloatArray]:
    """Five experts of different skill, three rounds a question; a tenth of the outcomes comes. And what was true."""
    rng = np.random.default_rng(4)
    skill = np.array([1.2, 1.0, 0.8, 0.6, 0.4])
    records: list[FeedLogRecord] = []
    truth = rng.random(questions) < 0.5
    said = np.empty((questions, 3, 5))
    for number, is_one in enumerate(truth):
        signal = (2 * is_one - 1) * skill + rng.normal(size=5)
        for boundary in range(3):
            said[number, boundary] = 1 / (1 + np.exp(-2 * skill * signal))
            forecasts = {f"e{place}": round(float(p), 6) for place, p in enumerate(said[number, boundary])}
            records.append(round_of(f"q{number}", forecasts, boundary=boundary + 1, final=boundary == 2))
            signal = signal + 0.2 * rng.normal(size=5)
        if number % 10 == 0:
            records.append(outcome(f"q{number}", int(is_one)))  # type: ignore[arg-type]  # 0 or 1
    return records, truth, said


def test_of_a_feed_of_version_2_it_is_above_the_regret_and_less_than_half_of_that_of_version_1() -> None:
    records, truth, said = world(120)
    bounds = []
    for version in (1, 2):
        at_work, effects = folded(log_of(records), stage(method_version=version))
        weights = msgspec.convert(newest(effects.outputs, topics.WEIGHTS)["f"], Weights)
        assert weights.certificate is not None
        bounds.append(weights.certificate.regret_at_most)

    losses = np.square(said - truth[:, None, None])
    entries = at_work.feeds.feed("f").ledger.entries
    select = np.array([[unpack(packed).select for packed in entries[f"q{n}"].rounds] for n in range(len(truth))])
    followed = (select * losses).sum(axis=2, keepdims=True)
    regret = (followed - losses).mean(axis=1).sum(axis=0).max()
    assert 0.0 < regret < bounds[1] < 0.5 * bounds[0]


def test_an_outcome_that_is_retracted_leaves_no_trace_in_the_columns() -> None:
    records, *_ = world(20)
    open_ = [record for record in records if not isinstance(record, OutcomeRevealed)]
    revealed = [record for record in records if isinstance(record, OutcomeRevealed)]
    retracted = [outcome(record.question_id, "open") for record in revealed]

    never, again = (
        folded(log_of(each), stage(method_version=2))[0].feeds.feed("f").buckets.sums.matrix[ADDED]
        for each in (open_, [*open_, *revealed, *retracted])
    )

    assert never.any()
    np.testing.assert_array_equal(again, never)
