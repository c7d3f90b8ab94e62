"""Shadows: named variants of the mixers that read the sums of the live ones with other settings, to be compared.

A shadow's forecast of a round is frozen with the facts of the round, and is scored when the outcome comes. What
outcomes have taught the outer layer, the stretch and the safety net, they taught by forecasts of the live mixers: a
shadow reads those same sums, and stands back to the plain mean as far as the live mix does.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.engine.method import Method
from stream_peer.engine.readings import DECIMALS, Mixing, mixed, mixing_key, read_mixing
from stream_peer.engine.sums import IndexArray, Sums, expert_column, fixed
from stream_peer.events.feed_settings import FeedSettings, MixerSettings, ShadowSettings
from stream_peer.numerics.losses import LOG, FloatArray, IntArray
from stream_peer.numerics.mixers import SideBySide, mixers_side_by_side, stretched

_STORED = struct.Struct("<q2d")
_AS_LIVE = -1
_PRIORS = ("prior_mean", "prior_peer", "prior_truth_slow", "prior_truth_fast")
_FIRST, _RESOLVED, _SCORED = (expert_column(name) for name in ("mix_level", "resolved", "scored"))
_SUMS = slice(0, expert_column("mix_regret") - _FIRST + 1)
_READ = slice(_FIRST, max(_RESOLVED, _SCORED) + 1)


class ShadowForecast(NamedTuple):
    """What a shadow said of a round: its number, and its mixed forecast as it would have been published."""

    shadow: int
    mix: float
    stretched: float

    def pack(self) -> bytes:
        """Stored form."""
        return _STORED.pack(*self)


SHADOW_BYTES = _STORED.size


def unpack_shadows(packed: bytes) -> tuple[ShadowForecast, ...]:
    """Forecasts from their stored forms, one behind the other."""
    return tuple(map(ShadowForecast._make, _STORED.iter_unpack(packed)))


class _Plan(NamedTuple):
    """A shadow: which rows its own mixers have, if they are not as live, and the rest of its settings."""

    shadow: int
    peer: int
    slow: int
    uniform_share: float
    stretch: bool


class ShadowReading(NamedTuple):
    """What shadows say of a round if it is scored now: weights of mixers of their own, (k, n), and their shares."""

    plans: tuple[_Plan, ...]
    weights: FloatArray
    mixings: tuple[Mixing, ...]

    def forecasts(self, forecasts: FloatArray, live: Sequence[float], net_share: float) -> tuple[ShadowForecast, ...]:
        """The mixed forecasts of all shadows; ``live``: forecasts of the plain mean and of the live mixers."""
        own = np.add.reduce(self.weights * forecasts, axis=1).tolist() if len(self.weights) else []
        mean, live_peer, live_slow, fast = live
        found = []
        for plan, mixing in zip(self.plans, self.mixings, strict=True):
            share = plan.uniform_share
            peer = live_peer if plan.peer == _AS_LIVE else share * mean + (1.0 - share) * own[plan.peer]
            slow = live_slow if plan.slow == _AS_LIVE else own[plan.slow]
            _, mix = mixed(mixing.shares, (mean, peer, slow, fast), net_share)
            factor = mixing.stretch if plan.stretch else 0.0
            found.append(ShadowForecast(plan.shadow, mix, stretched(mix, factor)))
        return tuple(found)


class Shadows:
    """The shadows of one feed, as its settings name them.

    Attributes
    ----------
    settings : tuple of ShadowSettings
    names : dict of int to str
        Of each, by the number that facts and sums know it by.
    """

    def __init__(self, settings: FeedSettings, method: Method) -> None:
        self.settings: tuple[ShadowSettings, ...] = settings.shadows
        self.names = {shadow.id: shadow.name for shadow in settings.shadows}
        self._live = settings.mixer
        self._method = method
        self._known: tuple[bytes, tuple[Mixing, ...]] | None = None
        mixers = [shadow.mixer for shadow in settings.shadows]
        peers = list(dict.fromkeys(_peer(mixer) for mixer in mixers if _peer(mixer) != _peer(self._live)))
        slow = list(dict.fromkeys(mixer.truth_rate for mixer in mixers if mixer.truth_rate != self._live.truth_rate))
        own: list[object] = [*peers, *slow]
        rows = {key: row for row, key in enumerate(own)}
        self._mixers = SideBySide.of([(nominal, rate) for nominal, rate, _ in peers], slow)
        self._plans = tuple(
            _Plan(
                shadow.id,
                rows.get(_peer(shadow.mixer), _AS_LIVE),
                rows.get(shadow.mixer.truth_rate, _AS_LIVE),
                shadow.mixer.uniform_share,
                shadow.stretch,
            )
            for shadow in settings.shadows
        )

    def read(self, sums: Sums, experts: IndexArray, n_experts: int, live: Mixing) -> ShadowReading | None:
        """What the shadows say of a round of these experts, of ``n_experts`` seen; None if there are no shadows."""
        if not self.settings:
            return None
        weights = np.zeros((0, len(experts)))
        if len(self._mixers.by_outcomes):
            columns = sums.read(experts, _READ)[_READ]
            totals = np.add.reduce(columns, axis=1).tolist()
            resolved, scored = totals[_RESOLVED - _FIRST], totals[_SCORED - _FIRST]
            answered, known = (resolved + scored) / len(experts), resolved / len(experts)
            weights = mixers_side_by_side(self._mixers, columns[_SUMS], answered, known, n_experts).round(DECIMALS)
        return ShadowReading(self._plans, weights, self._mixings(sums.feed, live))

    def _mixings(self, feed: IntArray, live: Mixing) -> tuple[Mixing, ...]:
        """Shares and stretch of each shadow, read anew only when an outcome has changed what they are read from."""
        key = mixing_key(feed)
        if self._known is None or self._known[0] != key:
            mixers = [shadow.mixer for shadow in self.settings]
            found = [live if _alike(m, self._live) else read_mixing(feed, m, self._method) for m in mixers]
            self._known = key, tuple(found)
        return self._known[1]


def _peer(mixer: MixerSettings) -> tuple[float, float, float]:
    return mixer.nominal_error_rate, mixer.peer_rate, mixer.uniform_share


def _alike(mixer: MixerSettings, live: MixerSettings) -> bool:
    """Whether the outer layer begins with the same shares."""
    return all(getattr(mixer, name) == getattr(live, name) for name in _PRIORS)


def shadow_columns(
    heads: Sequence[tuple[float, float]], shadows: Sequence[tuple[ShadowForecast, ...]], outcome: int, weight: float
) -> tuple[tuple[int, IntArray], ...]:
    """What a resolved question adds to the sums of each shadow: means over its rounds, 0 where the shadow was not yet.

    Parameters
    ----------
    heads : sequence of (float, float)
        The live mix and the stretched one, of each round.
    shadows : sequence of tuples of ShadowForecast
        Of each round.
    outcome : {0, 1}
    weight : float
        Of the question.
    """
    rounds = [(live, found) for live, of_round in zip(heads, shadows, strict=True) for found in of_round]
    mixes = [number for live, found in rounds for number in (found.mix, live[0])]
    told = np.array([number for live, found in rounds for number in (found.stretched, live[1])])
    logs = LOG.sides(told)[0 if outcome else 1].reshape(-1, 2)
    squares = np.square(told - outcome).reshape(-1, 2)
    mix_squares = np.square(np.array(mixes) - outcome).reshape(-1, 2)
    rows = np.concatenate((np.ones((len(rounds), 1)), squares, logs, mix_squares), axis=1) / len(heads)
    sums: dict[int, FloatArray] = {}
    for (_, found), row in zip(rounds, rows, strict=True):
        sums[found.shadow] = sums.get(found.shadow, 0.0) + row
    return tuple((shadow, fixed(values, weight)) for shadow, values in sums.items())


class ShadowRecord(NamedTuple):
    """How a shadow did on resolved questions, and the live mixers on the same: sums, of which means are taken.

    Attributes
    ----------
    questions : float
        By weight; of a question some of whose rounds the shadow did not see, as much as it saw.
    squared, live_squared, log, live_log : float
        Squared and log losses of the stretched forecasts; logs are of forecasts cut at .001 and .999.
    mix_squared, live_mix_squared : float
        Squared losses of the mixed ones.
    """

    questions: float
    squared: float
    live_squared: float
    log: float
    live_log: float
    mix_squared: float
    live_mix_squared: float
