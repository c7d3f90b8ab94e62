"""How a feed computes: what its meaning settings amount to, resolved once, when they are adopted.

A variant of the mathematics is chosen here and nowhere else. It has one place each where it acts:

==========================  =============================================
what                        where
==========================  =============================================
losses of forecasts         ``Method.losses``
own reference answers       ``facts.own_answers``
columns of the estimator    filled in ``ledger``, read in ``readings.free_rate``
selection weights           ``readings.selection_weights``
mixing weights              ``readings.mixing_weights``
==========================  =============================================
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stream_peer.events.feed_settings import FeedSettings
from stream_peer.numerics.losses import FloatArray


@dataclass(frozen=True, slots=True)
class Method:
    """The mathematics of one feed. It never changes while the feed has rounds.

    Attributes
    ----------
    loss : str
        Name of the loss.
    vote_rule : str
        The setting: when a forecast is a vote for yes.
    """

    loss: Literal["squared", "log"] = "squared"
    vote_rule: Literal["half", "own-median", "auto"] = "half"

    def losses(self, forecasts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Losses of forecasts against 1 and against 0, in [0, 1]."""
        return np.square(1.0 - forecasts), np.square(forecasts)


def method_of(settings: FeedSettings) -> Method:
    """The method that settings choose."""
    return Method(loss=settings.loss, vote_rule=settings.vote_rule)
