import numpy as np
import pytest

from stream_peer.engine.facts import boundary_of, losses_of, unpack
from stream_peer.engine.variants import NO_ANSWERS
from tests.unit.engine.sample_facts import METHOD, circumstances, facts_of


def test_facts_of_a_round_worked_out_by_hand() -> None:
    facts = facts_of([0.9, 0.6, 0.2, 0.5], under=circumstances(4, select=[0.5, 0.25, 0.25, 0.0]))

    assert facts.head[3:9] == (1, 0, NO_ANSWERS, 3, 2, 3)
    assert facts.head.counts == 1
    assert facts.answers.tolist() == [0, 1, 1, 1]  # the others of the first two are tied: .6 + .2 < 1 < .9 + .2
    assert facts.ties.tolist() == [1, 1, 0, 0]
    assert facts.head.mean == pytest.approx(0.55)
    assert facts.head.own_one == pytest.approx(0.5 * 0.01 + 0.25 * 0.16 + 0.25 * 0.64)
    assert facts.head.own_zero == pytest.approx(0.5 * 0.81 + 0.25 * 0.36 + 0.25 * 0.04)
    assert facts.head.own_answer == pytest.approx(0.5 * 0.81 + 0.25 * 0.16 + 0.25 * 0.64)
    assert facts.head.spread == pytest.approx(0.5 * 0.8 + 0.25 * 0.2 + 0.25 * 0.6)
    assert facts.head.mix == pytest.approx(0.55)
    assert facts.head.stretched == pytest.approx(0.5 + 1.5 * 0.05)


def test_packed_facts_come_back_bit_for_bit() -> None:
    generator = np.random.default_rng(5)
    facts = facts_of(generator.random(50).tolist(), boundary=1_700_000_000_123)

    again = unpack(facts.pack())

    for name, value in facts._replace(losses=None)._asdict().items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
    np.testing.assert_array_equal(losses_of(again, METHOD), facts.losses)
    assert boundary_of(facts.pack()) == facts.head.boundary
    assert len(facts.pack()) <= 50 * 21 + 230


def test_experts_are_drawn_in_proportion_to_their_weights() -> None:
    select = [0.5, 0.0, 0.3, 0.2]
    drawn = [
        facts_of([0.1, 0.2, 0.3, 0.4], under=circumstances(4, select=select, ticket=(k + 0.5) / 100)).head.selected
        for k in range(100)
    ]

    assert [drawn.count(position) for position in range(4)] == [50, 0, 30, 20]


def test_the_safety_net_moves_the_published_mix_towards_the_mean() -> None:
    under = circumstances(2, net_share=0.25)
    under = under._replace(weights=under.weights._replace(peer=np.array([1.0, 0.0])))

    facts = facts_of([1.0, 0.0], under=under)

    assert facts.head.unguarded == pytest.approx(0.75)
    assert facts.head.mix == pytest.approx(0.75 * 0.75 + 0.25 * 0.5)


def test_too_few_voters_make_low_evidence() -> None:
    assert not facts_of([0.9, 0.8, 0.5, 0.5]).head.counts
    assert not facts_of([0.5]).head.counts
    assert facts_of([0.9, 0.8, 0.3]).head.counts


def test_under_own_medians_a_vote_is_a_forecast_above_the_experts_threshold() -> None:
    thresholds = [0.2, 0.3, 0.1, 0.4]
    under = circumstances(4, thresholds=thresholds)

    facts = facts_of([0.3, 0.2, 0.3, 0.4], under=under)

    assert facts.head.rule == 1
    assert facts.head[3:9] == (
        0,
        0,
        NO_ANSWERS,
        4,
        0,
        3,
    )  # published at one half: all say no; by the rule the fourth does not vote
    assert facts.answers.tolist() == [1, 1, 1, 1]  # the others' leads are 0, 2, 0, 1; of the ties one leans by .1
    assert facts.ties.tolist() == [1, 0, 1, 0]
    assert facts.head[facts.head._fields.index("class_first") :][:5] == pytest.approx((2 / 3, 1 / 3, 0.0, 1.0, 2 / 3))


def test_at_one_half_there_are_no_moments_of_classes() -> None:
    assert facts_of([0.9, 0.6, 0.2]).head.class_first == -1.0
    assert facts_of([0.9, 0.6], under=circumstances(2, thresholds=[0.5, 0.5])).head.class_first == -1.0
