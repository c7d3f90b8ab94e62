"""The weights of a feed as they were at one revision, and what to do with them."""

from collections.abc import Iterable, Mapping
from math import fsum
from types import MappingProxyType
from typing import NamedTuple, Protocol, Self

import msgspec

from stream_peer_client import outputs
from stream_peer_client.errors import ForecastRangeError, NoWeightError


class Random(Protocol):
    """What draws: ``random.Random``, or a generator of numpy."""

    def random(self) -> float:
        """A number in [0, 1)."""


class Mixed(NamedTuple):
    """A mixed forecast, plain and stretched: bolder or less bold, as the outcomes so far say."""

    mix: float
    stretched: float


class Weights(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the service published of a feed at one revision. It never changes; the reader hands out another one.

    Attributes
    ----------
    feed, revision, at : str, int, str
        A higher revision is newer. ``at`` is ISO 8601, UTC.
    status : str
        Whether the numbers can be trusted: ``ok``, ``warming-up``, ``low-evidence``, ``dependent``, ``contradicted``,
        ``uninformative``, or what a later release adds.
    status_reasons : tuple of str
        Sentences that say why.
    experts : mapping of str to WeightedExpert
        Weights and record of each expert, by id.
    stretch : float
        Above 0: outcomes ask for a bolder forecast than the mix.
    stale : bool
        Whether the reader had not heard from the brokers for ``stale_after`` when it handed this out.
    record : Weights
        All that was published, parts joined: error rates, shares of the mixers, certificate, groups, drift, shadows.
    """

    feed: str
    revision: int
    at: str
    status: str
    status_reasons: tuple[str, ...]
    experts: Mapping[str, outputs.WeightedExpert]
    stretch: float
    record: outputs.Weights
    stale: bool = False

    @classmethod
    def of(cls, record: outputs.Weights) -> Self:
        """The weights of a record whose parts are joined."""
        return cls(
            feed=record.feed,
            revision=record.revision,
            at=record.at,
            status=record.status,
            status_reasons=tuple(record.status_reasons),
            experts=MappingProxyType({expert.id: expert for expert in record.experts}),
            stretch=record.stretch,
            record=record,
        )

    def mix(self, forecasts: Mapping[str, float]) -> Mixed:
        """The mean of forecasts by the ``mix`` weights of those who gave them, scaled to sum to 1.

        Parameters
        ----------
        forecasts : mapping of str to float
            Probabilities by expert. An expert who is not listed has weight 0.

        Raises
        ------
        ForecastRangeError
            If a forecast is not within 0..1.
        NoWeightError
            If none of these experts has a weight.
        """
        for expert, forecast in forecasts.items():
            if not 0.0 <= forecast <= 1.0:
                msg = f"the forecast of {expert} is {forecast!r}, not within 0..1"
                raise ForecastRangeError(msg)
        given = [(self.experts[expert].mix, forecasts[expert]) for expert in forecasts if expert in self.experts]
        present = fsum(weight for weight, _ in given)
        if not present > 0.0:
            msg = f"none of these experts has a weight in {self.feed}"
            raise NoWeightError(msg)
        mix = min(fsum(weight * forecast for weight, forecast in given) / present, 1.0)
        return Mixed(mix, min(max(0.5 + (1.0 + self.stretch) * (mix - 0.5), 0.0), 1.0))

    def select(self, rng: Random, among: Iterable[str] | None = None) -> str:
        """One expert to follow, drawn by the ``select`` weights.

        Parameters
        ----------
        rng : Random
            Draws one number.
        among : iterable of str, optional
            Who is there to be followed; default: all.

        Raises
        ------
        NoWeightError
            If none of them has a weight.
        """
        present = self.experts if among is None else dict.fromkeys(among)
        weights = {expert: self.experts[expert].select for expert in present if expert in self.experts}
        left = rng.random() * fsum(weights.values())
        drawn = None
        for expert, weight in weights.items():
            if weight > 0.0:
                drawn = expert
                left -= weight
                if left < 0.0:
                    break
        if drawn is None:
            msg = f"none of these experts has a weight in {self.feed}"
            raise NoWeightError(msg)
        return drawn
