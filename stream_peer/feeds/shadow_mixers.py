"""Shadows: named variants of the mixers that read the sums of the live ones with other settings, to be compared.

A shadow's forecast of a round is frozen with the facts of the round, and is scored when the outcome comes. What
outcomes have taught the outer layer, the stretch and the safety net, they taught by forecasts of the live mixers: a
shadow reads those same sums, and stands back to the plain mean as far as the live mix does.

Facts and sums know a shadow by a number for its name and settings. What they hold of one that has gone from the
settings stays: a few numbers, a function of facts and outcomes like everything else, there again if it comes back.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.events.outputs import ShadowScores
from stream_peer.feeds.columns import EXPERT, SCALE, UNIT
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.weights import (
    DECIMALS,
    ExpertWeights,
    Mixing,
    PeerTrust,
    mixed,
    mixing_weights,
    shared_by_groups,
    shares_key,
    shares_of,
    stretch_of,
    with_net,
)
from stream_peer.feeds.sums import Sums
from stream_peer.feeds.vote_units import Groups
from stream_peer.numerics.arguments import FloatArray, IntArray, unchecked
from stream_peer.numerics.losses import LOG, portable_log_of
from stream_peer.numerics.mixers import SideBySide, mixers_side_by_side, with_uniform_share
from stream_peer.numerics.outer_layer import stretched
from stream_peer.settings.feed.model import FeedSettings, MixerSettings, ShadowSettings

_STORED = struct.Struct("<q2d")
_Shares = tuple[float, float, float, float]
_PRIORS = ("prior_mean", "prior_peer", "prior_truth_slow", "prior_truth_fast", "trust_prior")


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
    """A shadow: which rows its own mixers have, None if they are as live, and the rest of its settings."""

    shadow: int
    peer: int | None
    slow: int | None
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
            peer = live_peer if plan.peer is None else share * mean + (1.0 - share) * own[plan.peer]
            slow = live_slow if plan.slow is None else own[plan.slow]
            _, mix = mixed(mixing.shares, (mean, peer, slow, fast), net_share)
            found.append(_shadow_forecast(plan, mixing, mix))
        return tuple(found)

    def shared_forecasts(
        self, forecasts: FloatArray, live: ExpertWeights, groups: Groups, net_share: float
    ) -> tuple[ShadowForecast, ...]:
        """The same where groups of experts share one weight; ``live``: the weights of the live mixers."""
        mean = float(np.add.reduce(forecasts)) / len(forecasts)
        found = []
        for plan, mixing in zip(self.plans, self.mixings, strict=True):
            weights = shared_by_groups(mixing_weights(self._weights(plan, live), mixing, 0.0), groups)
            _, mix = with_net(float(np.add.reduce(weights * forecasts)), mean, net_share)
            found.append(_shadow_forecast(plan, mixing, mix))
        return tuple(found)

    def _weights(self, plan: _Plan, live: ExpertWeights) -> ExpertWeights:
        """The weights of all mixers of a shadow."""
        if plan.peer is not None:
            live = msgspec.structs.replace(live, peer=with_uniform_share(self.weights[plan.peer], plan.uniform_share))
        return live if plan.slow is None else msgspec.structs.replace(live, truth_slow=self.weights[plan.slow])


def _shadow_forecast(plan: _Plan, mixing: Mixing, mix: float) -> ShadowForecast:
    return ShadowForecast(plan.shadow, mix, unchecked(stretched)(mix, mixing.stretch if plan.stretch else 0.0))


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
        self._known: tuple[tuple[Sequence[int], PeerTrust], tuple[_Shares | None, ...]] | None = None
        mixers = [shadow.mixer for shadow in settings.shadows]
        peers = list(dict.fromkeys(_peer(mixer) for mixer in mixers if _peer(mixer) != _peer(self._live)))
        slow = list(dict.fromkeys(mixer.truth_rate for mixer in mixers if mixer.truth_rate != self._live.truth_rate))
        own: list[object] = [*peers, *slow]
        rows = {key: row for row, key in enumerate(own)}
        self._mixers = SideBySide.of([(nominal, rate) for nominal, rate, _ in peers], slow)
        self._plans = tuple(
            _Plan(
                shadow.id,
                rows.get(_peer(shadow.mixer)),
                rows.get(shadow.mixer.truth_rate),
                shadow.mixer.uniform_share,
                shadow.stretch,
            )
            for shadow in settings.shadows
        )

    def read(
        self,
        feed_sums: Sequence[int],
        columns: FloatArray,
        live: Mixing,
        peer_trust: PeerTrust,
        groups: Groups | None = None,
    ) -> ShadowReading | None:
        """What the shadows say of a round; None if there are no shadows.

        Parameters
        ----------
        feed_sums : sequence of int
            Sums of the feed as a whole.
        columns : (rows, n) float64
            Columns of those present, as far as weights are read from them.
        live : Mixing
            What the live mixers go by.
        peer_trust : PeerTrust
            How much the agreement of experts counts.
        groups : Groups, optional
            Each has one voice in what is average.
        """
        if not self.settings:
            return None
        weights = np.zeros((0, columns.shape[1]))
        if len(self._mixers.coefficients):
            compared, scored = columns[EXPERT.span("compared", "scored")]
            sums, own_counts = columns[EXPERT.span("mix_level", "mix_regret")], self._method.own_counts
            voices = None if groups is None else groups.voices
            weights = unchecked(mixers_side_by_side)(
                self._mixers, sums, scored, compared, voices, own_counts=own_counts
            )
            weights = weights.round(DECIMALS)
        return ShadowReading(self._plans, weights, self._mixings(feed_sums, live, peer_trust))

    def scores(self, sums: Sums) -> list[ShadowScores] | msgspec.UnsetType:
        """How each shadow did, in the order of the settings; nothing at all without shadows."""
        if not self.settings:
            return msgspec.UNSET
        return [ShadowRecord.of(sums.of_shadow(number)).scores(name) for number, name in self.names.items()]

    def _mixings(self, feed_sums: Sequence[int], live: Mixing, peer_trust: PeerTrust) -> tuple[Mixing, ...]:
        """Shares and stretch of each shadow. Shares are read again only when what they are read from has changed."""
        key = shares_key(feed_sums), peer_trust
        mixers = [shadow.mixer for shadow in self.settings]
        if self._known is None or self._known[0] != key:
            own = (
                None if _alike(mixer, self._live) else shares_of(key[0], mixer, self._method, peer_trust)
                for mixer in mixers
            )
            self._known = key, tuple(own)
        return tuple(
            Mixing(live.shares if shares is None else shares, self._stretch(feed_sums, live, mixer, peer_trust))
            for mixer, shares in zip(mixers, self._known[1], strict=True)
        )

    def _stretch(self, feed_sums: Sequence[int], live: Mixing, mixer: MixerSettings, peer_trust: PeerTrust) -> float:
        if mixer.trust_prior == self._live.trust_prior:
            return live.stretch
        return stretch_of(feed_sums, mixer, self._method, peer_trust)


def _peer(mixer: MixerSettings) -> tuple[float, float, float]:
    return mixer.nominal_error_rate, mixer.peer_rate, mixer.uniform_share


def _alike(mixer: MixerSettings, live: MixerSettings) -> bool:
    """Whether the outer layer begins with the same shares."""
    return all(getattr(mixer, name) == getattr(live, name) for name in _PRIORS)


def shadow_columns(
    live: tuple[float, float], shadows: Sequence[ShadowForecast], outcome: int, weight: float
) -> tuple[tuple[int, IntArray], ...]:
    """What a resolved question adds to the sums of each shadow that there was in its scored forecast.

    Parameters
    ----------
    live : (float, float)
        The live mixed forecast, and the stretched one.
    shadows : sequence of ShadowForecast
        Of the same round.
    outcome : {0, 1}
    weight : float
        Of the question.
    """
    of_live, unit = losses_of_mix(*live, outcome), weight * SCALE
    found = []
    for said in shadows:
        own = losses_of_mix(said.mix, said.stretched, outcome)
        row = (1.0, own[0], of_live[0], own[1], of_live[1], own[2], of_live[2])
        found.append((said.shadow, np.array([round(value * unit) for value in row], np.int64)))
    return tuple(found)


def losses_of_mix(mix: float, stretched_mix: float, outcome: int) -> tuple[float, float, float]:
    """Squared and log loss of a stretched forecast, and squared loss of the mixed one.

    Parameters
    ----------
    mix, stretched_mix : float
        The mixed forecast and the stretched one, in [0, 1].
    outcome : {0, 1}

    Examples
    --------
    >>> [round(loss, 4) for loss in losses_of_mix(0.5, 0.9, 1)]
    [0.01, 0.1054, 0.25]
    """
    chance = min(max(stretched_mix if outcome else 1.0 - stretched_mix, LOG.clip), 1.0 - LOG.clip)
    error, mix_error = stretched_mix - outcome, mix - outcome
    return error * error, -unchecked(portable_log_of)(chance), mix_error * mix_error


class ShadowRecord(NamedTuple):
    """How a shadow did on resolved questions, and the live mixers on the same: sums, of which means are taken.

    Attributes
    ----------
    questions : float
        By weight; those whose scored forecast came when there was the shadow.
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
