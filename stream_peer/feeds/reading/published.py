"""What weights are read from at one moment, and the reading: the same for outputs, rounds and explanations of both."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from stream_peer.feeds.methods.method import Method, Path
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


def expert_weights(basis: Basis, path: Path | None) -> ExpertWeights:
    """The learners' weights: read off the sums, or off the path of one that has a path."""
    weights = read_weights(basis.columns, basis.rates, basis.seen, basis.mixer, basis.method)
    return weights if path is None else path.weights(weights, basis)


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
