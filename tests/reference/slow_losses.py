"""Proper losses as one would write them down, in 50-digit arithmetic, beside the product's own."""

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np

from stream_peer.numerics.arguments import FloatArray
from stream_peer.numerics.losses import LOG, SPHERICAL, SQUARED, ProperLoss
from tests.reference.savage import SavageLoss

DIGITS = 50
CLIP = Decimal(LOG.clip)


def clipped(p: Decimal) -> Decimal:
    return min(max(p, CLIP), 1 - CLIP)


def chance_of(p: Decimal, outcome: int) -> Decimal:
    return p if outcome else 1 - p


def odds_against(p: Decimal, outcome: int) -> Decimal:
    return (1 - chance_of(p, outcome)) / chance_of(p, outcome)


def squared(p: Decimal, outcome: int) -> Decimal:
    return (1 - chance_of(p, outcome)) ** 2


def log(p: Decimal, outcome: int) -> Decimal:
    return -chance_of(clipped(p), outcome).ln()


def spherical(p: Decimal, outcome: int) -> Decimal:
    return 1 - chance_of(p, outcome) / (p * p + (1 - p) * (1 - p)).sqrt()


def boosting(p: Decimal, outcome: int) -> Decimal:
    return odds_against(clipped(p), outcome).sqrt() - odds_against(1 - CLIP, 1).sqrt()


def log_potential(p: FloatArray) -> FloatArray:
    return p * np.log(p) + (1.0 - p) * np.log(1.0 - p)


def log_slope(p: FloatArray) -> FloatArray:
    return np.log(p / (1.0 - p))


BOOSTING = SavageLoss(
    "boosting",
    lambda p: -2.0 * np.sqrt(p * (1.0 - p)),
    lambda p: (2.0 * p - 1.0) / np.sqrt(p * (1.0 - p)),
    clip=0.001,
)
LOG_BY_SAVAGE = SavageLoss("log by Savage", log_potential, log_slope, clip=0.001, offset=(0.0, 0.0))

PAIRS: dict[str, tuple[ProperLoss, Callable[[Decimal, int], Decimal]]] = {
    "squared": (SQUARED, squared),
    "log": (LOG, log),
    "spherical": (SPHERICAL, spherical),
    "boosting": (BOOSTING, boosting),
    "log by Savage": (LOG_BY_SAVAGE, log),
}

EVERY_LOSS: list[ProperLoss] = [loss for loss, _ in PAIRS.values()]


def slow_loss(name: str, p: float, outcome: int) -> Decimal:
    """The named loss of a forecast, in 50 digits."""
    with localcontext() as context:
        context.prec = DIGITS
        return PAIRS[name][1](Decimal(p), outcome)
