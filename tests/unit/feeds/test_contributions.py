from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from stream_peer.events.feed_log import Verdict
from stream_peer.feeds import contributions
from stream_peer.feeds.columns import EXPERT, FEED, UNIT, VOTES, expert_span
from stream_peer.feeds.facts import Facts, ScoringInputs
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.sums import BINS, NOTHING, Contribution
from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.error_rates import ClassMomentSums, ClassMomentTerms
from stream_peer.numerics.losses import LOG
from tests.unit.feeds.sample_facts import METHOD, facts_of, scoring_inputs

FORECASTS = [0.9, 0.6, 0.2]
SELECT = [0.5, 0.3, 0.2]


def entry_of(rounds: Sequence[Facts], evidence: Verdict = "open", weight: float = 1.0) -> Entry:
    entry = Entry(weight=weight, evidence=evidence)
    for facts in rounds:
        entry.put(facts)
    return entry


def contribution(entry: Entry) -> Contribution:
    return contributions.contribution(entry, METHOD)


def column(part: Contribution, name: str) -> list[float]:
    found: list[float] = columns_of(part)[EXPERT.at(name)].tolist()
    return found


def columns_of(part: Contribution) -> FloatArray:
    """All columns, those to which it adds nothing 0."""
    found = np.zeros((EXPERT.size, len(part.experts)))
    found[part.rows] = part.columns * UNIT
    return found


def feed(part: Contribution, name: str) -> float:
    return dict(part.feed).get(FEED.at(name), 0) * UNIT


@pytest.mark.parametrize("evidence", ["open", 0, 1])
def test_many_equal_rounds_are_no_more_evidence_than_one(evidence: Verdict) -> None:
    rounds = [facts_of(FORECASTS, boundary=boundary) for boundary in range(40)]

    once, often = contribution(entry_of(rounds[:1], evidence)), contribution(entry_of(rounds, evidence))

    np.testing.assert_allclose(often.columns, once.columns, atol=4)
    np.testing.assert_allclose(often.feed, once.feed, atol=4)


def test_rounds_are_averaged_before_absolute_values_and_squares() -> None:
    one = facts_of([0.9, 0.6, 0.2], boundary=1)
    two = facts_of([0.3, 0.8], boundary=2, experts=[1, 5])

    part = contribution(entry_of([one, two], 0))

    assert part.experts.tolist() == [0, 1, 2, 5]
    assert column(part, "resolved") == [0.5, 1.0, 0.5, 0.5]
    assert column(part, "outcome_loss") == pytest.approx([0.405, (0.36 + 0.09) / 2, 0.02, 0.32], abs=1e-11)
    means = [(0.36 + 0.81 + 0.04) / 3, (0.09 + 0.64) / 2]
    first, second = means[0] - 0.36, means[1] - 0.09
    assert column(part, "outcome_absolute")[1] == pytest.approx(abs(first + second) / 2, abs=1e-11)


def test_weight_multiplies_everything_and_enters_variance_twice() -> None:
    full, half = (
        contribution(entry_of([facts_of(FORECASTS)])),
        contribution(entry_of([facts_of(FORECASTS)], weight=0.5)),
    )

    variance = full.rows == EXPERT.at("variance")
    np.testing.assert_array_equal(half.rows, full.rows)
    np.testing.assert_allclose(half.columns[variance], full.columns[variance] / 4, atol=2)
    np.testing.assert_allclose(half.columns[~variance], full.columns[~variance] / 2, atol=2)
    assert feed(half, "moment_weight2") == 0.25
    assert feed(half, "pair") == pytest.approx(feed(full, "pair") / 2)


def test_low_evidence_adds_nothing_until_the_outcome_is_known() -> None:
    facts = facts_of([0.9, 0.8, 0.5])
    unresolved, resolved = contribution(entry_of([facts])), contribution(entry_of([facts], 1))

    assert not unresolved.columns.any()
    asked_only = {name: feed(unresolved, name) for name in ("asked", "voters")}
    assert asked_only == {"asked": 1.0, "voters": 2.0 / VOTES}
    assert len(unresolved.feed) == 2
    assert column(resolved, "outcome_loss") == pytest.approx([0.01, 0.04, 0.25], abs=1e-11)
    assert column(resolved, "mix_slope") == [0.0, 0.0, 0.0]
    assert any(column(resolved, "mix_regret"))
    assert feed(resolved, "questions") == feed(resolved, "resolved") == 1.0


def test_the_truth_table_holds_the_answers_of_rounds_that_count() -> None:
    """Its rates price such rounds only; of two voters each has one to be compared with, of one nobody."""
    few, enough = facts_of([0.9, 0.8, 0.5], boundary=1), facts_of([0.9, 0.8, 0.7, 0.2], boundary=2)
    table = ("right_zero", "wrong_zero", "right_one", "wrong_one")

    assert [feed(contribution(entry_of([few], 1)), cell) for cell in table] == [0.0, 0.0, 0.0, 0.0]
    assert [feed(contribution(entry_of([few, enough], 1)), cell) for cell in table] == [0.0, 0.0, 0.5, 0.0]
    assert [feed(contribution(entry_of([enough], 0)), cell) for cell in table] == [0.0, 1.0, 0.0, 0.0]


def test_a_million_questions_of_two_thousand_experts_fit_into_the_sums() -> None:
    part = contribution(entry_of([facts_of(np.linspace(0.0, 0.4, 2000).tolist())], 1))

    assert max(abs(int(value)) for value in [*dict(part.feed).values(), *part.columns.ravel()]) * 1_000_000 < 2**63


def test_annulled_and_empty_questions_add_nothing() -> None:
    assert contribution(entry_of([facts_of(FORECASTS)], "annulled")) is NOTHING
    assert contribution(Entry(evidence=1)) is NOTHING


OWN = [0.5, 0.7, 0.1]


@pytest.mark.parametrize("evidence", ["open", 1])
def test_a_question_under_own_medians_fills_the_columns_of_that_rule_alone(evidence: Verdict) -> None:
    facts = facts_of(FORECASTS, under=scoring_inputs(3, select=SELECT, thresholds=OWN))
    as_if_half = replace(facts, votes=replace(facts.votes, rule=0))

    own, half = (columns_of(contribution(entry_of([f], evidence))) for f in (facts, as_if_half))

    np.testing.assert_array_equal(own[expert_span(1)], half[expert_span(0)])
    np.testing.assert_array_equal(
        own[EXPERT.span("outcome_regret", "evaluated_squared")],
        half[EXPERT.span("outcome_regret", "evaluated_squared")],
    )
    assert not own[expert_span(0)].any()
    assert own[expert_span(1)].any() == (evidence == "open")


@pytest.mark.parametrize("evidence", ["open", 0, 1])
def test_the_mixers_learn_from_answers_at_one_half_under_every_vote_rule_where_the_method_says_so(
    evidence: Verdict,
) -> None:
    forecasts, method = [[0.2, 0.3, 0.4], [0.1, 0.3, 0.2]], Method(mixes_at_half=True)
    own, half = scoring_inputs(3, thresholds=[0.05, 0.05, 0.05]), scoring_inputs(3)

    def of(under: ScoringInputs, rounds: Sequence[list[float]]) -> FloatArray:
        facts = [facts_of(one, boundary=k, under=under, method=method) for k, one in enumerate(rounds)]
        return columns_of(contributions.contribution(entry_of(facts, evidence), method))

    mixers = EXPERT.span("mix_level", "mix_answer")
    for rounds in (forecasts[:1], forecasts):
        by_own, by_half = of(own, rounds), of(half, rounds)
        np.testing.assert_array_equal(by_own[mixers], by_half[mixers])
        assert not np.array_equal(by_own, by_half)


def test_feed_columns_of_own_medians_hold_moments_by_class_and_votes_at_one_half() -> None:
    facts = facts_of(FORECASTS, under=scoring_inputs(3, thresholds=OWN))
    part = contribution(entry_of([facts], 1, 0.5))

    def of_rule(name: str) -> float:
        return dict(part.feed).get(FEED.at(name, "own-median"), 0) * UNIT

    assert (feed(part, "yes"), feed(part, "votes")) == (1.0 / VOTES, 1.5 / VOTES)
    assert feed(part, "moment_weight") == feed(part, "right_one") == 0.0
    assert of_rule("moment_weight") == of_rule("right_one") == 0.5
    assert facts.moments.classes is not None
    sums = ClassMomentSums.contribution(ClassMomentTerms(*facts.moments.classes), 0.5)
    for name in ClassMomentSums.__dataclass_fields__:
        assert feed(part, f"class_{name}") == pytest.approx(getattr(sums, name), abs=1e-11)


def test_rounds_of_both_rules_go_to_their_own_columns_each_with_its_share() -> None:
    half = facts_of(FORECASTS, boundary=1, under=scoring_inputs(3, select=SELECT))
    own = facts_of([0.3, 0.2, 0.4], boundary=2, under=scoring_inputs(3, select=SELECT, thresholds=OWN))

    both = columns_of(contribution(entry_of([half, own])))
    alone = [columns_of(contribution(entry_of([facts]))) for facts in (half, own)]

    squares = EXPERT.at("variance")
    for rule, rows in enumerate(map(expert_span, (0, 1))):
        share = np.full((len(both[rows]), 1), 0.5)
        share[squares] = 0.25
        np.testing.assert_allclose(both[rows], share * alone[rule][rows], atol=1e-11)
    np.testing.assert_allclose(
        both[EXPERT.span("outcome_regret", "evaluated_squared")],
        (alone[0] + alone[1])[EXPERT.span("outcome_regret", "evaluated_squared")] / 2,
        atol=1e-11,
    )


def test_only_rounds_that_count_and_methods_that_need_them_enter_histograms() -> None:
    counts, too_few = facts_of(FORECASTS), facts_of([0.5, 0.5, 0.9], boundary=2)
    entry = entry_of([counts, too_few], weight=0.5)

    found = contributions.contribution(entry, Method(vote_rule="auto")).binned

    assert found is not None
    assert found.cells.tolist() == [0 * BINS + 72, 1 * BINS + 53, 2 * BINS + 27]
    assert found.amount * UNIT == 0.25
    assert contribution(entry).binned is None


@pytest.mark.parametrize("evidence", ["open", 0, 1])
def test_losses_are_those_of_the_method_scaled_to_one(evidence: Verdict) -> None:
    method = Method(loss=LOG)
    facts = facts_of([0.0, 1.0, 0.6], method=method)
    part = contributions.contribution(entry_of([facts], evidence), method)

    if_one, if_zero = LOG.scaled_sides(facts.forecasts)
    assert max(if_one.max(), if_zero.max()) == 1.0
    if evidence == "open":
        assert column(part, "loss_if_one") == pytest.approx(if_one.tolist(), abs=1e-11)
        assert column(part, "loss_if_zero") == pytest.approx(if_zero.tolist(), abs=1e-11)
    else:
        assert column(part, "outcome_loss") == pytest.approx((if_one if evidence else if_zero).tolist(), abs=1e-11)
