"""How a feed computes: what its meaning settings amount to, resolved once, when they are adopted.

A variant of the mathematics is chosen here and nowhere else. It has one place each where it acts:

==========================  =============================================
what                        where
==========================  =============================================
losses of forecasts         ``Method.losses``
own reference answers       ``facts.own_answers``
columns of the estimator    filled in ``contributions``, read in ``readings.free_rate``
selection weights           ``readings.selection_weights``
mixing weights              ``readings.mixing_weights``
==========================  =============================================
"""

from dataclasses import dataclass
from typing import Literal

from stream_peer.events.feed_settings import FeedSettings
from stream_peer.numerics.losses import LOSSES, SQUARED, FloatArray, ProperLoss


@dataclass(frozen=True, slots=True)
class Method:
    """The mathematics of one feed. It never changes while the feed has rounds.

    Attributes
    ----------
    loss : ProperLoss
        What a forecast costs.
    vote_rule : str
        The setting: when a forecast is a vote for yes.
    """

    loss: ProperLoss = SQUARED
    vote_rule: Literal["half", "own-median", "auto"] = "half"

    @property
    def keeps_histograms(self) -> bool:
        """Whether each expert's own median may be asked for."""
        return self.vote_rule != "half"

    @property
    def loss_unit(self) -> float:
        """What a loss of 1 in the sums is in the loss's own unit: nats for the log loss."""
        return self.loss.upper

    def losses(self, forecasts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Losses of forecasts against 1 and against 0, scaled to [0, 1]."""
        return self.loss.scaled_sides(forecasts)


def method_of(settings: FeedSettings) -> Method:
    """The method that settings choose."""
    return Method(loss=LOSSES[settings.loss], vote_rule=settings.vote_rule)
