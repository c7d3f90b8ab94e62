"""What is read off one feed: its reading, and what follows from that with its experts, its groups and its trust."""

from collections.abc import Sequence

import numpy as np

from stream_peer.events.groups import group_id_of
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.alarms.groups import Group
from stream_peer.feeds.columns import EXPERT
from stream_peer.feeds.facts import ScoringInputs
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.medians import own_medians
from stream_peer.feeds.methods.method import NOTHING_DRAWN
from stream_peer.feeds.reading.reading import Reading, read_sums
from stream_peer.feeds.reading.trust import NamedGroup, Signs, Trust, next_trust
from stream_peer.feeds.reading.weights import Basis, ExpertWeights, Extent, expert_weights
from stream_peer.feeds.vote_units import NONE, Groups, newcomers, united_numbers
from stream_peer.numerics.arguments import FloatArray, IndexArray, IntArray

_SCORED, _COMPARED = EXPERT.at("scored"), EXPERT.at("compared")
_FEWEST_HELD = 2

_NOT_ASKED = Extent(experts=1, questions=0.0, gaps=0.0)
"""How much a feed has seen, for methods that do not go by it: all but variants."""


def read(feed: Feed) -> Reading:
    """The numbers of a feed as its sums stand: one reading for each change of the sums."""
    sums, path_state = feed.buckets.sums, feed.path_state
    reading = feed.reading = read_sums(
        sums,
        feed.outcomes,
        path_state.vote_rule,
        feed.settings,
        feed.method,
        path_state.peer_trust,
        feed.reading,
        by_group=path_state.has_groups and feed.method.counts_groups,
    )
    return reading


def trust_of(feed: Feed, reading: Reading, *, guarded: bool = False) -> Trust:
    """The state of trust that follows on the present one, and why.

    ``guarded``: whether to leave out the groups that the guard, if it is on, holds to one vote. The present state is
    the published one even then, mostly ``dependent`` because of those groups. So the votes show dependence from two
    thirds of ``trust.dependence_z`` on: what the group voted before it was found is still among them, and nothing
    swings at this one limit, since the peer mixer's prior moves by a small step a record.
    """
    is_held = guarded and feed.method.guards
    signs = Signs(reading.dependence, reading.ranks) if is_held else signs_of(feed, reading)
    before, evidence = feed.path_state.trust, feed.method.evidence
    return next_trust(before, reading.rates, reading.mean_voters, feed.settings, signs, evidence)


def signs_of(feed: Feed, reading: Reading) -> Signs:
    """What beside the error rates speaks against the feed's numbers. One who follows the crowd alone does not."""
    if not feed.path_state.groups:  # nearly always, and every record asks
        return Signs(reading.dependence, reading.ranks)
    shown = feed.roster.shown
    named = [NamedGroup([shown[place] for place in group.experts], group.kind) for group in groups_of(feed)]
    return Signs(reading.dependence, reading.ranks, [group for group in named if len(group.experts) > 1])


def groups_of(feed: Feed) -> Sequence[Group]:
    """Experts who said the same at the last look, without the excluded."""
    found, roster = feed.path_state.groups, feed.roster
    excluded = {roster.place(expert) for expert in roster.excluded}
    stay = {place: place for group in found for place in group.experts if place not in excluded}
    return [left for group in found if (left := group.without(stay))]


def weights_of(
    feed: Feed, reading: Reading, experts: IndexArray, columns: FloatArray, seen: Extent, groups: Groups | None
) -> ExpertWeights:
    """Weights of some experts, whose columns and groups are given."""
    basis = Basis(experts, columns, reading.all_rates, seen, feed.settings.mixer, feed.method, groups)
    return expert_weights(basis, feed.learner_path)


def groups_of_round(feed: Feed, experts: IndexArray, columns: FloatArray) -> Groups | None:
    """Who of a round is held together, whose columns are given: named groups and, as one more, the newcomers."""
    groups = feed.roster.held_groups(experts)
    if not feed.method.holds_newcomers or not feed.method.guards:
        return groups
    new = newcomers(columns[_SCORED] + columns[_COMPARED], None if groups is None else groups.voices)
    if np.count_nonzero(new) < _FEWEST_HELD:
        return groups
    return (groups or Groups.of([], len(experts))).with_newcomers(new)


def teams_of_round(feed: Feed, experts: IndexArray, groups: Groups | None) -> IntArray | None:
    """Team numbers of a round's experts: who is in the same one is left out of an expert's reference answer.

    A group that is held together is in one team. None if there is neither team nor group.
    """
    teams = feed.roster.team_numbers(experts)
    if groups is None or not feed.method.holds_newcomers:
        return teams
    return united_numbers(np.full(len(experts), NONE, np.int64) if teams is None else teams, groups.numbers)


def scoring_inputs(
    feed: Feed, reading: Reading, experts: IndexArray, question_id: str, boundary: Milliseconds
) -> ScoringInputs:
    """What a round of a question is scored under. The reading must be one without the question's contribution."""
    roster, draws, path_state, rates = feed.roster, feed.draws, feed.path_state, reading.rates
    columns, seen = reading.learnt(experts), _NOT_ASKED
    if feed.method.reads_extent:
        seen = reading.extent(roster.n_seen(experts, reading.sums))
    needed = feed.method.draws
    medians = own_medians(reading.histograms(experts)) if reading.rule else None
    unit = group_id_of(question_id) if feed.method.counts_groups else None
    mixing, (coin, ticket, subsample) = reading.mixing, draws.of_round(question_id, boundary, unit)
    groups = groups_of_round(feed, experts, columns)
    return ScoringInputs(
        weights=weights_of(feed, reading, experts, columns, seen, groups),
        mixing=mixing,
        net_share=path_state.net_share,
        rule=reading.rule,
        thresholds=medians.thresholds if medians else None,
        steady=medians.steady if medians else None,
        rate_zero=rates.zero,
        rate_one=rates.one,
        min_experts=feed.settings.min_experts,
        stretch=feed.settings.stretch,
        coin=coin,
        ticket=ticket,
        chance=draws.of_method(needed, roster, experts, question_id, boundary) if needed else NOTHING_DRAWN,
        n_experts=seen.experts,
        gaps=seen.gaps,
        teams=teams_of_round(feed, experts, groups),
        groups=groups,
        subsample=subsample,
        shrink=path_state.shrink,
        shadows=feed.shadows.read(reading.feed_sums, columns, mixing, path_state.peer_trust, groups),
    )
