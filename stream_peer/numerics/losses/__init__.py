"""How far is a forecast from an answer? Proper losses, in [0, B]; smaller is better.

- ``arguments``: arrays, and the checks that the arguments of every formula get
- ``proper``: what a proper loss is; squared, logarithmic and spherical loss
- ``portable_log``: the logarithm with the same bits on every processor
"""

from stream_peer.numerics.losses.arguments import (
    Answers,
    BitArray,
    BoolArray,
    FloatArray,
    IntArray,
    SmallIntArray,
    check_answers,
    check_probabilities,
)
from stream_peer.numerics.losses.portable_log import portable_log, portable_log_of
from stream_peer.numerics.losses.proper import (
    LOG,
    LOSSES,
    SPHERICAL,
    SQUARED,
    LogLoss,
    ProperLoss,
    Sides,
    SphericalLoss,
    SquaredLoss,
    TwoSidedLoss,
    squared_loss,
)

__all__ = [
    "LOG",
    "LOSSES",
    "SPHERICAL",
    "SQUARED",
    "Answers",
    "BitArray",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "LogLoss",
    "ProperLoss",
    "Sides",
    "SmallIntArray",
    "SphericalLoss",
    "SquaredLoss",
    "TwoSidedLoss",
    "check_answers",
    "check_probabilities",
    "portable_log",
    "portable_log_of",
    "squared_loss",
]
