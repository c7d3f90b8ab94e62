import numpy as np
import pytest

from stream_peer.feeds.columns import EXPERT, FEED, UNIT
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.methods.served import hedge_at_any_time
from stream_peer.feeds.reading.certificate import read_certificate
from stream_peer.feeds.reading.rates import read_rates
from stream_peer.feeds.reading.weights import (
    Extent,
    Mixing,
    PeerTrust,
    mixed,
    mixing_weights,
    read_records,
    read_regret,
    read_weights,
    selection_weights,
    shares_key,
    shares_of,
    stretch_of,
)
from stream_peer.feeds.vote_units import Groups
from stream_peer.numerics.learners import ada_normal_hedge, hedge
from stream_peer.numerics.losses import LOG
from stream_peer.settings.feed.model import MixerSettings
from tests.unit.feeds.sample_sums import agreeing, expert_sums, feed_sums

MIXER = MixerSettings()
METHOD = Method()
TRUST_PRIOR = Method(trust_prior=True, stretch_shrinkage=2.5)
EXTENT = Extent(experts=2, questions=9.0, gaps=0.0)


def test_the_mixers_have_their_prior_shares_until_an_outcome_is_known() -> None:
    assert shares_of(shares_key(agreeing(1000)), MIXER, METHOD, PeerTrust()) == (0.4, 0.35, 0.15, 0.1)
    assert stretch_of(agreeing(1000), MIXER, METHOD, PeerTrust()) == 0.0
    assert shares_key(agreeing(1000)) == shares_key(agreeing(5))
    assert shares_key(agreeing(5)) != shares_key(feed_sums(peer_error=0.1))


@pytest.mark.parametrize(
    ("factor", "shares"),
    [(0.0, (8 / 13, 0.0, 3 / 13, 2 / 13)), (1.0, (0.4, 0.35, 0.15, 0.1)), (2.0, (2.4 / 13, 0.7, 0.9 / 13, 0.6 / 13))],
)
def test_trust_multiplies_the_prior_share_of_the_peer_mixer_and_the_others_keep_their_ratios(
    factor: float, shares: tuple[float, ...]
) -> None:
    key, trusted = shares_key(agreeing(1000)), PeerTrust(factor, 1.0)

    assert shares_of(key, MIXER, TRUST_PRIOR, trusted) == pytest.approx(shares, abs=1e-12)
    assert shares_of(key, MixerSettings(trust_prior="off"), TRUST_PRIOR, trusted) == (0.4, 0.35, 0.15, 0.1)
    assert shares_of(key, MIXER, METHOD, trusted) == (0.4, 0.35, 0.15, 0.1)


def test_trust_leaves_the_other_mixers_a_tenth_unless_the_settings_leave_them_less() -> None:
    key = shares_key(agreeing(1000))
    large = MixerSettings(prior_mean=0.2, prior_peer=0.6, prior_truth_slow=0.1, prior_truth_fast=0.1)
    whole = MixerSettings(prior_mean=0.0, prior_peer=1.0, prior_truth_slow=0.0, prior_truth_fast=0.0)

    assert shares_of(key, large, TRUST_PRIOR, PeerTrust(2.0)) == pytest.approx((0.05, 0.9, 0.025, 0.025), abs=1e-12)
    assert shares_of(key, whole, TRUST_PRIOR, PeerTrust(2.0)) == (0.0, 1.0, 0.0, 0.0)


def test_peers_stretch_the_mix_as_far_as_they_are_trusted_until_outcomes_do() -> None:
    agreed = {"agreed": 100.0, "agreed_level": 4.0, "agreed_cross": 4.0, "agreed_square": 4.0}
    sums = feed_sums(**agreed)

    assert stretch_of(sums, MIXER, TRUST_PRIOR, PeerTrust(1.0, 1.0)) == pytest.approx(2 / 3)
    assert stretch_of(sums, MIXER, TRUST_PRIOR, PeerTrust(1.0, 0.5)) == pytest.approx(1 / 3)
    assert stretch_of(sums, MIXER, TRUST_PRIOR, PeerTrust(1.0, 0.0)) == 0.0
    assert stretch_of(sums, MIXER, METHOD, PeerTrust(1.0, 1.0)) == 0.0
    assert stretch_of(sums, MixerSettings(trust_prior="off"), TRUST_PRIOR, PeerTrust(1.0, 1.0)) == 0.0
    told = feed_sums(**agreed, stretch_product=-1.0, stretch_square=7.5)
    assert stretch_of(told, MIXER, TRUST_PRIOR, PeerTrust(1.0, 1.0)) == pytest.approx((-1 + 2.5 * 2 / 3) / 10)


def test_weights_prefer_those_with_regret_against_them() -> None:
    columns = expert_sums(3, regret=[4.0, 0.0, -4.0], absolute_regret=[9.0, 9.0, 9.0], scored=[20.0, 20.0, 20.0])
    columns[EXPERT.at("mix_answer")] = [-2.0, 0.0, 2.0]
    weights = read_weights(
        columns, [read_rates(agreeing(1000), 0, 0.95, METHOD)], Extent(3, 1000.0, 0.0), MIXER, METHOD
    )

    assert weights.select[0] > weights.select[1] > weights.select[2] == 0.0
    assert weights.peer[0] > weights.peer[1] > weights.peer[2] > 0.0
    np.testing.assert_allclose(weights.truth_slow, 1 / 3)


def test_weights_of_others_are_the_same_however_many_members_a_group_has() -> None:
    columns = expert_sums(3, mix_answer=[-2.0, 0.0, 30.0], scored=[60.0, 20.0, 60.0])
    rates, seen, method = [read_rates(agreeing(1000), 0, 0.95, METHOD)], Extent(3, 1000.0, 0.0), Method(own_counts=True)
    clones = columns[:, [0, 1, 2, 2, 2, 2]]

    one = read_weights(columns, rates, seen, MIXER, method).peer
    free = read_weights(clones, rates, seen, MIXER, method).peer
    held = read_weights(clones, rates, seen, MIXER, method, Groups.of([[2, 3, 4, 5]], 6)).peer

    assert held[0] / held[1] == pytest.approx(one[0] / one[1], rel=1e-9)
    assert free[0] / free[1] > 1.1 * one[0] / one[1]


def test_truth_enters_selection_on_the_scale_of_the_reference_answers() -> None:
    rates = read_rates(agreeing(1000), 0, 0.95, METHOD)
    distance = 1 - rates.zero - rates.one
    true = expert_sums(2, outcome_regret=[1.0, -1.0], outcome_absolute=[3.0, 3.0], resolved=[4.0, 4.0])
    peer = expert_sums(2, regret=[distance, -distance], absolute_regret=[3.0, 3.0], scored=[4.0, 4.0])

    np.testing.assert_allclose(
        read_weights(true, [rates], Extent(2, 1.0, 0.0), MIXER, METHOD).select,
        read_weights(peer, [rates], Extent(2, 1.0, 0.0), MIXER, METHOD).select,
    )


def test_selection_reads_regrets_of_losses_whose_range_is_1() -> None:
    """That of peer losses is 1 + |η0 - η1|, here about 1.3."""
    rates = read_rates(agreeing(1000).plus(feed_sums(right_zero=500, right_one=350, wrong_one=150)), 0, 0.95, METHOD)
    columns = expert_sums(3, regret=[4.0, 0.0, -0.5], absolute_regret=[9.0, 8.0, 7.0], scored=[20.0, 20.0, 20.0])
    hedging = Method(select=hedge_at_any_time)
    width = 1.0 + abs(rates.zero - rates.one)

    assert width > 1.25
    np.testing.assert_allclose(
        selection_weights(columns, [rates], Extent(3, 16.0, 0.0), METHOD),
        ada_normal_hedge(np.array([4.0, 0.0, -0.5]) / width, np.array([9.0, 8.0, 7.0]) / width),
    )
    np.testing.assert_allclose(
        selection_weights(columns, [rates], Extent(3, 16.0, 0.0), hedging),
        hedge(np.array([4.0, 0.0, -0.5]), np.sqrt(8 * np.log(3) / 16) / width),
    )


def test_a_mixed_forecast_is_at_most_one_though_shares_and_weights_are_rounded() -> None:
    shares, forecasts = (0.25, 0.25, 0.25, 0.25 + 1e-12), (1.0, 1.0 + 1e-12, 1.0, 1.0)

    assert mixed(shares, forecasts, 0.0) == (1.0, 1.0)
    assert mixed((0.25, 0.75, 0.0, 0.0), (0.4, 0.8, 0.0, 0.0), 0.5) == pytest.approx((0.7, 0.55))


def test_the_safety_net_shares_with_everybody() -> None:
    weights = read_weights(
        expert_sums(2, mix_answer=[-9.0, 9.0]),
        [read_rates(agreeing(9), 0, 0.95, METHOD)],
        EXTENT,
        MIXER,
        METHOD,
    )
    mixing = Mixing((0.0, 1.0, 0.0, 0.0), 0.0)

    np.testing.assert_allclose(mixing_weights(weights, mixing, 0.0), weights.peer)
    np.testing.assert_allclose(mixing_weights(weights, mixing, 1.0), [0.5, 0.5])


def test_mean_losses_are_unknown_where_there_is_nothing_to_average() -> None:
    rates = read_rates(agreeing(1000), 0, 0.95, METHOD)
    if_one, if_zero = 0.3, 0.5
    expected_score = 0.25 * (1 - rates.zero - rates.one) + rates.zero * if_one + rates.one * if_zero
    columns = expert_sums(
        2,
        scored=[2.0, 0.0],
        loss=[2 * expected_score, 0.0],
        loss_if_one=[2 * if_one, 0.0],
        loss_if_zero=[2 * if_zero, 0.0],
        resolved=[0.0, 4.0],
        outcome_loss=[0.0, 1.0],
    )

    records = read_records(columns, [rates], METHOD)

    np.testing.assert_allclose(records.peer_loss, [0.25, np.nan])
    np.testing.assert_allclose(records.outcome_loss, [np.nan, 0.25])
    assert records.questions.tolist() == [2.0, 4.0]


def test_the_certificate_grows_with_every_outcome_applied_and_needs_known_rates() -> None:
    columns = expert_sums(3, published_regret=[2.0, 1.0, 0.0], variance=[90.0, 80.0, 70.0])
    feed = agreeing(1000)

    first, later = (
        read_certificate(feed, columns, [0], 3, 1, 0.95, METHOD),
        read_certificate(feed, columns, [0], 3, 10, 0.95, METHOD),
    )

    assert first is not None
    assert later is not None
    assert 2.0 < first.bound < later.bound
    assert read_certificate(agreeing(3), columns, [0], 3, 1, 0.95, METHOD) is None


@pytest.mark.parametrize(("steps", "confidence"), [(10**9, 0.95), (1, 1.0 - 2.0**-53)])
def test_there_is_a_certificate_after_any_number_of_steps_at_any_confidence(steps: int, confidence: float) -> None:
    columns = expert_sums(3, published_regret=[2.0, 1.0, 0.0], variance=[90.0, 80.0, 70.0])

    early, late = (
        read_certificate(agreeing(1000), columns, [0], 3, s, c, METHOD) for s, c in ((1, 0.95), (steps, confidence))
    )

    assert early is not None
    assert late is not None
    assert early.bound < late.bound < 10.0 * early.bound


def test_sums_are_read_in_their_unit() -> None:
    assert feed_sums(pair=0.5)[FEED.at("pair")] * UNIT == 0.5


def test_each_vote_rule_is_priced_with_its_own_rates_on_the_scale_of_that_in_force() -> None:
    half = read_rates(agreeing(1000), 0, 0.95, METHOD)
    own = half._replace(rule=1, zero=0.3, one=0.1)
    columns = expert_sums(2)
    for name, values in (("regret", [3.0, 0.5]), ("regret_if_one", [1.0, 2.0]), ("absolute_regret", [5.0, 5.0])):
        columns[EXPERT.at(name, "own-median")] = values
    unbiased = (np.array([3.0, 0.5]) - 0.3 * np.array([1.0, 2.0])) / own.distance

    for rates in ([half, own], [own, half]):
        scale = rates[0].distance / (1.0 + abs(rates[0].zero - rates[0].one))
        expected = ada_normal_hedge(scale * unbiased, np.full(2, scale / own.distance * 5.0))
        np.testing.assert_allclose(selection_weights(columns, rates, EXTENT, METHOD), expected)


def test_mean_losses_of_two_vote_rules_add_up_on_the_unbiased_scale() -> None:
    half = read_rates(agreeing(1000), 0, 0.95, METHOD)
    own = half._replace(rule=1, zero=0.3, one=0.1)
    columns = expert_sums(1, scored=[5.0], loss=[2 * (0.2 * half.distance)])
    columns[EXPERT.at("loss", "own-median")] = 3 * (0.4 * own.distance)

    assert read_records(columns, [own, half], METHOD).peer_loss == pytest.approx([(2 * 0.2 + 3 * 0.4) / 5])


def test_losses_are_read_in_the_unit_of_the_method() -> None:
    rates = read_rates(agreeing(1000), 0, 0.95, METHOD)
    columns = expert_sums(1, resolved=[2.0], outcome_loss=[0.5], published_regret=[2.0], variance=[90.0])
    log = Method(loss=LOG)

    assert read_records(columns, [rates], log).outcome_loss == pytest.approx([0.25 * LOG.upper])
    found = [read_certificate(agreeing(1000), columns, [0], 3, 1, 0.95, method) for method in (log, METHOD)]
    bounds, noise = zip(*((one.bound, one.terms["noise"]) for one in found if one), strict=True)
    assert bounds[0] == pytest.approx(LOG.upper * bounds[1])
    assert noise[0] == pytest.approx(LOG.upper * noise[1])
    regrets = [read_regret(columns, [rates], method) for method in (log, METHOD)]
    assert regrets[0] == pytest.approx(LOG.upper * (regrets[1] or 0.0))


def test_two_rules_in_use_share_the_error_probability_of_the_certificate() -> None:
    columns = expert_sums(3, published_regret=[2.0, 1.0, 0.0], variance=[90.0, 80.0, 70.0])
    own = feed_sums()
    own[FEED.at("moment_weight", "own-median") : FEED.at("pair_rest", "own-median") + 1] = agreeing(1000)[
        FEED.at("moment_weight") : FEED.at("pair_rest") + 1
    ]

    one, both = (
        read_certificate(agreeing(1000).plus(own), columns, rules, 3, 1, 0.95, METHOD) for rules in ([0], [0, 1])
    )

    assert one is not None
    assert both is not None
    assert both.bound > one.bound + 10.0  # the noise of a rule under which next to nothing was scored


@pytest.mark.parametrize("rules", [[0], [1], [0, 1]])
def test_the_terms_of_a_certificate_add_up_to_it(rules: list[int]) -> None:
    columns = expert_sums(
        3, published_regret=[2.0, 1.0, 0.0], variance=[90.0, 80.0, 70.0], true_regret=[-1.0, 30.0, 2.0]
    )
    for name, values in (("published_regret", [1.0, 2.0, 5.0]), ("variance", [20.0, 10.0, 0.0])):
        columns[EXPERT.at(name, "own-median")] = values
    moments = slice(FEED.at("moment_weight"), FEED.at("pair_rest") + 1)
    feed = agreeing(1000)
    feed[FEED.at("moment_weight", "own-median") : FEED.at("pair_rest", "own-median") + 1] = feed[moments]

    found = read_certificate(feed, columns, rules, 3, 1, 0.95, METHOD)

    assert found is not None
    assert sum(found.terms.values()) == pytest.approx(found.bound)
    assert found.terms["outcomes"] == 30.0  # of the second expert, who decides
    assert found.terms["noise"] > 0.0


def test_the_estimated_regret_is_that_against_the_best_expert_and_below_its_certificate() -> None:
    columns = expert_sums(
        3, published_regret=[2.0, 1.0, -4.0], variance=[90.0, 80.0, 70.0], true_regret=[0.5, 0.0, 0.0]
    )
    feed = agreeing(1000)
    rates = read_rates(feed, 0, 0.95, METHOD)

    regret, certified = (
        read_regret(columns, [rates], METHOD),
        read_certificate(feed, columns, [0], 3, 1, 0.95, METHOD),
    )

    assert regret == pytest.approx(2.0 / rates.distance + 0.5)
    assert regret is not None
    assert certified is not None
    assert regret < certified.bound
    assert read_regret(columns[:, 2:], [rates], METHOD) == pytest.approx(-4.0 / rates.distance)
    assert read_regret(columns[:, :0], [rates], METHOD) is None
