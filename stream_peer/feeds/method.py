"""How a feed computes: what its meaning settings amount to, resolved once, when they are adopted.

A variant of the mathematics is chosen here and nowhere else. It has one place each where it acts:

==========================  ============================================================================
what                        where
==========================  ============================================================================
losses of forecasts         ``Method.losses``
own reference answers       ``scoring.own_answers``
columns of the estimator    filled in ``contributions``, read in ``rates.read_rates``
selection weights           ``readings.selection_weights``; of fixed share, ``paths``
mixing weights              ``readings.read_weights``; of mixers at their own forecast, ``paths``
==========================  ============================================================================
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stream_peer.numerics.arguments import BitArray, FloatArray
from stream_peer.numerics.losses import LOSSES, SQUARED, ProperLoss
from stream_peer.settings.feed.method import BUILT_IN, PAPER, MethodSettings
from stream_peer.settings.feed.model import FeedSettings


@dataclass(frozen=True, slots=True)
class Method:
    """The mathematics of one feed. It never changes while the feed has rounds.

    Attributes
    ----------
    loss : ProperLoss
        What a forecast costs.
    vote_rule : str
        The setting: when a forecast is a vote for yes.
    variant : MethodSettings, optional
        What is other than as built in, see ``variants``; None if nothing is.
    is_paper : bool
        Whether it is the preset ``paper``: regrets are taken from the mean over those present.
    """

    loss: ProperLoss = SQUARED
    vote_rule: Literal["half", "own-median", "auto"] = "half"
    variant: MethodSettings | None = None
    is_paper: bool = False

    @property
    def keeps_histograms(self) -> bool:
        """Whether each expert's own median may be asked for."""
        return self.vote_rule != "half"

    @property
    def is_frozen(self) -> bool:
        """Whether regrets keep the price of their time, and stay on when an outcome comes."""
        return self.variant is not None and self.variant.pricing == "frozen"

    @property
    def reads_classes(self) -> bool:
        """Whether votes at 1/2 give error rates of each class, too."""
        return self.variant is not None and self.variant.error_rate == "class-moments"

    @property
    def estimates(self) -> bool:
        """Whether error rates are estimated from votes, so that outcomes can contradict them."""
        return self.variant is None or self.variant.error_rate not in ("outcomes", "known")

    @property
    def shares(self) -> bool:
        """Whether the learner is fixed share, which goes by what it said."""
        return self.variant is not None and self.variant.learner == "fixed-share"

    @property
    def side_mixer(self) -> str | None:
        """Name of a mixer that learns at its own forecast, see ``five_mixers``."""
        return None if self.variant is None or self.variant.mixer in ("auto", "select") else self.variant.mixer

    @property
    def mixes(self) -> bool:
        """Whether forecasts are mixed by all mixers, in shares that outcomes move."""
        return self.variant is None or self.variant.mixer == "auto"

    @property
    def certifies(self) -> bool:
        """Whether reference answers are made without the experts that they score, as a certificate demands."""
        return self.variant is None or self.variant.against in ("others", "other-group")

    @property
    def loss_unit(self) -> float:
        """What a loss of 1 in the sums is in the loss's own unit: nats for the log loss."""
        return self.loss.upper

    def losses(self, forecasts: FloatArray, answers: BitArray, alike: int | None = None) -> FloatArray:
        """Losses of forecasts against their reference answers, against 1 and against 0, scaled to [0, 1]: (3, n).

        ``alike``: the answer that all have, where that is known.
        """
        losses = np.empty((3, len(forecasts)))
        losses[1], losses[2] = self.loss.scaled_sides(forecasts)
        if alike is None:
            losses[0] = np.where(answers.view(np.bool_), losses[1], losses[2])
        else:
            losses[0] = losses[1 if alike else 2]
        return losses


def method_of(settings: FeedSettings) -> Method:
    """The method that settings choose."""
    chosen = PAPER if settings.preset == "paper" else settings.method
    variant = None if chosen == BUILT_IN else chosen
    ruling = (chosen.reference, chosen.against, chosen.error_rate, chosen.pricing)
    votes_at_half = ruling != ("majority", "others", "moments", "newest")
    vote_rule = "half" if votes_at_half and settings.vote_rule == "auto" else settings.vote_rule
    return Method(LOSSES[settings.loss], vote_rule, variant, is_paper=settings.preset == "paper")
