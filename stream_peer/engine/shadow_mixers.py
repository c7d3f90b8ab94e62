"""Shadows: named variants of the mixers that read the sums of the live ones with other settings, to be compared.

A shadow's forecast of a round is frozen with the facts of the round, and is scored when the outcome comes. What
outcomes have taught the outer layer, the stretch and the safety net, they taught by forecasts of the live mixers: a
shadow reads those same sums, and stands back to the plain mean as far as the live mix does.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.engine.method import Method
from stream_peer.engine.readings import DECIMALS, Mixing, mixed, mixing_key, read_mixing
from stream_peer.engine.sums import UNIT, IndexArray, Sums, expert_column, fixed
from stream_peer.events.feed_settings import FeedSettings, MixerSettings, ShadowSettings
from stream_peer.events.outputs import ShadowScores
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

    def scores(self, sums: Sums) -> list[ShadowScores] | msgspec.UnsetType:
        """How each shadow did, in the order of the settings; nothing at all without shadows."""
        if not self.settings:
            return msgspec.UNSET
        return [ShadowRecord.of(sums.of_shadow(number)).scores(name) for number, name in self.names.items()]

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
    lives: Sequence[tuple[float, float]], shadows: Sequence[tuple[ShadowForecast, ...]], outcome: int, weight: float
) -> tuple[tuple[int, IntArray], ...]:
    """What a resolved question adds to the sums of each shadow: means over its rounds, 0 where the shadow was not yet.

    Parameters
    ----------
    lives : sequence of (float, float)
        The live mixed forecast and the stretched one, of each round.
    shadows : sequence of tuples of ShadowForecast
        Of each round.
    outcome : {0, 1}
    weight : float
        Of the question.
    """
    rounds = [(said, live) for live, of_round in zip(lives, shadows, strict=True) for said in of_round]
    told = np.array([(said.mix, said.stretched, *live) for said, live in rounds])
    losses = losses_of_mixes(told.reshape(-1, 2), outcome).reshape(-1, 2, 3).swapaxes(1, 2).reshape(-1, 6)
    rows = np.concatenate((np.ones((len(rounds), 1)), losses), axis=1) / len(lives)
    sums: dict[int, FloatArray] = {}
    for (said, _), row in zip(rounds, rows, strict=True):
        sums[said.shadow] = sums.get(said.shadow, 0.0) + row
    return tuple((shadow, fixed(values, weight)) for shadow, values in sums.items())


def losses_of_mixes(told: FloatArray, outcome: int) -> FloatArray:
    """Losses of mixed forecasts: squared and log loss of the stretched ones, squared loss of the mixed ones.

    Parameters
    ----------
    told : (m, 2) float64
        The mixed forecast and the stretched one, of each round.
    outcome : {0, 1}

    Returns
    -------
    (m, 3) float64

    Examples
    --------
    >>> losses_of_mixes(np.array([[0.5, 0.9]]), 1).round(4)
    array([[0.01  , 0.1054, 0.25  ]])
    """
    mixed_squares, squares = np.square(told - outcome).T
    logs = LOG.sides(told[:, 1])[0 if outcome else 1]
    return np.stack((squares, logs, mixed_squares), axis=1)


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

    @classmethod
    def of(cls, columns: IntArray) -> "ShadowRecord":
        """The record that columns of sums hold."""
        return cls._make((columns * UNIT).tolist())

    def scores(self, name: str) -> ShadowScores:
        """As it is published."""
        return ShadowScores(
            name=name,
            questions=round(self.questions, DECIMALS),
            brier=self._mean(self.squared),
            live_brier=self._mean(self.live_squared),
            log_score=self._mean(self.log),
            live_log_score=self._mean(self.live_log),
            regret=round(self.squared - self.live_squared, DECIMALS),
            mix_brier=self._mean(self.mix_squared),
            live_mix_brier=self._mean(self.live_mix_squared),
        )

    def _mean(self, total: float) -> float | None:
        return round(total / self.questions, DECIMALS) if self.questions else None
