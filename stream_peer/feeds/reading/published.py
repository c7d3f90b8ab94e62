"""What weights are read from at one moment, and the reading: the same for outputs, rounds and explanations of both."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from stream_peer.feeds.method import Method
from stream_peer.feeds.methods.paths import Paths
from stream_peer.feeds.reading.rates import Rates
from stream_peer.feeds.reading.readings import (
    DECIMALS,
    ExpertWeights,
    Extent,
    Mixing,
    mixing_weights,
    read_weights,
    selection_published,
    shared_by_groups,
)
from stream_peer.feeds.sums import IndexArray
from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.settings.feed.model import MixerSettings


class Basis(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What the weights of some experts are read from.

    Attributes
    ----------
    experts : (n,) int32
        Their places.
    columns : (rows, n) float64
        Their columns, see ``sums``.
    rates : sequence of Rates
        Of the vote rules that are used, that in force first.
    seen : Extent
    mixer : MixerSettings
    method : Method
    """

    experts: IndexArray
    columns: FloatArray
    rates: Sequence[Rates]
    seen: Extent
    mixer: MixerSettings
    method: Method


def expert_weights(basis: Basis, paths: Paths) -> ExpertWeights:
    """The learners' weights: read off the sums, or off the paths of those that have one."""
    experts, method = basis.experts, basis.method
    weights = read_weights(basis.columns, basis.rates, basis.seen, basis.mixer, method)
    if method.shares and len(experts):
        select = paths.shared.of(experts).round(DECIMALS)
        weights = replace(weights, select=select, peer=weights.peer if method.mixes else select)
    if method.side_mixer is not None:
        rates = basis.rates[0].zero, basis.rates[0].one
        mixed = paths.five.weights(experts, rates, basis.seen.experts, method.side_mixer)
        weights = replace(weights, peer=mixed.round(DECIMALS))
    return weights


class Published(NamedTuple):
    """Weights over the listed experts as they are published, each summing to 1."""

    mix: FloatArray
    select: FloatArray


def published_weights(
    weights: ExpertWeights, mixing: Mixing, net_share: float, shrink: float = 0.0, groups: IntArray | None = None
) -> Published:
    """What is made of the learners' weights before they are published.

    ``shrink``: see ``trust``. ``groups``: numbers of groups that share one weight, -1 for none. The safety net's share
    of the plain mean is not shared by them: the net is there for the case that all of this does harm.
    """
    select = selection_published(weights.select, shrink, groups)
    if groups is None:
        return Published(mixing_weights(weights, mixing, net_share), select)
    shared = shared_by_groups(mixing_weights(weights, mixing, 0.0), groups)
    mix = ((1.0 - net_share) * shared + net_share / len(shared)).round(DECIMALS)
    return Published(mix, select)
